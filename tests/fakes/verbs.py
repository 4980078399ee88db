"""The verbs over simulators: the real command line, lock, signals and exit codes; only the outside world is a fake.

As a program, `python -m tests.fakes.verbs ROOT POINT VERB...` runs the verbs one after another and comes to a halt at
POINT of the last one, where it prints `reached` and waits to be interrupted.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pipeline import verbs
from pipeline.__main__ import main
from pipeline.model.material import Material
from pipeline.model.reference import Reference
from pipeline.model.release import Target
from pipeline.ports import Attested, BundleVerifier
from pipeline.world import World
from tests.fakes.engine import FakeEngine
from tests.fakes.examiner import FakeExaminer
from tests.fakes.registry import SimulatedRegistry
from tests.fakes.release import RecordingRegistry, TinyWorld
from tests.fakes.signing import FakeSigner, FakeSigstore, FakeVerifier
from tests.fakes.sources import FakeSources

POINTS = ("push_manifest", "push_referrer", "fetch_blob", "sign", "check", "review")


def simulate(tiny: TinyWorld) -> type[World]:  # noqa: C901 - a class with an adapter a line
    """A `World` whose adapters are those of a tiny world. Its lock, paths, plan and reporter are the real ones."""

    class SimulatedWorld(World):
        def start_services(self) -> None:
            """There are none."""

        @property
        def engine(self) -> FakeEngine:  # type: ignore[override]
            return tiny.engine

        @property
        def anonymous(self) -> SimulatedRegistry:  # type: ignore[override]
            return tiny.registry.anonymous

        @property
        def credentialed(self) -> RecordingRegistry:  # type: ignore[override]
            return tiny.publisher

        @property
        def sources(self) -> FakeSources:  # type: ignore[override]
            return tiny.sources

        @property
        def examiner(self) -> FakeExaminer:  # type: ignore[override]
            tiny.examiner.plan, tiny.examiner.engine = self.plan, tiny.engine
            return tiny.examiner

        @property
        def fresh_examiner(self) -> FakeExaminer:  # type: ignore[override]
            return self.examiner

        def environment(self) -> tuple[Material, ...]:
            return tiny.environment

        @property
        def revision(self) -> str:
            return tiny.revision

        @property
        def signer(self) -> FakeSigner:  # type: ignore[override]
            return FakeSigner(tiny.sigstore)

        @property
        def verifier(self) -> FakeVerifier:  # type: ignore[override]
            return tiny.verifier

        @property
        def trusted_root(self) -> bytes:  # type: ignore[override]
            return tiny.sigstore.name.encode()

        @staticmethod
        def make_reviewer(target: Target, evidence_root: bytes) -> BundleVerifier:
            return tiny.make_verifier(target, evidence_root)

    return SimulatedWorld


def halt() -> None:
    """Say so and wait; interrupted by a signal."""
    print("reached", flush=True)
    time.sleep(60)


def halt_at(tiny: TinyWorld, point: str) -> None:
    """Make a tiny world come to a halt at a point."""
    if point == "check":
        tiny.examiner.before = lambda step: _wait_for_stop(tiny) if step == "check" else None
    elif point == "sign":
        tiny.sigstore = _HaltingSigstore(tiny.sigstore.name)
    elif point == "review":
        tiny.make_verifier = lambda target, root: _HaltingVerifier(FakeSigstore(root.decode()))  # type: ignore[method-assign]
    else:
        tiny.registry.faults.before = _halt_before(point)


def _wait_for_stop(tiny: TinyWorld) -> None:
    # in a thread, as suites run: a signal does not reach it, only `stop` does
    print("reached", flush=True)
    tiny.examiner.stopped.wait(60)


def _halt_before(point: str) -> Callable[[str, Reference], None]:
    return lambda operation, reference: halt() if operation == point else None


class _HaltingSigstore(FakeSigstore):
    def seal(self, what: str, data: bytes) -> bytes:
        halt()
        return super().seal(what, data)


class _HaltingVerifier(FakeVerifier):
    def verify(self, bundle: bytes, *, subject_digest: str, predicate_type: str) -> Attested:
        halt()
        return super().verify(bundle, subject_digest=subject_digest, predicate_type=predicate_type)


def _run(root: Path, point: str, names: list[str]) -> int:
    tiny = TinyWorld(root)
    verbs.World = simulate(tiny)  # type: ignore[misc]
    code = 0
    for number, name in enumerate(names, 1):
        if number == len(names) and point != "nowhere":
            halt_at(tiny, point)
        code = main([name, "--release", str(tiny.release_path)], os.environ)
    return code


if __name__ == "__main__":
    sys.exit(_run(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))

"""A tiny release in a folder of its own: a repair over a task image, and an image that derives from it.

`TinyWorld` runs the stages on it over simulators: one registry, one Sigstore, one engine, all in memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from pipeline.adapters.git import prove_clean
from pipeline.adapters.vendored import examine_vendored
from pipeline.config import load_release
from pipeline.derive.history import find_future
from pipeline.derive.repository import load_source
from pipeline.embedded.githistory import History
from pipeline.layout import Layout
from pipeline.model.attachment import EMPTY_CONFIG, make_referrer
from pipeline.model.digest import digest_of, hex_of
from pipeline.model.material import Material
from pipeline.model.oci import Descriptor, ImageConfig
from pipeline.model.record import canonical_json
from pipeline.model.reference import Reference
from pipeline.model.release import Target
from pipeline.model.stages import PublishedImage
from pipeline.paths import Paths
from pipeline.plan import Plan, make_plan
from pipeline.ports import BlobStore, BundleVerifier, Engine, PullRegistry, PushOutcome, Signer
from pipeline.report.facts import ReleaseFacts
from pipeline.stages.build import BuildOutcome, BuildPorts, build
from pipeline.stages.evidence import known_digests, write_evidence
from pipeline.stages.publish import PublishPorts, publish, publish_image
from pipeline.stages.records import load_built
from pipeline.stages.review import Review, review
from pipeline.stages.scanning import render_future
from pipeline.stages.verify import VerifyPorts, verify
from tests.fakes.engine import FakeEngine
from tests.fakes.examiner import FakeExaminer
from tests.fakes.registry import SimulatedRegistry, Simulation
from tests.fakes.signing import ISSUER, SUBJECT, FakeSigner, FakeSigstore, FakeVerifier
from tests.fakes.sources import CWD, RECIPE, FakeSources, make_tiny_history

ROOT = Path(__file__).parents[2]
PORT = 5880
DATE = "2026-10-12"
REPAIR, WORKFLOW = "lookup", "workflow"
BUDGETS = {
    "reset_wall_s": 120, "rollout_wall_s": 300, "verifier_wall_s": 30, "tool_wall_s": 60, "tool_calls_total": 16,
    "tool_calls_per_minute": 60, "completion_tokens": 8192, "context_tokens": 16384, "memory_gib": 16,
    "cpu_floor_vcpus": 2, "workspace_gib": 10,
}  # fmt: skip
RUNTIME = {
    "user": "root", "working_dir": "/opt/arena", "cmd": ["/usr/bin/python3", "-I", "/opt/arena/arena"], "port": 8000,
    "stop_signal": "SIGTERM",
}  # fmt: skip
FIXTURE = b"".join(b"+    distinctive line %d of the reference repair = %d\n" % (n, n * n) for n in range(20))


def make_tiny_release(root: Path, port: int = PORT, repository: str = "releases", issuer: str = ISSUER) -> Path:
    """Write the release's files under `root`; returns the release file."""
    policies = yaml.safe_load((ROOT / "release.yaml").read_text())["policies"]
    identity = {"subject": SUBJECT, "issuer": issuer}
    local = {"kind": "embedded", "registry": f"127.0.0.1:{port}", "repository": f"{repository}/{{image}}"}
    remote = {"kind": "remote", "registry": "registry.test", "repository": "somebody/images"}
    images = [
        {"id": REPAIR, "definition": "images/repair", "task": "images/repair/tasks/lookup", "budgets": BUDGETS},
        {"id": WORKFLOW, "definition": "images/workflow", "base": REPAIR, "budgets": BUDGETS},
    ]
    more = {"identity": identity, "rekor": 1, "log_outage_budget_s": 0}
    release = {
        "version": 1, "release": DATE, "source": "https://github.com/example/project", "default_target": "local",
        "policies": policies, "images": images, "targets": {"local": {**local, **more}, "remote": {**remote, **more}},
    }  # fmt: skip
    for name in policies:
        _copy_policy(root, name)
    _write_repair(root / "images" / "repair")
    _write_workflow(root / "images" / "workflow")
    _write(root / "pipeline" / "stands_for_the_code.py", "VERSION = 1\n")
    _write(root / "requirements.lock", "openenv==0.3.1\n")
    return _write_yaml(root / "release.yaml", release)


def edit_yaml(path: Path, change: Callable[[Any], object]) -> None:
    """Change a YAML file in place."""
    document = yaml.safe_load(path.read_text())
    change(document)
    _write_yaml(path, document)


def _copy_policy(root: Path, name: str) -> None:
    document = yaml.safe_load((ROOT / "policies" / f"{name}.yaml").read_text())
    if name == "checks-agree":
        document["parameters"]["minimum"] = {"repair": 3, "workflow": 3}
    _write_yaml(root / "policies" / f"{name}.yaml", document)


def _write_repair(folder: Path) -> None:
    server = {"source": "server", "path": "/opt/arena/arena", "mode": "0600", "directory_mode": "0700"}
    layers = [
        {"name": "runtime", "wheels": "runtime.lock", "path": "/opt/arena/runtime"},
        {"name": "server", "files": [server]},
    ]
    debian = {"suite": "bookworm", "packages": ["bash"]}
    _write_yaml(folder / "image.yaml", _definition("repair", "task", layers) | {"debian": debian})
    _write(folder / "runtime.lock", "openenv==0.3.1\n")
    _write(folder / "server" / "__main__.py", "print('a server')\n")
    _write(folder / "server" / "parts" / "shell.py", "RUN = True\n")
    _write(folder / "fixtures" / "reference.patch", FIXTURE.decode())
    task = folder / "tasks" / "lookup"
    record = canonical_json({"cwd": f"/{CWD}", "instance_id": "lookup-1", "test_command": "true"})
    _write(task / "record.json", record.decode())
    _write(task / "packages.lock", "")
    _write(task / "sdists.lock", "")
    document = {
        "version": 1, "id": "lookup-1", "title": "Exact lookup", "record": "record.json",
        "record_sha256": hex_of(digest_of(record)),
        "repository": RECIPE.model_dump(mode="json"), "packages": "packages.lock",
        "base_commit": make_tiny_history().base_commit, "future": "future.txt",
        "reference_repair": "fixtures/reference.patch",
    }  # fmt: skip
    _write(task / "future.txt", render_future(_future_of(make_tiny_history())).decode())
    _write_yaml(task / "task.yaml", document)


def _future_of(history: History) -> frozenset[str]:
    git = ((entry.path.removeprefix(".git/").encode(), entry.data) for entry in history.entries if entry.kind == "file")
    return find_future(load_source(git), history.base_commit).objects


def _write_workflow(folder: Path) -> None:
    files = {"source": "workflow", "path": "/opt/arena/workflow", "mode": "0600", "directory_mode": "0700"}
    _write_yaml(folder / "image.yaml", _definition("workflow", "image", [{"name": "workflow", "files": [files]}]))
    _write(folder / "workflow" / "__main__.py", "print('cases')\n")
    _write(folder / "fixtures" / "solver.py", "".join(f"answer_{n} = {n} * 31 + 7\n" for n in range(20)))


def _definition(suite: str, base: str, layers: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "version": 1, "title": f"A tiny {suite}", "description": "For tests", "licences": "Apache-2.0", "suite": suite,
        "base": base, "layers": layers, "runtime": RUNTIME, "fixtures": {"paths": ["fixtures"]},
    }  # fmt: skip


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _write_yaml(path: Path, document: Mapping[str, Any]) -> Path:
    return _write(path, yaml.dump(dict(document), Dumper=_Plain, sort_keys=False, width=1000))


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """The pipeline's reader refuses aliases."""
        return True


@dataclass
class QuietReporter:
    """`ports.Reporter` that remembers."""

    steps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def step(self, text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Remember the text."""
        self.steps.append(text)
        yield lambda done: None

    def note(self, text: str) -> None:
        """Remember the text."""
        self.notes.append(text)


class RecordingRegistry(SimulatedRegistry):
    """A client with credentials that remembers how each blob came to be in the registry."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, may_push=True)
        self.outcomes: list[tuple[str, str, PushOutcome]] = []

    def push_blob(
        self, reference: Reference, blob: Descriptor, source: BlobStore, mount_from: str | None
    ) -> PushOutcome:
        """Repository, digest and outcome are remembered."""
        outcome = super().push_blob(reference, blob, source, mount_from)
        self.outcomes.append((reference.repository, blob.digest, outcome))
        return outcome


@dataclass
class PullingEngine(FakeEngine):
    """An engine that pulls from a simulated registry, without credentials."""

    registry: Simulation = field(default_factory=Simulation)

    def pull(self, reference: Reference) -> str:
        """By digest."""
        self.require_alive()
        client = self.registry.anonymous
        manifest = client.fetch_manifest(reference)
        return self._keep(ImageConfig(b"".join(client.fetch_blob(reference, manifest.view.config))))


@cache
def _load_plan(path: Path, target: str, state: tuple[object, ...]) -> Plan:
    return make_plan(load_release(path), target)


class TinyWorld:
    """The stages over simulators. Files may be changed between calls: the plan is read anew every time."""

    def __init__(self, root: Path, target: str = "local") -> None:
        self.root, self.target = root, target
        self.release_path = root / "release.yaml"
        if not self.release_path.exists():
            make_tiny_release(root)
        self.registry = Simulation(host=self.plan.target.registry)
        self.sigstore = FakeSigstore()
        self.engine: Engine = PullingEngine(registry=self.registry)
        self.sources = FakeSources()
        self.reporter = QuietReporter()
        self.examiner = FakeExaminer(self.plan, self.paths, self.engine, self.reporter)
        self.revision = "c" * 40
        self.environment: tuple[Material, ...] = ()  # what the pipeline runs on
        self.publisher = self.make_publisher()

    @property
    def plan(self) -> Plan:
        """As the files are now."""
        files = [self.release_path, *(p for name in ("images", "policies") for p in (self.root / name).rglob("*.*"))]
        state = tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in files)
        return _load_plan(self.release_path, self.target, state)

    @property
    def paths(self) -> Paths:
        """Of the release and target."""
        return Paths(self.root, DATE, self.target)

    @property
    def anonymous(self) -> PullRegistry:
        """A client without credentials."""
        return self.registry.anonymous

    def make_publisher(self) -> RecordingRegistry:
        """A client with credentials, as each process has one of its own."""
        return RecordingRegistry(self.registry)

    @property
    def signer(self) -> Signer:
        """Signs as the target's identity."""
        return FakeSigner(self.sigstore)

    @property
    def trusted_root(self) -> bytes:
        """What evidence brings along for its reviewers."""
        return self.sigstore.name.encode()

    @property
    def verifier(self) -> BundleVerifier:
        """Expects the target's identity."""
        return FakeVerifier(self.sigstore)

    def make_verifier(self, target: Target, trusted_root: bytes) -> BundleVerifier:
        """For a review: the trusted root is the Sigstore's name."""
        return FakeVerifier(FakeSigstore(trusted_root.decode()), target.identity.subject, target.identity.issuer)

    def build(self) -> tuple[BuildOutcome, ...]:
        """The stage."""
        source_registry = self.publisher if self.plan.target.kind == "embedded" else None
        self.examiner.plan, self.examiner.engine = self.plan, self.engine
        ports = BuildPorts(
            self.anonymous, source_registry, self.sources, self.engine, self.examiner, self.reporter,
            self.revision, lambda: self.environment, prove_clean, examine_vendored,
        )  # fmt: skip
        return build(self.plan, self.paths, ports)

    def publish(self, *images: str) -> tuple[PublishedImage, ...]:
        """The stage, as a fresh process with a client of its own; of all images, or of those named."""
        self.publisher = self.make_publisher()
        ports = PublishPorts(self.publisher, self.signer, self.verifier, self.reporter, self.revision)
        plan = self.plan
        if images:
            return tuple(publish_image(plan, plan.image(image), self.paths, ports) for image in images)
        return publish(plan, self.paths, ports)

    def verify(self) -> ReleaseFacts:
        """The stage, and what it writes."""
        self.examiner.plan, self.examiner.engine = self.plan, self.engine
        ports = VerifyPorts(self.anonymous, self.engine, self.verifier, self.examiner, self.reporter)
        seen = verify(self.plan, self.paths, ports, known_digests(self.paths))
        return write_evidence(self.plan, self.paths, seen, self.trusted_root)

    def review(self, folder: Path | None = None) -> Review:
        """The stage, over the evidence of this release."""
        return review(folder or self.paths.evidence, self.plan.release.file.targets, self.make_verifier, self.reporter)

    def layout(self, image: str) -> Layout:
        """What build left."""
        return Layout(self.paths.built(image) / "layout")

    def restart(self) -> TinyWorld:
        """The same machine after a reboot: files, registry and Sigstore stay; the engine has nothing."""
        fresh = TinyWorld(self.root, self.target)
        fresh.registry, fresh.sigstore, fresh.revision = self.registry, self.sigstore, self.revision
        fresh.engine = PullingEngine(registry=self.registry)
        return fresh


def copy_world(world: TinyWorld, root: Path) -> TinyWorld:
    """The same release and state in another folder, with a registry of its own that holds the same."""
    shutil.copytree(world.root, root, symlinks=True)
    copied = TinyWorld(root, world.target)
    for name in ("sources/lookup", f"releases/{REPAIR}", f"releases/{WORKFLOW}", "releases/release"):
        repository = world.registry.content.repository(name)
        own = copied.registry.content.repository(name)
        own.blobs.update(repository.blobs)
        own.manifests.update(repository.manifests)
        own.tags.update(repository.tags)
    copied.sigstore, copied.revision = FakeSigstore(world.sigstore.name), world.revision
    return copied


def attach_bundle(world: TinyWorld, image: str, bundle: bytes, predicate_type: str) -> str:
    """Hang a bundle on the image that the tag names, as anybody with push access could; the referrer's digest."""
    repository = world.registry.content.repository(f"releases/{image}")
    subject = repository.manifests[_digest_of(world, image)].descriptor
    referrer = make_referrer(subject, bundle, predicate_type, "2026-10-12T09:00:00Z")
    for content in (EMPTY_CONFIG, bundle):
        repository.blobs[digest_of(content)] = content
    pinned = Reference(world.registry.host, f"releases/{image}", None, subject.digest)
    world.registry.publisher.push_referrer(pinned, referrer)
    return referrer.digest


def _digest_of(world: TinyWorld, image: str) -> str:
    tags = world.registry.content.repository(f"releases/{image}").tags
    return tags.get(DATE) or load_built(world.paths, image)[0].manifest_digest


def without_registry(world: TinyWorld) -> TinyWorld:
    """The same folder beside an empty registry and a fresh log; nothing was published yet."""
    shutil.rmtree(world.root / ".pipeline" / "publish", ignore_errors=True)
    return TinyWorld(world.root, world.target)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


class KilledError(BaseException):
    """What a simulator raises where a test wants the process to end: nothing catches it."""

"""How long signing, verifying and a review take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from statistics import median
from typing import Literal

from pipeline.bench.figures import Figure, make_figure, not_measured, time_runs
from pipeline.bench.goals import SIGSTORE
from pipeline.derive.statements import make_sign_statement
from pipeline.errors import StageError, VerificationError
from pipeline.model.attestation import COSIGN_SIGN
from pipeline.model.digest import digest_of
from pipeline.model.reference import Reference
from pipeline.world import World

RUNS, REVIEWS, MANY_IMAGES = 20, 3, 32
# what is signed is no image: a log that is kept holds it for ever
SUBJECT = Reference("bench.invalid", "nothing").with_digest(digest_of(b"nothing"))


def measure_sigstore(world: World) -> Iterator[Figure]:
    """Every figure of the group. On a remote target nothing is signed: the public log is not for measuring."""
    with world.lock("bench"):
        yield from _rekor(world, 1)
        yield from _rekor(world, 2)
        yield from _review(world)


def _rekor(world: World, version: Literal[1, 2]) -> Iterator[Figure]:
    sign, verify = f"sign-rekor{version}", f"verify-rekor{version}"
    if not world.is_embedded:
        yield from (
            not_measured("sigstore", name, "only the local target's log is measured") for name in (sign, verify)
        )
        return
    from pipeline.adapters.keyless import EmbeddedToken, KeylessSigner, KeylessVerifier
    from pipeline.embedded.sigstore import trust

    state, port = world.services.sigstore_path, world.services.sigstore_port
    token = EmbeddedToken(trust.ambient_url(port), state / "request-token")
    signer = KeylessSigner(trust.trust_config(state, port, version), token, 0)
    identity = world.plan.target.identity
    verifier = KeylessVerifier(trust.trusted_root(state, port), identity.subject, identity.issuer)
    statement = make_sign_statement(SUBJECT)
    bundles = [signer.sign(statement)]  # the first one also imports and connects
    asked = time_runs(token, RUNS)
    with world.reporter.step(f"sign and verify, Rekor v{version}"):
        signed = time_runs(lambda: bundles.append(signer.sign(statement)), RUNS)
        digest = SUBJECT.digest or ""
        verified = time_runs(
            lambda: verifier.verify(bundles[-1], subject_digest=digest, predicate_type=COSIGN_SIGN), RUNS
        )
    beside = f"one request to the same service, for a token: {median(asked) * 1e3:.3g} ms"
    note = "token, certificate, signature, timestamp, log entry"
    yield _figure(sign, signed, reference=beside, note=note)
    yield _figure(verify, verified, note=f"of {len(bundles[-1]):,} bytes")


def _review(world: World) -> Iterator[Figure]:
    folder = world.paths.evidence
    if not (folder / "evidence.json").is_file():
        raise StageError("there is no evidence to review", where=str(folder), remedy="run: nox -s verify")
    images = len(list((folder / "images").iterdir()))
    _review_once(world)
    each = [seconds / images for seconds in time_runs(lambda: _review_once(world), REVIEWS)]
    files = sum(path.is_file() for path in folder.rglob("*"))
    yield _figure("review-image", each, note=f"{images} images, {files} files")
    note = f"{MANY_IMAGES} times the seconds an image; not measured on such a folder"
    yield _figure("review-32", [one * MANY_IMAGES for one in each], note=note)


def _review_once(world: World) -> None:
    from pipeline.stages.review import review

    # the last thing that a review says is that a release failed: it takes as long for a good one
    with suppress(VerificationError):
        review(world.paths.evidence, world.plan.release.file.targets, world.make_reviewer, world.reporter)


def _figure(name: str, samples: list[float], *, reference: str = "", note: str = "") -> Figure:
    return make_figure("sigstore", name, SIGSTORE[name], samples, reference=reference, note=note)

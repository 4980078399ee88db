"""Sessions only: each runs `python -m pipeline VERB` in one shared environment, made from requirements.lock."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from pathlib import Path

import nox

nox.options.sessions = ["build", "publish", "verify"]
nox.options.stop_on_first_error = True

LOCK = Path("requirements.lock")
ENVIRONMENT = Path(".nox") / "pipeline"
# in the lock for their metadata only: OpenEnv's web interface, which nothing here serves
LEFT_OUT = [
    *("gradio", "gradio-client", "hf-gradio", "pandas", "numpy", "pydub", "audioop-lts", "groovy", "pillow"),
    *("safehttpx", "semantic-version", "hf-xet", "pywin32", "pywin32-ctypes", "brotli", "orjson", "colorama"),
]
VERBS = {
    "plan": "Show what a build would do, and touch nothing.",
    "build": "Derive the images, strip them, check them.",
    "publish": "Push, sign and attest what was built.",
    "verify": "Pull anonymously, check everything again, write the evidence.",
    "review": "Re-check an evidence folder, offline.",
    "scan": "Scan any image or layout for future history and fixtures: -- REFERENCE|LAYOUT [--base-commit SHA].",
    "policies": "Show the policies and what each last said.",
    "diff": "Show what changed between two evidence folders: -- OLD NEW.",
    "documents": "Write the release documents from evidence.",
    "diagnose": "Diagnose exported training logs: -- LOG.",
    "schemas": "Write the JSON Schemas of the declarative files.",
    "bench": "Measure the figures and print them beside what is to be reached.",
    "up": "Start the local target's services.",
    "down": "Stop the local target's services.",
    "status": "Show the local target's services.",
}


def environment(session: nox.Session, folder: Path = ENVIRONMENT, lock: Path = LOCK) -> str:
    """The interpreter of an environment, made again when its lock changes; all sessions but one share the first."""
    stamp, python = folder / "lock.sha256", str(folder / "bin" / "python")
    wanted = f"{sys.version_info.minor} {hashlib.sha256(lock.read_bytes()).hexdigest()}"
    if not stamp.exists() or stamp.read_text() != wanted:
        session.log(f"installing {lock} into {folder}")
        session.run(sys.executable, "-m", "venv", "--clear", str(folder), silent=True)
        session.run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", str(lock))
        stamp.write_text(wanted)
    return python


def declare(verb: str, text: str) -> None:
    """One session that runs one verb."""

    def run(session: nox.Session) -> None:
        session.run(environment(session), "-m", "pipeline", verb, *session.posargs)

    run.__doc__ = text
    nox.session(name=verb, venv_backend="none")(run)


for name, summary in VERBS.items():
    declare(name, summary)


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run every test: unit, contract, integration, end to end. A missing service is a failure."""
    session.run(environment(session), "-m", "pytest", *session.posargs)


@nox.session(venv_backend="none")
def fuzz(session: nox.Session) -> None:
    """Fuzz the readers of pipeline/scan, 60 s each: -- [TARGET] [-max_total_time=600]."""
    here = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor} {sysconfig.get_platform()}"
    if here not in [f"cpython 3.{minor} linux-x86_64" for minor in (11, 12, 13)]:
        session.error(f"atheris has no wheel for {here}: run this with CPython 3.11 to 3.13 on x86-64 Linux")
    python = environment(session, Path(".nox/fuzz"), Path("tests/fuzz.lock"))
    session.run(python, "-m", "tests.fuzz", *session.posargs)


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Check style, types and the import graph."""
    python = environment(session)
    for command in ("ruff check .", "ruff format --check .", "mypy"):
        session.run(python, "-m", *command.split())
    session.run(str(Path(python).with_name("lint-imports")))


@nox.session
def lock(session: nox.Session) -> None:
    """Resolve requirements.lock again from pyproject.toml, with hashes, for Python 3.11 and later."""
    session.install("uv")
    left_out = [argument for name in LEFT_OUT for argument in ("--no-emit-package", name)]
    command = "uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url"
    options = ["--no-header", "--no-annotate", "--group", "test", "--group", "lint", *left_out, *session.posargs]
    session.run(*command.split(), *options, "pyproject.toml", "-o", str(LOCK), silent=True)

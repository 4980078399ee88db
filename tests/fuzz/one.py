"""`python -m tests.fuzz.one TARGET [libFuzzer's options]`: fuzz one target until its time is over or it crashes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import atheris

from pipeline.errors import HostileInputError

FOLDER = Path(".pipeline") / "fuzz"
DEFAULTS = ("-max_total_time=60", "-max_len=8192", "-timeout=20", "-rss_limit_mb=1024", "-print_final_stats=1")


def tolerating(read: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The same reader, whose one allowed error is no crash."""

    def test_one(data: bytes) -> None:
        try:
            read(data)
        except HostileInputError:
            return

    return test_one


def write_corpus(target: str, seeds: tuple[bytes, ...]) -> Path:
    """The seeds beside what earlier runs have found."""
    corpus = FOLDER / target / "corpus"
    FOLDER.parent.mkdir(mode=0o700, exist_ok=True)
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    return corpus


def main(target: str, options: list[str]) -> None:
    """Options given later win over the defaults; a crashing input is kept beside the corpus."""
    with atheris.instrument_imports(include=["pipeline.scan", "zipfile"]):
        module = importlib.import_module(f"tests.fuzz.{target}")
    corpus = write_corpus(target, module.SEEDS)
    keep = f"-artifact_prefix={FOLDER / target}/"
    atheris.Setup([sys.argv[0], *DEFAULTS, keep, *options, str(corpus)], tolerating(module.read))
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

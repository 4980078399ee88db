"""What people see while it runs: a progress bar on a terminal, one plain line a finished step elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn


class TerminalReporter:
    """`ports.Reporter` for a person: bars while a step runs, a line when it is done."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)

    @contextmanager
    def step(self, text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """A bar with what is done of `total`; gone when the step ends."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        started = time.monotonic()
        with Progress(*columns, TimeElapsedColumn(), console=self._console, transient=True) as progress:
            task = progress.add_task(text, total=total)
            yield lambda done: progress.advance(task, done)
        self._console.print(f"  {text}  {time.monotonic() - started:.1f} s", markup=False, highlight=False)

    def note(self, text: str) -> None:
        """One line."""
        self._console.print(f"  {text}", markup=False, highlight=False)


class LineReporter:
    """`ports.Reporter` for a log: no control characters, a line when a step begins and one when it is done."""

    @contextmanager
    def step(self, text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Two lines."""
        started = time.monotonic()
        self.note(f"{text} ...")
        yield lambda _done: None
        self.note(f"{text}: done in {time.monotonic() - started:.1f} s")

    def note(self, text: str) -> None:
        """One line, at once."""
        print(f"  {text}", file=sys.stderr, flush=True)


def make_reporter() -> TerminalReporter | LineReporter:
    """Bars when standard error is a terminal."""
    return TerminalReporter() if sys.stderr.isatty() else LineReporter()

"""What people see while it runs: a progress bar on a terminal, one plain line a finished step elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn


class TerminalReporter:
    """`ports.Reporter` for a person: a bar for each step that runs, a line for each that is done."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._lock = threading.Lock()
        self._running = 0
        self._progress = self._make_progress()

    @contextmanager
    def step(self, text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """A bar with what is done of `total`; gone when the step ends. Steps of several threads are shown together."""
        started, progress = time.monotonic(), self._enter()
        task = progress.add_task(text, total=total)
        try:
            yield lambda done: progress.advance(task, done)
        finally:
            progress.remove_task(task)
            self._leave()
        self.note(f"{text}  {time.monotonic() - started:.1f} s")

    def note(self, text: str) -> None:
        """One line."""
        self._console.print(f"  {text}", markup=False, highlight=False, soft_wrap=True)

    def _enter(self) -> Progress:
        # a terminal has room for one live display: it runs while any step does
        with self._lock:
            if self._running == 0:
                self._progress = self._make_progress()
                self._progress.start()
            self._running += 1
            return self._progress

    def _leave(self) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self._progress.stop()

    def _make_progress(self) -> Progress:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        return Progress(*columns, TimeElapsedColumn(), console=self._console, transient=True)


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

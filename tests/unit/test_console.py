"""Progress on a terminal, plain lines elsewhere; steps of several threads together."""

from __future__ import annotations

import io
import threading
import time

import pytest
from rich.console import Console

from pipeline.adapters.console import LineReporter, TerminalReporter


def terminal() -> tuple[TerminalReporter, io.StringIO]:
    """A reporter on a pretended terminal, and what it wrote."""
    written = io.StringIO()
    return TerminalReporter(Console(file=written, force_terminal=True, width=100)), written


def test_lines_have_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    with LineReporter().step("push", 10) as advance:
        advance(10)

    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "  push ..."
    assert lines[1].startswith("  push: done in ")
    assert "\x1b" not in "".join(lines)


def test_terminal_shows_a_bar_while_it_runs_and_a_line_when_it_is_done() -> None:
    reporter, written = terminal()
    with reporter.step("scan", 4) as advance:
        advance(4)
        time.sleep(0.3)  # a refresh comes ten times a second

    assert "100%" in written.getvalue()
    assert "  scan  0." in written.getvalue()


def test_steps_of_several_threads_share_the_display() -> None:
    reporter, written = terminal()
    barrier = threading.Barrier(3)

    def work(name: str) -> None:
        with reporter.step(name, 1) as advance:
            barrier.wait()
            advance(1)

    threads = [threading.Thread(target=work, args=(f"image-{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"  image-{number}  " in written.getvalue() for number in range(3))


def test_a_step_that_fails_leaves_no_line_and_the_display_works_on() -> None:
    reporter, written = terminal()
    with pytest.raises(ValueError, match="broken"), reporter.step("one"):
        raise ValueError("broken")
    with reporter.step("two"):
        pass

    assert "  one  " not in written.getvalue()
    assert "  two  0.0 s" in written.getvalue()

"""Retry-After, back-off and budgets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.adapters.registry_errors import clean_text, load_refusal, make_error
from pipeline.adapters.registry_retry import Clock, RetryBudget, Temporary, load_retry_after, run
from pipeline.errors import AbsentError, AccessError, IntegrityError, PipelineError, ServiceError

CLOCK = Clock(wall=lambda: 1_000_000_000.0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 12 ", 12.0),
        ("Sun, 09 Sep 2001 01:46:50 GMT", 10.0),
        ("Sun, 09 Sep 2001 01:46:00 GMT", 0.0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),
        ("Sun, 99 Sep 2001 01:46:50 GMT", None),
        ("9" * 65, None),
    ],
)
def test_retry_after(text: str | None, seconds: float | None) -> None:
    assert load_retry_after(text, CLOCK) == seconds


@given(st.text(max_size=64))
def test_any_retry_after_is_a_wait_or_nothing(text: str) -> None:
    found = load_retry_after(text, CLOCK)
    assert found is None or found >= 0


@given(
    attempts=st.integers(1, 20),
    waiting_s=st.floats(0, 200),
    asked=st.none() | st.floats(0, 1e6),
    jitter=st.floats(0, 1),
)
def test_no_budget_is_ever_exceeded(attempts: int, waiting_s: float, asked: float | None, jitter: float) -> None:
    pauses: list[float] = []
    calls = 0

    def fail() -> None:
        nonlocal calls
        calls += 1
        raise Temporary(ServiceError("busy"), asked)

    with pytest.raises(ServiceError, match="gave up"):
        run(fail, RetryBudget(attempts, waiting_s), Clock(sleep=pauses.append, jitter=lambda: jitter))
    assert calls <= attempts
    assert sum(pauses) <= waiting_s + 1e-6
    assert all(0 <= pause <= 30 for pause in pauses)


def test_what_is_not_temporary_passes_through() -> None:
    def fail() -> None:
        raise AccessError("no")

    with pytest.raises(AccessError, match=r"^no$"):
        run(fail, RetryBudget(), Clock(sleep=lambda seconds: pytest.fail("slept")))


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (404, "MANIFEST_UNKNOWN", AbsentError),
        (400, "DIGEST_INVALID", IntegrityError),
        (400, "MANIFEST_INVALID", ServiceError),
        (413, "", ServiceError),
        (503, "", ServiceError),
        (418, "", ServiceError),
    ],
)
def test_codes_decide(status: int, code: str, error: type[PipelineError]) -> None:
    refusal = load_refusal(status, f'{{"errors":[{{"code":"{code}"}}]}}'.encode())
    made = make_error(refusal, "do it", "here")
    assert type(made) is error
    assert made.what.startswith(f"cannot do it: the registry answered {status} {code}".strip())
    assert made.remedy


def test_text_from_outside_is_fit_for_a_terminal() -> None:
    assert clean_text("a\x1b[2J\u202eb\r\nc\u2028d\0") == "a [2J b c d"
    assert clean_text("key=hunter2!", ["hunter2"]) == "key=[removed]!"
    assert len(clean_text("x" * 10_000)) == 201


@given(st.text(max_size=500))
def test_any_text_becomes_one_printable_line(text: str) -> None:
    assert clean_text(text).isprintable()

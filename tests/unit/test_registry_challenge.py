"""WWW-Authenticate, parsed strictly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.adapters.registry_auth import Challenge, Scope, load_challenges, make_token_url
from pipeline.errors import HostileInputError


@pytest.mark.parametrize(
    ("text", "challenges"),
    [
        ("", []),
        ("Basic", [("basic", {})]),
        ('Bearer realm="https://a.test/t",service="s"', [("bearer", {"realm": "https://a.test/t", "service": "s"})]),
        ('bearer  REALM = "x" , Scope=a', [("bearer", {"realm": "x", "scope": "a"})]),
        ('Bearer realm="a,b=\\"c\\""', [("bearer", {"realm": 'a,b="c"'})]),
        (
            'Basic realm="r", Bearer realm="b",service=s',
            [("basic", {"realm": "r"}), ("bearer", {"realm": "b", "service": "s"})],
        ),
        ("Negotiate, Basic realm=x", [("negotiate", {}), ("basic", {"realm": "x"})]),
    ],
)
def test_challenges(text: str, challenges: list[tuple[str, dict[str, str]]]) -> None:
    assert load_challenges(text, "x") == tuple(Challenge(scheme, parameters) for scheme, parameters in challenges)


@pytest.mark.parametrize(
    "text",
    [
        'Bearer realm="unfinished',
        'Bearer realm="a",realm="b"',
        "Bearer realm=a/b",
        'realm="x"',
        "Bearer =x",
        "Bearer " + "a" * 5000,
    ],
)
def test_a_malformed_challenge_is_refused(text: str) -> None:
    with pytest.raises(HostileInputError):
        load_challenges(text, "x")


@given(st.text(alphabet='Bear realm="\\,; \tx=/', max_size=200))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        challenges = load_challenges(text, "x")
    except HostileInputError:
        return
    assert all(challenge.scheme == challenge.scheme.lower() for challenge in challenges)


def test_a_token_url_keeps_the_realms_query() -> None:
    challenge = Challenge("bearer", {"realm": "https://t.test/token?a=1", "service": "r & s", "scope": "everything"})
    url = make_token_url(challenge, Scope("r.test", "a/b"), "x")
    assert url == "https://t.test/token?a=1&service=r+%26+s&scope=repository%3Aa%2Fb%3Apull"


def test_a_registry_elsewhere_cannot_name_this_machine() -> None:
    challenge = Challenge("bearer", {"realm": "http://127.0.0.1:9/token"})
    assert make_token_url(challenge, Scope("127.0.0.1:5000", "a"), "x").startswith("http://127.0.0.1:9/token?scope=")
    with pytest.raises(HostileInputError, match="this machine"):
        make_token_url(challenge, Scope("ghcr.io", "a"), "x")


def test_a_scope_asks_for_no_more_than_it_needs() -> None:
    assert Scope("r", "a/b").texts == ("repository:a/b:pull",)
    assert Scope("r", "a/b", push=True).texts == ("repository:a/b:pull,push",)
    assert Scope("r", "a/b", push=True, mount_from="c").texts == ("repository:a/b:pull,push", "repository:c:pull")

"""Where the registry client may go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.adapters.registry_url import Origin, follow, load_origin, registry_url
from pipeline.errors import HostileInputError


@pytest.mark.parametrize(
    ("registry", "url"),
    [
        ("ghcr.io", "https://ghcr.io"),
        ("registry.test:5000", "https://registry.test:5000"),
        ("127.0.0.1:5710", "http://127.0.0.1:5710"),
        ("127.9.9.9:80", "http://127.9.9.9:80"),
        ("localhost:5710", "http://localhost:5710"),
        ("[::1]:5710", "http://[::1]:5710"),
        ("localhost.evil.test", "https://localhost.evil.test"),
        ("127.0.0.1.evil.test", "https://127.0.0.1.evil.test"),
        ("docker.io", "https://registry-1.docker.io"),
    ],
)
def test_only_loopback_is_plain(registry: str, url: str) -> None:
    assert registry_url(registry) == url


def test_an_origin_has_its_default_port() -> None:
    assert load_origin("https://ghcr.io/v2/", "x") == Origin("https", "ghcr.io", 443)
    assert load_origin("https://ghcr.io:443/", "x") == load_origin("https://GHCR.io/", "x")


@pytest.mark.parametrize(
    "url",
    [
        "http://ghcr.io/",
        "ftp://ghcr.io/",
        "//ghcr.io/",
        "https:///path",
        "https://user@ghcr.io/",
        "https://a\\@b/",
        "https://a b/",
        "https://a/\r\nX: y",
        "https://ghcr.io:99999/",
        "https://ghcr.io:x/",
        "https://[::1/",
        "https://ⓖhcr.io/",
        "https://ghcr.io/" + "x" * 9000,
        "",
    ],
)
def test_a_bad_url_is_refused(url: str) -> None:
    with pytest.raises(HostileInputError):
        load_origin(url, "x")


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/v2/x", "https://ghcr.io/v2/x"),
        ("y?z=1", "https://ghcr.io/v2/y?z=1"),
        ("https://storage.test/b", "https://storage.test/b"),
        ("//storage.test/b", "https://storage.test/b"),
    ],
)
def test_a_location_is_relative_or_absolute(location: str, target: str) -> None:
    assert follow("https://ghcr.io/v2/a", location, "x") == target


@pytest.mark.parametrize(
    "location",
    ["http://storage.test/", "http://127.0.0.1/", "https://127.0.0.1/", "https://localhost/", "https://[::1]/"],
)
def test_a_location_off_limits_is_refused(location: str) -> None:
    with pytest.raises(HostileInputError):
        follow("https://ghcr.io/v2/a", location, "x")


def test_encryption_is_not_given_up_even_on_this_machine() -> None:
    with pytest.raises(HostileInputError, match="https to http"):
        follow("https://127.0.0.1/a", "http://127.0.0.1/b", "x")


@given(st.text(max_size=60))
def test_any_location_is_followed_or_refused(location: str) -> None:
    try:
        target = follow("https://ghcr.io/v2/a", location, "x")
    except HostileInputError:
        return
    assert target.startswith("https://")
    assert not load_origin(target, "x").is_loopback

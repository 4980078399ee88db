"""Who is told what: tokens, credentials and where they never go. Each test is one way to lose a secret, or a login."""

from __future__ import annotations

import base64
import logging
import subprocess
import sys
import traceback
from collections.abc import Iterator

import pytest

from pipeline.adapters.registry import AnonymousRegistry, CredentialedRegistry, Credentials, RetryBudget
from pipeline.errors import AccessError, HostileInputError, PipelineError, ServiceError
from pipeline.model.reference import Reference
from tests.fakes.registry_clock import ManualClock
from tests.fakes.registry_content import MemoryStore, descriptor_of, make_image
from tests.fakes.registry_faults import answering, with_header
from tests.fakes.registry_server import PASSWORD, USER, Fault, RegistryServer, Reply, send

IMAGE = make_image(b"a layer")
DATA = b"a layer to push"
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as made:
        fill(made)
        yield made


@pytest.fixture
def elsewhere() -> Iterator[RegistryServer]:
    """Another host, as far as origins go: same address, other port."""
    with RegistryServer(auth="none") as made:
        fill(made)
        yield made


def fill(server: RegistryServer) -> None:
    repository = server.content.repository("team/image")
    repository.put("1", IMAGE)
    repository.blobs[descriptor_of(b"a layer").digest] = b"a layer"


def publisher(server: RegistryServer, **more: object) -> CredentialedRegistry:
    return CredentialedRegistry(Credentials(server.host, USER, PASSWORD), clock=ManualClock().clock, **more)  # type: ignore[arg-type]


def reference(server: RegistryServer) -> Reference:
    return Reference(server.host, "team/image", "1")


def push(registry: CredentialedRegistry, server: RegistryServer) -> None:
    registry.push_blob(reference(server), descriptor_of(DATA), MemoryStore(DATA), None)


def read_blob(registry: AnonymousRegistry | CredentialedRegistry, server: RegistryServer) -> bytes:
    return b"".join(registry.fetch_blob(reference(server), descriptor_of(b"a layer")))


def authorizations(server: RegistryServer) -> set[str]:
    """Authorization headers that arrived, without those of tokens that the server itself gave to nobody."""
    return {seen.authorization for seen in server.seen if seen.authorization}


def test_the_anonymous_reader_never_sends_an_identity(server: RegistryServer) -> None:
    AnonymousRegistry().fetch_manifest(reference(server))
    asked = [seen for seen in server.seen if seen.path.startswith("/token")]
    assert len(asked) == 1
    assert asked[0].authorization == ""
    assert not any("Basic" in value for value in authorizations(server))


def test_the_anonymous_reader_cannot_reach_the_code_for_credentials() -> None:
    program = (
        "import sys; import pipeline.adapters.registry_pull as m; m.AnonymousRegistry();"
        "print([n for n in sys.modules if 'credential' in n and n.startswith('pipeline') or n == 'netrc'])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_environment_and_netrc_do_not_matter(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / ".netrc").write_text(f"machine 127.0.0.1 login {USER} password {PASSWORD}\n")
    (home / ".docker").mkdir()
    (home / ".docker" / "config.json").write_text(f'{{"auths":{{"{server.host}":{{"auth":"{BASIC}"}}}}}}')
    (home / ".netrc").chmod(0o600)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://{USER}:{PASSWORD}@127.0.0.1:1/")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("DOCKER_CONFIG", str(home / ".docker"))
    assert AnonymousRegistry().fetch_manifest(reference(server)) == IMAGE
    assert not any("Basic" in value for value in authorizations(server))


def test_cookies_are_not_kept(server: RegistryServer) -> None:
    reader = AnonymousRegistry()
    server.inject(with_header("Set-Cookie", "session=1; Path=/"), path="/manifests/")
    reader.fetch_manifest(reference(server))
    reader.fetch_manifest(reference(server))
    assert not any("cookie" in seen.headers for seen in server.seen)


def test_a_private_package_is_reported_as_such(server: RegistryServer) -> None:
    server.is_private = True
    with pytest.raises(AccessError, match="401") as raised:
        AnonymousRegistry().fetch_manifest(reference(server))
    assert "not public" in raised.value.remedy
    assert server.count("GET", "/manifests/") == 2


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_service_that_refuses_anybody_means_private(server: RegistryServer, status: int) -> None:
    server.inject(answering(status, b'{"errors":[{"code":"DENIED"}]}'), path="/token")
    with pytest.raises(AccessError) as raised:
        AnonymousRegistry().fetch_manifest(reference(server))
    assert "not public" in raised.value.remedy


def test_a_token_service_that_is_busy_is_asked_again(server: RegistryServer) -> None:
    time = ManualClock()
    server.inject(answering(503, Retry_After="3"), path="/token")
    assert AnonymousRegistry(clock=time.clock).fetch_manifest(reference(server)) == IMAGE
    assert time.pauses == [3.0]


def test_only_what_is_needed_is_asked_for(server: RegistryServer) -> None:
    push(publisher(server), server)
    asked = [seen.path for seen in server.seen if seen.path.startswith("/token")]
    assert asked == ["/token?service=test%2C+registry&scope=repository%3Ateam%2Fimage%3Apull%2Cpush"]


def test_a_token_is_used_until_it_expires(server: RegistryServer) -> None:
    time = ManualClock()
    reader = AnonymousRegistry(clock=time.clock)
    for _ in range(3):
        reader.fetch_manifest(reference(server))
    assert server.count("GET", "/token") == 1
    time.now_s += 301
    reader.fetch_manifest(reference(server))
    assert server.count("GET", "/token") == 2


def test_a_token_that_is_no_longer_accepted_is_renewed_once(server: RegistryServer) -> None:
    reader = AnonymousRegistry()
    reader.fetch_manifest(reference(server))
    server.tokens.clear()
    assert reader.fetch_manifest(reference(server)) == IMAGE


def test_basic_is_sent_only_when_challenged() -> None:
    with RegistryServer(auth="basic") as server:
        push(publisher(server), server)
        assert server.seen[0].authorization == ""
        assert {seen.authorization for seen in server.seen[1:]} == {f"Basic {BASIC}"}


def test_anonymous_has_no_answer_to_basic() -> None:
    with RegistryServer(auth="basic") as server, pytest.raises(AccessError) as raised:
        AnonymousRegistry().fetch_manifest(reference(server))
    assert "not public" in raised.value.remedy


def test_credentials_are_for_one_registry(server: RegistryServer, elsewhere: RegistryServer) -> None:
    registry = publisher(server)
    for operation in (
        lambda: registry.fetch_manifest(reference(elsewhere)),
        lambda: registry.push_manifest(reference(elsewhere), IMAGE),
        lambda: push(registry, elsewhere),
        lambda: read_blob(registry, elsewhere),
        lambda: registry.fetch_referrers(reference(elsewhere).with_digest(IMAGE.digest)),
    ):
        with pytest.raises(AccessError, match="the credentials are for"):
            operation()
    assert elsewhere.seen == []


def test_a_redirect_takes_no_authorization_along(server: RegistryServer, elsewhere: RegistryServer) -> None:
    digest = descriptor_of(b"a layer").digest
    server.inject(answering(307, Location=f"{elsewhere.url}/v2/team/image/blobs/{digest}?sig=x"), path="/blobs/")
    assert read_blob(publisher(server), server) == b"a layer"
    assert [seen.authorization for seen in elsewhere.seen] == [""]


def test_a_redirect_there_and_back_does_not_get_it_again(server: RegistryServer, elsewhere: RegistryServer) -> None:
    digest = descriptor_of(b"a layer").digest
    server.inject(answering(307, Location=f"{elsewhere.url}/v2/x/blobs/y"), path="/blobs/")
    elsewhere.inject(answering(307, Location=f"{server.url}/v2/team/image/blobs/{digest}"), path="/blobs/y")
    with pytest.raises(ServiceError):
        read_blob(publisher(server, budget=RetryBudget(attempts=1)), server)
    assert server.seen[-1].authorization == ""


def test_a_challenge_of_a_redirected_host_is_not_answered(server: RegistryServer, elsewhere: RegistryServer) -> None:
    elsewhere.auth = "token"
    registry = publisher(server)
    registry.fetch_manifest(reference(server))
    server.inject(answering(307, Location=f"{elsewhere.url}/v2/team/image/blobs/x"), path="/blobs/")
    with pytest.raises(ServiceError, match="storage host"):
        read_blob(registry, server)
    assert [(seen.path, seen.authorization) for seen in elsewhere.seen] == [("/v2/team/image/blobs/x", "")]


def test_an_upload_elsewhere_goes_without_authorization(server: RegistryServer, elsewhere: RegistryServer) -> None:
    elsewhere.inject(answering(201), method="PUT", path="/up")
    server.inject(answering(202, Location=f"{elsewhere.url}/v2/up/blobs/x?sig=abc"), method="POST", path="/uploads/")
    push(publisher(server), server)
    assert [(seen.authorization, seen.body_bytes) for seen in elsewhere.seen] == [("", len(DATA))]
    assert elsewhere.seen[0].path.startswith("/v2/up/blobs/x?sig=abc&digest=sha256%3A")


def test_a_relative_and_an_absolute_location_both_work(server: RegistryServer) -> None:
    def make_absolute(handler: object, reply: Reply) -> None:
        reply.headers["Location"] = server.url + reply.headers["Location"]

        send(handler, reply)  # type: ignore[arg-type]

    server.inject(make_absolute, method="POST", path="/uploads/")
    push(publisher(server), server)
    assert server.content.repository("team/image").blobs[descriptor_of(DATA).digest] == DATA


REALMS = {
    "plain-http": "http://tokens.test/token",
    "file": "file:///etc/passwd",
    "user": "https://user@tokens.test/token",
    "empty": "",
    "fragment": "https://tokens.test/token#x",
    "backslash": "https://tokens.test\\\\@evil.test/token",
}


@pytest.mark.parametrize("realm", REALMS.values(), ids=REALMS.keys())
def test_a_bad_realm_is_refused(server: RegistryServer, realm: str) -> None:
    server.realm = realm
    for registry in (AnonymousRegistry(), publisher(server)):
        with pytest.raises(HostileInputError):
            registry.fetch_manifest(reference(server))


def test_credentials_do_not_go_to_a_token_service_on_another_host(server: RegistryServer) -> None:
    server.realm = "https://tokens.test/token"
    with pytest.raises(AccessError, match=r"another host: tokens\.test") as raised:
        push(publisher(server), server)
    assert "token_hosts" in raised.value.remedy


TOKENS: dict[str, Fault] = {
    "not-json": answering(200, b"<html>"),
    "no-token": answering(200, b"{}"),
    "header-injection": answering(200, b'{"token":"a\\r\\nX-Evil: 1"}'),
    "deep": answering(200, b"[" * 60_000),
    "too-long": answering(200, b'{"token":"' + b"a" * 20_000 + b'"}'),
    "not-text": answering(200, b'{"token":7}'),
    "endless": answering(200, b" " * 100_000),
}


@pytest.mark.parametrize("fault", TOKENS.values(), ids=TOKENS.keys())
def test_a_malformed_token_is_refused(server: RegistryServer, fault: Fault) -> None:
    server.inject(fault, path="/token")
    with pytest.raises(HostileInputError):
        AnonymousRegistry().fetch_manifest(reference(server))


def test_a_token_service_may_not_redirect(server: RegistryServer, elsewhere: RegistryServer) -> None:
    server.inject(answering(307, Location=f"{elsewhere.url}/token"), path="/token")
    with pytest.raises(ServiceError, match="307"):
        push(publisher(server), server)
    assert elsewhere.seen == []


@pytest.mark.parametrize("echo", [PASSWORD, BASIC, "TOKEN"])
def test_a_registry_that_echoes_a_secret_does_not_get_it_printed(
    server: RegistryServer, echo: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    def fault(handler: object, reply: Reply) -> None:

        secret = next(iter(server.tokens)) if echo == "TOKEN" else echo
        body = f'{{"errors":[{{"code":"DENIED {secret}","message":"no: {secret}"}}]}}'.encode()
        send(handler, Reply(403, body))  # type: ignore[arg-type]

    server.inject(fault, method="HEAD", path="/blobs/")
    server.inject(fault, method="POST", path="/blobs/")
    server.content.repository("team/image").blobs.clear()
    with pytest.raises(PipelineError) as raised:
        push(publisher(server), server)
        push(publisher(server), server)
    shown = str(raised.value) + "".join(traceback.format_exception(raised.value)) + repr(raised.value) + caplog.text
    for secret in (PASSWORD, BASIC, *server.tokens):
        assert secret not in shown


def test_wrong_credentials_say_what_to_do(server: RegistryServer) -> None:
    registry = CredentialedRegistry(Credentials(server.host, USER, "wrong-password"))
    with pytest.raises(AccessError, match="401") as raised:
        push(registry, server)
    assert USER in raised.value.remedy
    assert "wrong-password" not in str(raised.value)
    assert server.count("GET", "/token") == 1


def test_no_right_to_write_says_what_to_do(server: RegistryServer) -> None:
    body = b'{"errors":[{"code":"DENIED","message":"permission_denied: write_package"}]}'
    server.inject(answering(403, body), method="POST", path="/uploads/")
    with pytest.raises(AccessError, match="403 DENIED") as raised:
        push(publisher(server), server)
    assert "right to write" in raised.value.remedy

"""Where a registry client may go: which URLs are well formed, which are encrypted, and which a redirect may lead to.

Loopback may be plain http; everything else is https. A URL is checked against RFC 3986's characters before it is
parsed, so that no two parsers can read different hosts out of it.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from pipeline.errors import HostileInputError

MAX_URL_CHARS = 8192
# Docker Hub's name in references is not the host of its API (https://docs.docker.com/registry/).
_API_HOSTS = {"docker.io": "registry-1.docker.io"}
_URL = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Origin:
    """Scheme, host and port: what credentials belong to."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this machine by name or address."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def registry_url(registry: str) -> str:
    """Root URL of a registry's API: `https://host`, or `http://host` on loopback."""
    host = _API_HOSTS.get(registry, registry)
    plain = f"http://{host}"
    return plain if _split(plain, registry).is_loopback else f"https://{host}"


def load_origin(url: str, where: str) -> Origin:
    """Origin of a URL; HostileInputError when it is malformed, carries a user, or is plain http off this machine."""
    origin = _split(url, where)
    if origin.scheme == "http" and not origin.is_loopback:
        raise HostileInputError(f"an unencrypted URL on host {origin.host}", where=where, remedy="use https")
    return origin


def follow(current: str, location: str, where: str) -> str:
    """The absolute URL that `location` means at `current`; HostileInputError when it leads out of bounds.

    From https only to https; from another machine never to this one.
    """
    if not 0 < len(location) <= MAX_URL_CHARS:
        raise HostileInputError(f"a Location of {len(location)} characters", where=where)
    target = urljoin(current, location)
    source, destination = load_origin(current, where), load_origin(target, where)
    if source.scheme == "https" and destination.scheme == "http":
        raise HostileInputError(f"a redirect from https to http on host {destination.host}", where=where)
    if destination.is_loopback and not source.is_loopback:
        raise HostileInputError("a redirect from another machine to this one", where=where)
    return target


def _split(url: str, where: str) -> Origin:
    if len(url) > MAX_URL_CHARS or _URL.fullmatch(url) is None:
        raise HostileInputError("a malformed URL", where=where)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise HostileInputError("a malformed URL", where=where) from error
    if not host or "@" in parts.netloc:
        raise HostileInputError("a URL without a host, or with a user in it", where=where)
    return Origin(parts.scheme, host, port or _PORTS[parts.scheme])

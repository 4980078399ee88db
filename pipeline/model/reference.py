"""Image references: `registry/repository[:tag][@digest]`, without Docker's implicit defaults.

Grammar: https://github.com/distribution/reference (domain, path-component, tag). A reference without a registry is
refused: an implied registry is a way to be served something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.errors import ConfigError
from pipeline.model.digest import is_digest

_REGISTRY = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<registry>{_REGISTRY})/(?P<repository>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(?:@(?P<digest>[^@\s]+))?"
)


@dataclass(frozen=True, order=True)
class Reference:
    """Where an image is: registry host with port, repository, and a tag, a digest, both or neither."""

    registry: str
    repository: str
    tag: str | None = None
    digest: str | None = None

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.registry}/{self.repository}{tag}{digest}"

    @property
    def selector(self) -> str:
        """What a registry is asked for: the digest where there is one, else the tag."""
        selector = self.digest or self.tag
        if selector is None:
            raise ConfigError("a reference without tag and digest names nothing", where=str(self))
        return selector

    def with_digest(self, digest: str) -> Reference:
        """The same repository, pinned."""
        return Reference(self.registry, self.repository, None, digest)

    def with_tag(self, tag: str) -> Reference:
        """The same repository, by tag."""
        return Reference(self.registry, self.repository, tag, None)


def load_reference(text: str, where: str, *, pinned: bool = False) -> Reference:
    """Parse text; ConfigError when it is not a reference, or when `pinned` and it has no digest."""
    match = _REFERENCE.fullmatch(text)
    if match is None or (match["digest"] is not None and not is_digest(match["digest"])):
        raise ConfigError(f"not an image reference: {text!r}", where=where, remedy="write registry/repository@sha256:…")
    if "." not in match["registry"] and ":" not in match["registry"] and match["registry"] != "localhost":
        raise ConfigError(
            f"reference without a registry host: {text!r}", where=where, remedy="begin with the host, as in ghcr.io/…"
        )
    if pinned and match["digest"] is None:
        raise ConfigError(
            f"a tag where a digest belongs: {text!r}",
            where=where,
            remedy="pin it: registry/repository@sha256:…, since a tag can move",
        )
    return Reference(match["registry"], match["repository"], match["tag"], match["digest"])

"""Reading an SBOM, ours or not, and checking one: the 1.6 schema (offline), and that its references hold together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.errors import HostileInputError
from pipeline.model.finding import Finding

if TYPE_CHECKING:
    from cyclonedx.validation.json import JsonStrictValidator

MAX_SBOM_BYTES = 32 << 20
_MAX_FINDINGS = 20


class _View(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class LicenceText(_View):
    """An SPDX id or a name."""

    id: str | None = None
    name: str | None = None


class LicenceChoice(_View):
    """A licence, or an expression."""

    license: LicenceText | None = None
    expression: str | None = None


class Hash(_View):
    """Algorithm and hex."""

    alg: str
    content: str


class NamedValue(_View):
    """A property."""

    name: str
    value: str = ""


class SbomComponent(_View):
    """A component as far as checks and reports read it."""

    type: str
    name: str
    version: str = ""
    purl: str = ""
    ref: str = Field(default="", alias="bom-ref")
    choices: tuple[LicenceChoice, ...] = Field(default=(), alias="licenses")
    hashes: tuple[Hash, ...] = ()
    properties: tuple[NamedValue, ...] = ()

    @property
    def licences(self) -> tuple[str, ...]:
        """Expressions, SPDX ids and names, as written."""
        texts = [c.expression or (c.license and (c.license.id or c.license.name)) for c in self.choices]
        return tuple(text for text in texts if text)

    def value(self, name: str) -> str:
        """Of the pipeline's own property (`layer`, `location`, `ecosystem`, …); empty when absent."""
        return next((each.value for each in self.properties if each.name == f"pipeline:{name}"), "")


class _Metadata(_View):
    timestamp: str = ""
    component: SbomComponent | None = None


class _Edge(_View):
    ref: str
    needs: tuple[str, ...] = Field(default=(), alias="dependsOn")


class Composition(_View):
    """A statement of completeness over the components that it lists."""

    aggregate: str
    assemblies: tuple[str, ...] = ()


class Sbom(_View):
    """A CycloneDX document as far as checks and reports read it; `raw` bytes stay with the caller."""

    spec_version: str = Field(alias="specVersion")
    serial_number: str = Field(default="", alias="serialNumber")
    metadata: _Metadata = Field(default_factory=_Metadata)
    components: tuple[SbomComponent, ...] = ()
    dependencies: tuple[_Edge, ...] = ()
    compositions: tuple[Composition, ...] = ()

    @property
    def subject_sha256(self) -> str:
        """Hex of the manifest that the document is of; empty when it does not say."""
        hashes = self.metadata.component.hashes if self.metadata.component else ()
        return next((each.content for each in hashes if each.alg == "SHA-256"), "")

    def packages(self, ecosystem: str) -> tuple[SbomComponent, ...]:
        """Components whose package URL is of this type: deb, pypi, conda."""
        return tuple(each for each in self.components if each.purl.startswith(f"pkg:{ecosystem}/"))


def load_sbom(raw: bytes, where: str) -> Sbom:
    """Parse; HostileInputError names `where` when the bytes are too many or not a CycloneDX document."""
    if len(raw) > MAX_SBOM_BYTES:
        raise HostileInputError(f"an SBOM of {len(raw)} bytes; the limit is {MAX_SBOM_BYTES}", where=where)
    try:
        return Sbom.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "document"
        raise HostileInputError(f"not a CycloneDX document: {field}: {first['msg']}", where=where) from error


def check_schema(raw: bytes, where: str = "sbom") -> list[Finding]:
    """What is wrong with the bytes against the CycloneDX 1.6 JSON schema that the library carries; no network."""
    try:
        text = raw.decode("utf-8")
        json.loads(text)
        errors = _validator().validate_str(text, all_errors=True)
    except (ValueError, RecursionError) as error:
        return [_finding(f"not JSON: {str(error)[:200]}", where)]
    listed = [] if errors is None else list(errors)
    return [_finding(_located(error.data), where) for error in listed[:_MAX_FINDINGS]]


def check_references(sbom: Sbom, where: str = "sbom") -> list[Finding]:
    """Refs that are missing, used twice, or named by an edge or composition without being there."""
    refs = [each.ref for each in sbom.components]
    refs += [sbom.metadata.component.ref] if sbom.metadata.component else []
    known = set(refs)
    named = {ref for edge in sbom.dependencies for ref in (edge.ref, *edge.needs)}
    named |= {ref for composition in sbom.compositions for ref in composition.assemblies}
    wrong = [f"two components have the bom-ref {ref!r}" for ref in _twice(refs)]
    wrong += ["a component has no bom-ref"] if "" in known else []
    wrong += [f"{ref!r} is referred to but not there" for ref in sorted(named - known)]
    return [_finding(what, where) for what in wrong[:_MAX_FINDINGS]]


def _twice(refs: Iterable[str]) -> Iterator[str]:
    return (ref for ref, count in sorted(Counter(refs).items()) if count > 1 and ref)


def _finding(what: str, where: str) -> Finding:
    return Finding(check="sbom", what=what, where=where, remedy="build again: the pipeline writes the SBOM")


def _located(error: object) -> str:
    path = "/".join(str(part) for part in getattr(error, "absolute_path", ()))
    return f"{path or 'document'}: {str(getattr(error, 'message', error))[:300]}"


@cache
def _validator() -> JsonStrictValidator:
    # imported here: its grammars take more than a second, and most verbs validate nothing
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6)

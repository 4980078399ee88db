"""What the images of a release hold and were made from: packages with licences, inputs with digests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from pipeline.model.evidence import SnapshotPackage
from pipeline.report.facts import ImageFacts, ReleaseFacts
from pipeline.sbom.view import SbomComponent, load_sbom


@dataclass(frozen=True)
class Input:
    """A resolved dependency of the provenance: `digests` are `algorithm:hex`, `images` those that were made from it."""

    kind: str
    name: str
    version: str
    uri: str
    digests: tuple[str, ...]
    images: tuple[str, ...]


def list_packages(facts: ReleaseFacts) -> tuple[SnapshotPackage, ...]:
    """Every component of every SBOM once, with the images that have it; sorted by ecosystem, name and version."""
    owners: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = {}
    for image in facts.images:
        components = load_sbom(image.sbom, f"images/{image.id}/sbom.cdx.json").components
        for key in sorted({(_ecosystem(each), each.name, each.version, each.licences) for each in components}):
            owners.setdefault(key, []).append(image.id)
    return tuple(
        SnapshotPackage(ecosystem=ecosystem, name=name, version=version, licences=licences, images=tuple(images))
        for (ecosystem, name, version, licences), images in sorted(owners.items())
    )


def list_inputs(facts: ReleaseFacts) -> tuple[Input, ...]:
    """Every resolved dependency of every provenance once, with the images that it went into; sorted by kind."""
    owners: dict[tuple[str, str, str, str, tuple[str, ...]], list[str]] = {}
    for image in facts.images:
        for key in sorted({_input_key(each) for each in _dependencies(image)}):
            owners.setdefault(key, []).append(image.id)
    return tuple(Input(*key, images=tuple(images)) for key, images in sorted(owners.items()))


def list_parameters(image: ImageFacts) -> tuple[tuple[str, JsonValue], ...]:
    """Build type, builder and parameters of an image's provenance, by dotted name."""
    predicate = image.predicate("provenance")
    definition, details = _mapping(predicate.get("buildDefinition")), _mapping(predicate.get("runDetails"))
    found: list[tuple[str, JsonValue]] = [
        ("build type", definition.get("buildType")),
        ("builder", _mapping(details.get("builder")).get("id")),
        ("invocation", _mapping(details.get("metadata")).get("invocationId")),
    ]
    for group in ("externalParameters", "internalParameters"):
        found += [(f"{group}.{name}", value) for name, value in sorted(_mapping(definition.get(group)).items())]
    return tuple((name, value) for name, value in found if value is not None)


def layer_origins(image: ImageFacts) -> tuple[str, ...]:
    """What the image's history says of each layer, lowest first; empty text where the history does not fit."""
    said = [entry.created_by or "" for entry in image.config.view.history or () if not entry.empty_layer]
    layers = image.manifest.view.layers
    return tuple(said) if len(said) == len(layers) else ("",) * len(layers)


def _ecosystem(component: SbomComponent) -> str:
    if component.purl.startswith("pkg:"):
        return component.purl[4:].partition("/")[0]
    return component.value("ecosystem") or component.type


def _dependencies(image: ImageFacts) -> Iterable[Mapping[str, JsonValue]]:
    listed = _mapping(image.predicate("provenance").get("buildDefinition")).get("resolvedDependencies")
    return [_mapping(each) for each in listed] if isinstance(listed, list) else []


def _input_key(each: Mapping[str, JsonValue]) -> tuple[str, str, str, str, tuple[str, ...]]:
    notes = _mapping(each.get("annotations"))
    digests = tuple(f"{name}:{value}" for name, value in sorted(_mapping(each.get("digest")).items()))
    name, uri = _text(each.get("name")), _text(each.get("uri"))
    return _text(notes.get("kind")) or name or "other", name, _text(notes.get("version")), uri, digests


def _mapping(value: JsonValue | None) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _text(value: JsonValue | None) -> str:
    return value if isinstance(value, str) else ""

"""Nothing in an image's config or manifest looks like a secret: variables, labels, history, command, annotations."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from pipeline.checks.observations import ImageObservation, ReleaseObservation
from pipeline.checks.secrets import assignments, suspicions, text_suspicions
from pipeline.model.finding import Finding
from pipeline.model.oci import RuntimeConfig
from pipeline.model.release import Section

NAME = "no-secrets"


class Parameters(Section):
    """`public_names` only sound secret. Entropy is in 1/1000 bit a character, of words of `length` or more."""

    public_names: tuple[str, ...]
    entropy_millibits: int = Field(ge=1000, le=8000)
    length: int = Field(ge=16)


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each suspicious value: where it is and why, never the value."""
    return tuple(finding for image in observation.images for finding in _check_image(image, parameters))


def _check_image(image: ImageObservation, parameters: Parameters) -> Iterator[Finding]:
    limits = (parameters.entropy_millibits / 1000, parameters.length)
    remedy = "take it out and revoke it: whoever pulled the image has it"
    for place, name, value in _named(image):
        if name not in parameters.public_names:
            for why in dict.fromkeys(suspicions(name, value, *limits)):
                yield image.finding(NAME, why, where=f"{place} {name}", remedy=remedy)
    for place, text in _texts(image):
        for why in dict.fromkeys(text_suspicions(text, *limits)):
            yield image.finding(NAME, why, where=place, remedy=remedy)


def _named(image: ImageObservation) -> Iterator[tuple[str, str, str]]:
    """Place, name and value of everything that has a name."""
    runtime = image.config.view.config or RuntimeConfig()
    for variable in runtime.env or ():
        name, _, value = variable.partition("=")
        yield "Env", name, value
    for name, value in (runtime.labels or {}).items():
        yield "Labels", name, value
    annotations = [image.manifest.view.annotations, *(layer.annotations for layer in image.manifest.view.layers)]
    for each in annotations:
        for name, value in (each or {}).items():
            yield "annotation", name, value
    for index, line in enumerate(image.config.view.history or ()):
        for name, value in assignments(f"{line.created_by or ''} {line.comment or ''}"):
            yield f"history {index}", name, value


def _texts(image: ImageObservation) -> Iterator[tuple[str, str]]:
    """Place and text of everything that has none."""
    runtime = image.config.view.config or RuntimeConfig()
    for place, words in (("Cmd", runtime.cmd), ("Entrypoint", runtime.entrypoint)):
        yield place, " ".join(words or ())
    for index, line in enumerate(image.config.view.history or ()):
        yield f"history {index}", f"{line.created_by or ''} {line.comment or ''}"

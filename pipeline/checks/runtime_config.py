"""A container of the image starts as the contract says, without anything that a consumer would have to know."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from pipeline.checks.observations import ImageObservation, ReleaseObservation
from pipeline.model.finding import Finding
from pipeline.model.oci import RuntimeConfig
from pipeline.model.release import Section

NAME = "runtime-config"


class Parameters(Section):
    """Accepted values of a config: `users` as written (empty is root), the one port, signals, labels that are due."""

    users: tuple[str, ...] = Field(min_length=1)
    working_dir: str
    port: int = Field(ge=1, le=65535)
    stop_signals: tuple[str, ...] = Field(min_length=1)
    labels: tuple[str, ...]


def check(observation: ReleaseObservation, parameters: Parameters) -> tuple[Finding, ...]:
    """A finding for each setting that is not as the parameters, or not as the image's definition, says."""
    return tuple(finding for image in observation.images for finding in _check_image(image, parameters))


def _check_image(image: ImageObservation, parameters: Parameters) -> Iterator[Finding]:
    runtime = image.config.view.config or RuntimeConfig()
    for place, what in _problems(runtime, parameters):
        yield image.finding(NAME, what, where=place)
    wanted = image.definition.runtime
    if image.built and (runtime.cmd or ()) != wanted.cmd:
        yield image.finding(NAME, f"{list(runtime.cmd or ())} is not the definition's {list(wanted.cmd)}", where="Cmd")
    if image.built and not set(wanted.env) <= set(runtime.env or ()):
        yield image.finding(NAME, "variables of the definition are not in the config", where="Env")


def _problems(runtime: RuntimeConfig, parameters: Parameters) -> Iterator[tuple[str, str]]:
    if (runtime.user or "") not in parameters.users:
        yield "User", f"{runtime.user!r}; the server starts as root and drops privileges itself"
    if runtime.working_dir != parameters.working_dir:
        yield "WorkingDir", f"{runtime.working_dir!r}, not {parameters.working_dir!r}"
    if runtime.entrypoint:
        yield "Entrypoint", f"{list(runtime.entrypoint)}; none is allowed"
    if not runtime.cmd:
        yield "Cmd", "nothing starts the server"
    ports = sorted(runtime.exposed_ports or {})
    if ports != [f"{parameters.port}/tcp"]:
        yield "ExposedPorts", f"{ports}, not exactly {parameters.port}/tcp"
    if runtime.stop_signal not in parameters.stop_signals:
        yield "StopSignal", f"{runtime.stop_signal!r}, not one of {list(parameters.stop_signals)}"
    if runtime.volumes:
        yield "Volumes", f"{sorted(runtime.volumes)}; none is allowed"
    for label in parameters.labels:
        if not (runtime.labels or {}).get(label):
            yield "Labels", f"{label} is missing"

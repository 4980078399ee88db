"""A Docker engine: the SDK runs and measures containers, the docker command pulls as a person would.

Every container carries LABEL with the scope (one per workspace), every image that came from here a tag under
IMAGE_PREFIX and the scope; nothing else is ever removed. API: https://docs.docker.com/reference/api/engine/
"""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from docker import APIClient
from docker.errors import APIError, NotFound
from python_on_whales import DockerClient
from python_on_whales.exceptions import DockerException as CommandError

from pipeline.adapters.engine.archive import stream_archive
from pipeline.adapters.engine.container import SdkContainer, remove_container
from pipeline.adapters.engine.errors import engine_errors, failure_of
from pipeline.errors import AccessError, ConfigError, IntegrityError, PipelineError, ServiceError
from pipeline.model.digest import hex_of
from pipeline.model.oci import MAX_CONFIG_BYTES, ImageConfig, Manifest
from pipeline.model.reference import Reference
from pipeline.ports import BlobStore, ContainerLimits

LABEL = "dev.pipeline.release"
IMAGE_PREFIX = "pipeline.invalid"
_TIMEOUT_S = 120
_IN_USE = 409
_DENIED = re.compile(r"\b(unauthorized|denied|authentication required)\b", re.IGNORECASE)
_SCOPE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class DockerEngine:
    """`ports.Engine` at a `unix://` or `tcp://` address. `scope` tells this workspace's objects from all others."""

    def __init__(self, url: str, scope: str) -> None:
        if not _SCOPE.fullmatch(scope):
            raise ConfigError(f"not a scope: {scope!r}", remedy="use lower-case letters, digits and single dashes")
        self._url, self._scope = url, scope
        with engine_errors("connect", url):
            # the stubs of the SDK cover half of these calls, so all of them are untyped here
            self._api: Any = APIClient(base_url=url, timeout=_TIMEOUT_S, version="auto")

    def close(self) -> None:
        """Close idle connections."""
        self._api.close()

    def load(self, store: BlobStore, manifest: Manifest, name: str) -> str:
        """Import exactly the store's bytes; returns the image id, checked to be the config's digest."""
        tag = self._tag(name, manifest.view.config.digest)
        with engine_errors("load", tag):
            for line in self._api.load_image(stream_archive(store, manifest, tag)):
                if "error" in line:
                    raise _load_failure(tag, str(line["error"]))
            image = self._api.inspect_image(tag)
        _check_loaded(image, store, manifest)
        return str(image["Id"])

    def pull(self, reference: Reference) -> str:
        """Pull by digest as a person would, with an empty config folder; returns the image id."""
        if reference.digest is None:
            raise ConfigError("a pull needs a digest", where=str(reference), remedy="a tag can move: name the digest")
        pinned = reference.with_digest(reference.digest)
        known = self._image_ids()
        with tempfile.TemporaryDirectory(prefix="empty-docker-config-") as folder:
            try:
                _clean_client(self._url, Path(folder)).image.pull(str(pinned), quiet=True)
            except CommandError as error:
                raise self._pull_failure(pinned, (error.stderr or str(error)).strip()) from error
        with engine_errors("look up what was pulled", str(pinned)):
            image_id = str(self._api.inspect_image(str(pinned))["Id"])
            if image_id not in known:
                # the mark that the image came with this pull, so that `remove_image` may remove it
                repository, _, tag = self._tag("pulled", reference.digest).rpartition(":")
                self._api.tag(image_id, repository, tag)
        return image_id

    def remove_image(self, image_id: str) -> None:
        """Remove an image that this pipeline loaded or pulled, when present.

        Another's references to it stay, and so does an image that a container of another uses.
        """
        with engine_errors("remove an image", image_id):
            try:
                image = self._api.inspect_image(image_id)
            except NotFound:
                return
            self._remove_references(image)

    @contextmanager
    def run(self, image_id: str, *, name: str, limits: ContainerLimits) -> Iterator[SdkContainer]:
        """Start with a published loopback port; removed on leaving, whatever happened."""
        # Known before it exists, so that it can be removed even when the answer to its creation never arrived.
        full_name = f"pipeline-{self._scope}-{name}-{secrets.token_hex(4)}"
        try:
            with engine_errors(f"run {name}", image_id):
                port = _exposed_port(self._api.inspect_image(image_id), image_id)
                created = self._api.create_container(**self._container(image_id, full_name, port, limits))
                self._api.start(created["Id"])
            yield SdkContainer(self._api, created["Id"], port)
        except BaseException as failure:
            self._remove_after(failure, full_name)
            raise
        with engine_errors("remove a container", full_name):
            remove_container(self._api, full_name)

    def remove_leftovers(self) -> int:
        """Remove every container and network that a killed run of this scope left; returns how many."""
        mine = {"label": f"{LABEL}={self._scope}"}
        with engine_errors("remove leftovers", self._url):
            containers = self._api.containers(all=True, filters=mine)
            networks = self._api.networks(filters=mine)
            for container in containers:
                remove_container(self._api, container["Id"])
            for network in networks:
                self._api.remove_network(network["Id"])
            for image in self._api.images(filters={"reference": f"{IMAGE_PREFIX}/{self._scope}/*"}):
                self._remove_references(image)
        return len(containers) + len(networks)

    def _container(self, image_id: str, name: str, port: int, limits: ContainerLimits) -> dict[str, Any]:
        host = self._api.create_host_config(
            port_bindings={f"{port}/tcp": ("127.0.0.1",)},
            mem_limit=limits.memory_bytes,
            memswap_limit=limits.memory_bytes,
            pids_limit=limits.pids,
            nano_cpus=int(limits.cpus * 1e9),
            network_mode="bridge",
            log_config={"type": "json-file", "config": {"max-size": "10m", "max-file": "1"}},
        )
        labels = {LABEL: self._scope}
        return {
            "image": image_id,
            "name": name,
            "labels": labels,
            "ports": [port],
            "host_config": host,
            # a person's Docker config may name proxies; a verification container gets no variable of this machine
            "use_config_proxy": False,
        }

    def _remove_after(self, failure: BaseException, full_name: str) -> None:
        try:
            with engine_errors("remove a container", full_name):
                remove_container(self._api, full_name)
        except PipelineError as error:
            failure.add_note(f"its container may be left, until the next run removes it: {error.what}")

    def _remove_references(self, image: dict[str, Any]) -> None:
        mine = f"{IMAGE_PREFIX}/{self._scope}/"
        tags = [tag for tag in image["RepoTags"] or () if tag.startswith(mine)]
        pulled = any(tag.startswith(f"{mine}pulled:") for tag in tags)
        # tags first: the last digest that goes takes the image with it
        for reference in [*tags, *((image["RepoDigests"] or ()) if pulled else ())]:
            try:
                self._api.remove_image(reference)
            except NotFound:
                continue
            except APIError as error:
                if error.status_code != _IN_USE:
                    raise
                return

    def _pull_failure(self, pinned: Reference, message: str) -> PipelineError:
        with engine_errors("pull", str(pinned)):
            self._api.ping()
        # The command's only machine-readable answer is exit code 1; the registry's refusal is in its text.
        if _DENIED.search(message):
            return AccessError(
                "the image cannot be pulled without credentials",
                where=f"{pinned}: {message}",
                remedy="make the package public, or publish it again",
            )
        return failure_of("pull", str(pinned), message)

    def _image_ids(self) -> set[str]:
        with engine_errors("list images", self._url):
            return {str(image["Id"]) for image in self._api.images()}

    def _tag(self, name: str, digest: str) -> str:
        readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "image"
        return f"{IMAGE_PREFIX}/{self._scope}/{readable}:{hex_of(digest)[:32]}"


def _clean_client(url: str, config_path: Path) -> DockerClient:
    """The docker command without a variable, a credential or a config file of this machine."""
    program = shutil.which("docker")
    if program is None:
        raise ServiceError("the docker command is not installed", remedy="run ./noxw, or install Debian's docker.io")
    clean = ["env", "-i", f"HOME={config_path}", "PATH=/usr/bin:/bin", program]
    return DockerClient(client_call=clean, config=config_path, host=url)


def _load_failure(tag: str, message: str) -> PipelineError:
    if "diffid" in message.lower():
        return IntegrityError(f"the engine refuses a layer: {message}", where=tag, remedy="build the image again")
    return failure_of("load", tag, message)


def _check_loaded(image: dict[str, Any], store: BlobStore, manifest: Manifest) -> None:
    config = manifest.view.config
    # The classic image store names an image by its config, containerd's by its manifest; both are exact.
    if image["Id"] not in (config.digest, manifest.digest):
        raise IntegrityError(f"the engine made image {image['Id']}", where=f"expected {config.digest}")
    with store.open(config.digest) as file:
        diff_ids = ImageConfig(file.read(MAX_CONFIG_BYTES + 1)).view.rootfs.diff_ids
    if tuple(image["RootFS"].get("Layers", ())) != diff_ids:
        raise IntegrityError(f"the engine's layers are {image['RootFS']}", where=f"expected {', '.join(diff_ids)}")


def _exposed_port(image: dict[str, Any], image_id: str) -> int:
    exposed = cast(dict[str, Any], (image.get("Config") or {}).get("ExposedPorts") or {})
    ports = [name.partition("/")[0] for name in exposed if name.endswith("/tcp")]
    if len(ports) != 1:
        raise ConfigError(
            f"an image must expose one TCP port, this one {sorted(exposed) or 'none'}",
            where=image_id,
            remedy="set runtime.port in its image.yaml",
        )
    return int(ports[0])

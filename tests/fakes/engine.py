"""An engine in memory: images are what was loaded or could be pulled, a container answers what a script says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pipeline.errors import ConfigError, IntegrityError, ServiceError
from pipeline.model.oci import MAX_CONFIG_BYTES, ImageConfig, Manifest
from pipeline.model.reference import Reference
from pipeline.ports import BlobStore, ContainerLimits, ExecResult

Script = Callable[[Sequence[str], str, bytes], ExecResult]


def run_nothing(argv: Sequence[str], user: str, stdin: bytes) -> ExecResult:
    """Every command succeeds and says nothing."""
    return ExecResult(0, b"")


@dataclass
class FakeContainer:
    """`ports.Container`; `engine.dies()` makes every call fail."""

    engine: FakeEngine
    id: str
    image_id: str
    url: str
    running: bool = True

    def exec(self, argv: Sequence[str], *, user: str = "0:0", timeout_s: float = 60, stdin: bytes = b"") -> ExecResult:
        self.engine.require_alive()
        if not self.running or self.id not in self.engine.containers:
            raise ServiceError("the container is not running", where=self.id)
        return self.engine.script(argv, user, stdin)

    def memory_bytes(self) -> int:
        self.engine.require_alive()
        return self.engine.memory_bytes

    def writable_bytes(self) -> int:
        self.engine.require_alive()
        return self.engine.writable_bytes

    def stop(self, timeout_s: int = 10) -> float:
        self.engine.require_alive()
        self.running = False
        return 0.01

    def remove(self) -> None:
        self.engine.require_alive()
        self.running = False
        self.engine.containers.pop(self.id, None)


@dataclass
class FakeEngine:
    """`ports.Engine`. `pullable` is what its registry serves: digest of a manifest -> config."""

    script: Script = run_nothing
    memory_bytes: int = 50 << 20
    writable_bytes: int = 0
    url: str = "http://127.0.0.1:1"
    pullable: dict[str, ImageConfig] = field(default_factory=dict)
    images: dict[str, ImageConfig] = field(default_factory=dict)
    containers: dict[str, FakeContainer] = field(default_factory=dict)
    alive: bool = True
    _made: int = 0

    def dies(self) -> None:
        """From now on nothing answers."""
        self.alive = False

    def require_alive(self) -> None:
        """ServiceError when the engine has died."""
        if not self.alive:
            raise ServiceError("the Docker engine does not answer", remedy="start it")

    def load(self, store: BlobStore, manifest: Manifest, name: str) -> str:
        self.require_alive()
        for blob in (manifest.view.config, *manifest.view.layers):
            with store.open(blob.digest) as file:
                if "sha256:" + hashlib.file_digest(file, "sha256").hexdigest() != blob.digest:
                    raise IntegrityError("a stored blob is not what its digest says", where=blob.digest)
        with store.open(manifest.view.config.digest) as file:
            return self._keep(ImageConfig(file.read(MAX_CONFIG_BYTES)))

    def pull(self, reference: Reference) -> str:
        self.require_alive()
        if reference.digest is None:
            raise ConfigError("a pull needs a digest", where=str(reference))
        if reference.digest not in self.pullable:
            raise ServiceError("not found", where=str(reference))
        return self._keep(self.pullable[reference.digest])

    def remove_image(self, image_id: str) -> None:
        self.require_alive()
        self.images.pop(image_id, None)

    @contextmanager
    def run(self, image_id: str, *, name: str, limits: ContainerLimits) -> Iterator[FakeContainer]:
        self.require_alive()
        if image_id not in self.images:
            raise ServiceError("no such image", where=image_id)
        runtime = self.images[image_id].view.config
        if runtime is None or len(runtime.exposed_ports or {}) != 1:
            raise ConfigError("an image must expose one TCP port", where=image_id)
        self._made += 1
        container = FakeContainer(self, f"{name}-{self._made}", image_id, self.url)
        self.containers[container.id] = container
        try:
            yield container
        finally:
            self.containers.pop(container.id, None)

    def remove_leftovers(self) -> int:
        self.require_alive()
        count = len(self.containers)
        self.containers.clear()
        return count

    def _keep(self, config: ImageConfig) -> str:
        self.images[config.digest] = config
        return config.digest

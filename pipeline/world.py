"""Which adapters a release on a target works with: the settings of this machine, and how to make each adapter."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config import load_release
from pipeline.errors import AccessError, ServiceError
from pipeline.files import Lock, make_private_folder, read_bytes_limited, remove_partials, write_atomic
from pipeline.model.material import Material
from pipeline.model.record import canonical_json
from pipeline.model.release import Target
from pipeline.paths import Paths
from pipeline.plan import Plan, make_plan
from pipeline.ports import BundleVerifier, Reporter, Signer

if TYPE_CHECKING:  # adapters are imported where they are made: `plan` must not wait for an engine's library
    from pipeline.adapters.engine import DockerEngine
    from pipeline.adapters.registry import AnonymousRegistry, CredentialedRegistry, Credentials
    from pipeline.embedded.localsources import LocalSources
    from pipeline.embedded.services import Services
    from pipeline.stages.curriculum import ExamineVendored
    from pipeline.stages.examination import ImageExaminer
    from pipeline.stages.scan import ScanCache

PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


@dataclass(frozen=True)
class Settings:
    """What the environment says. Secrets do not print."""

    engine_url: str | None
    proxies: tuple[tuple[str, str], ...]
    debian_mirror: str | None
    docker_config: Path
    registry_user: str | None
    registry_password: str | None = field(repr=False)


def load_settings(environment: Mapping[str, str]) -> Settings:
    """Settings out of environment variables; README, section Settings."""
    home = Path(environment.get("HOME", "/root"))
    return Settings(
        engine_url=environment.get("DOCKER_HOST") or None,
        proxies=tuple((name, environment[name]) for name in PROXY_NAMES if name in environment),
        debian_mirror=environment.get("PIPELINE_DEBIAN_MIRROR") or None,
        docker_config=Path(environment.get("DOCKER_CONFIG") or home / ".docker") / "config.json",
        registry_user=environment.get("PIPELINE_REGISTRY_USER") or None,
        registry_password=environment.get("PIPELINE_REGISTRY_PASSWORD") or None,
    )


class World:
    """A plan and the adapters for it, each made when it is first asked for."""

    def __init__(self, release_path: Path, target: str | None, settings: Settings) -> None:
        self.settings = settings
        self.plan: Plan = make_plan(load_release(release_path), target)
        self.paths = Paths(self.plan.release.root, self.plan.release.file.release, self.plan.target_name)

    @contextmanager
    def lock(self, verb: str) -> Iterator[None]:
        """Be the one run at work in this repository; what a killed one left half-written is removed first."""
        make_private_folder(self.paths.state)
        with Lock(self.paths.lock, verb):
            for folder in (self.paths.state / name for name in ("bases", "build", "publish", "verify", "cache")):
                remove_partials(folder)
            for folder in (self.paths.evidence.parent, self.paths.sbom.parent):
                remove_partials(folder)
            yield

    def note_durations(self, verb: str, image: str, durations: Mapping[str, float]) -> None:
        """Keep how long each check took, in seconds; nothing of it goes into evidence."""
        if durations:
            rounded = {name: round(seconds, 4) for name, seconds in durations.items()}
            write_atomic(self.paths.durations / f"{verb}-{image}.json", canonical_json(rounded))

    @cached_property
    def reporter(self) -> Reporter:
        """For people."""
        from pipeline.adapters.console import make_reporter

        return make_reporter()

    @cached_property
    def services(self) -> Services:
        """The local target's services, wanted or running; ports follow from the target's registry."""
        from pipeline.embedded.services import Services

        port = int(self.plan.target.registry.rpartition(":")[2]) if self.is_embedded else 5710
        return Services(self.paths.services, port, self.settings.engine_url, self.settings.proxies)

    @property
    def is_embedded(self) -> bool:
        """Whether the target's services are ours."""
        return self.plan.target.kind == "embedded"

    def start_services(self) -> None:
        """Make the local target's services run; nothing for a remote target."""
        from pipeline.embedded import services

        if self.is_embedded and not services.status(self.services).ready:
            with self.reporter.step("start the local services"):
                services.start(self.services)

    @cached_property
    def engine(self) -> DockerEngine:
        """The engine for verification containers; what a killed run left is removed first."""
        from pipeline.adapters.engine import DockerEngine

        engine = DockerEngine(self._engine_url(), self._scope())
        engine.remove_leftovers()
        return engine

    @cached_property
    def anonymous(self) -> AnonymousRegistry:
        """A client without any path to a credential."""
        from pipeline.adapters.registry import AnonymousRegistry

        return AnonymousRegistry()

    @cached_property
    def credentialed(self) -> CredentialedRegistry:
        """A client that may push to the target's registry."""
        from pipeline.adapters.registry import CredentialedRegistry

        return CredentialedRegistry(self._credentials())

    @cached_property
    def sources(self) -> LocalSources:
        """Real packages as layers."""
        from pipeline.embedded.localsources import LocalSources
        from pipeline.embedded.taskimage import Sources

        return LocalSources(Sources(self.paths.cache, self.settings.debian_mirror), self.reporter.note)

    @cached_property
    def examiner(self) -> ImageExaminer:
        """Scans, once for each layer, and plays."""
        from pipeline.stages.scanning import FolderCache

        return self._make_examiner(FolderCache(self.paths.cache / "scans"))

    @cached_property
    def fresh_examiner(self) -> ImageExaminer:
        """The same, for what was pulled: it believes no scan of an earlier run."""
        from pipeline.stages.scanning import MemoryCache

        return self._make_examiner(MemoryCache())

    def _make_examiner(self, scans: ScanCache) -> ImageExaminer:
        from pipeline.adapters.arena import open_arena, play_framework_episode, validate_endpoint
        from pipeline.adapters.probe import fetch_schema, wait_ready
        from pipeline.stages.examination import ImageExaminer, ServerProbe

        probe = ServerProbe(open_arena, wait_ready, fetch_schema, validate_endpoint, play_framework_episode)
        return ImageExaminer(self.plan, scans, self.engine, probe, self.reporter, self.examine_vendored)

    @cached_property
    def examine_vendored(self) -> ExamineVendored:
        """Runs a vendored curriculum outside any image, once for the same bytes."""
        from pipeline.adapters.vendored import examine_vendored

        return cache(examine_vendored)

    def environment(self) -> tuple[Material, ...]:
        """What the pipeline itself runs on, as materials of the provenance."""
        from pipeline.adapters.sbom import make_environment_sbom

        lock = self.paths.root / "requirements.lock"
        digest = hashlib.sha256(read_bytes_limited(lock, 4 << 20)).hexdigest()
        uri = f"{self.plan.release.file.source}/blob/main/requirements.lock"
        installed = hashlib.sha256(make_environment_sbom()).hexdigest()
        return (
            Material(uri=uri, name="requirements.lock", version="", kind="file", digests={"sha256": digest}),
            Material(uri=uri, name="environment.cdx.json", version="", kind="file", digests={"sha256": installed}),
        )

    @property
    def revision(self) -> str:
        """The commit of this repository, with -dirty where files differ from it."""
        from pipeline.adapters.revision import read_revision

        return read_revision(self.paths.root)

    @cached_property
    def signer(self) -> Signer:
        """Signs as the target's identity."""
        from pipeline.adapters.keyless import AmbientToken, EmbeddedToken, KeylessSigner, load_public_trust
        from pipeline.embedded.sigstore import trust

        budget_s = self.plan.target.log_outage_budget_s
        if not self.is_embedded:
            return KeylessSigner(load_public_trust(self.plan.target.rekor).trust_config, AmbientToken(), budget_s)
        port = self.services.sigstore_port
        config = trust.trust_config(self.services.sigstore_path, port, self.plan.target.rekor)
        token = EmbeddedToken(trust.ambient_url(port), self.services.sigstore_path / "request-token")
        return KeylessSigner(config, token, budget_s)

    @cached_property
    def trusted_root(self) -> bytes:
        """What the target's verifier believes."""
        from pipeline.adapters.keyless import load_public_trust
        from pipeline.embedded.sigstore import trust

        target = self.plan.target
        if target.trusted_root is not None:
            return read_bytes_limited(self.paths.root / target.trusted_root, 4 << 20)
        if self.is_embedded:
            return trust.trusted_root(self.services.sigstore_path, self.services.sigstore_port)
        return load_public_trust(target.rekor).trusted_root

    @cached_property
    def verifier(self) -> BundleVerifier:
        """Expects exactly the target's identity and issuer."""
        from pipeline.adapters.keyless import KeylessVerifier

        identity = self.plan.target.identity
        return KeylessVerifier(self.trusted_root, identity.subject, identity.issuer)

    @staticmethod
    def make_reviewer(target: Target, evidence_root: bytes) -> BundleVerifier:
        """A verifier that needs no network. A private Sigstore's evidence brings its own root, production's never."""
        from pipeline.adapters.keyless import KeylessVerifier, load_public_trust

        root = evidence_root if target.kind == "embedded" else load_public_trust(offline=True).trusted_root
        return KeylessVerifier(root, target.identity.subject, target.identity.issuer)

    def _engine_url(self) -> str:
        from pipeline.embedded import services
        from pipeline.embedded.engine import engine_answers

        if self.is_embedded:
            return services.status(self.services).engine_url
        url = self.settings.engine_url or services.DEFAULT_ENGINE_URL
        if not engine_answers(url):
            raise ServiceError("no Docker engine answers", where=url, remedy="start one, or set DOCKER_HOST")
        return url

    def _scope(self) -> str:
        return "w-" + hashlib.sha256(str(self.paths.root).encode()).hexdigest()[:12]

    def _credentials(self) -> Credentials:
        from pipeline.adapters.registry import Credentials, load_docker_credentials
        from pipeline.embedded import services

        registry, settings = self.plan.target.registry, self.settings
        if self.is_embedded:
            return Credentials(registry, *services.credentials(self.services))
        if settings.registry_user and settings.registry_password:
            return Credentials(registry, settings.registry_user, settings.registry_password)
        if settings.docker_config.is_file():
            text = read_bytes_limited(settings.docker_config, 1 << 20).decode("utf-8", "replace")
            found = load_docker_credentials(text, registry, str(settings.docker_config))
            if found is not None:
                return found
        raise AccessError(
            f"no credentials for {registry}",
            where=str(settings.docker_config),
            remedy="set PIPELINE_REGISTRY_USER and PIPELINE_REGISTRY_PASSWORD, or run docker login",
        )

"""What a release asks for: the typed form of release.yaml, images/*/image.yaml, tasks/*/task.yaml and policies/*.yaml.

Lists in the files become tuples. Paths are relative to the file that names them until `config` resolves them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from pipeline.model.digest import Digest

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$")]
RelativePath = Annotated[str, StringConstraints(pattern=r"^(?!/)(?!.*(?:^|/)\.\.(?:/|$)).+$")]
AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/(?!.*(?:^|/)\.\.?(?:/|$)).*$")]
Date = Annotated[str, StringConstraints(pattern=r"^20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$")]
Octal = Annotated[str, StringConstraints(pattern=r"^0[0-7]{3,4}$")]
TaskId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
CommitId = Annotated[str, StringConstraints(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")]


class Section(BaseModel):
    """A mapping in a file that a person wrote: frozen, no unknown keys, no guessing of types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, regex_engine="python-re")


class Debian(Section):
    """A Debian root of the local target, out of .deb files."""

    suite: Literal["bookworm", "trixie"]
    packages: tuple[str, ...] = Field(min_length=1)


class FileSet(Section):
    """A file or folder of the repository, laid into an image."""

    source: RelativePath
    path: AbsolutePath
    mode: Octal = "0644"
    directory_mode: Octal = "0755"
    owner: Annotated[str, StringConstraints(pattern=r"^\d+:\d+$")] = "0:0"


class Layer(Section):
    """One layer that the pipeline appends. Exactly one of `wheels` and `files`."""

    name: Name
    wheels: RelativePath | None = None
    path: AbsolutePath | None = None
    files: tuple[FileSet, ...] = ()


class ImageRuntime(Section):
    """What a container of the image starts with."""

    user: Literal["root"]
    working_dir: AbsolutePath
    cmd: tuple[str, ...] = Field(min_length=1)
    port: int = Field(ge=1, le=65535)
    stop_signal: Literal["SIGTERM", "SIGINT"]
    env: tuple[str, ...] = ()


class Fixtures(Section):
    """Validation fixtures: never in an image. `paths` are files or folders beside the image.yaml."""

    paths: tuple[RelativePath, ...] = Field(min_length=1)


class VendoredCurriculum(Section):
    """A curriculum module that a release uses byte for byte instead of ours."""

    repository: str
    revision: str
    path: RelativePath
    source: RelativePath
    licence: str
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class ImageDefinition(Section):
    """images/<name>/image.yaml."""

    version: Literal[1]
    title: str
    description: str
    licences: str
    suite: Literal["repair", "workflow"]
    base: Literal["task", "image"]
    debian: Debian | None = None
    layers: tuple[Layer, ...] = Field(min_length=1)
    runtime: ImageRuntime
    fixtures: Fixtures
    curriculum: VendoredCurriculum | None = None


class RemovedFunction(Section):
    """A function that the versions up to the base do not have, removed from the real source by name."""

    file: RelativePath
    function: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class RepositoryRecipe(Section):
    """How the local target rebuilds a task's repository: sdists as commits, the base version, and what it lacks."""

    project: str
    lock: RelativePath
    base_version: str
    removed: tuple[RemovedFunction, ...] = Field(min_length=1)


class TaskDefinition(Section):
    """images/mimo/tasks/<id>/task.yaml."""

    version: Literal[1]
    id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]
    title: str
    record: RelativePath
    record_sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    repository: RepositoryRecipe
    packages: RelativePath
    base_commit: CommitId
    future: RelativePath
    reference_repair: RelativePath
    guard: Literal["none", "planted-hooks"] = "none"


class Budgets(Section):
    """Of one task in a submission; seconds, GiB, tokens and calls. Ranges: facts/arena-limits.json."""

    reset_wall_s: int
    rollout_wall_s: int
    verifier_wall_s: int
    tool_wall_s: int
    tool_calls_total: int
    tool_calls_per_minute: int
    completion_tokens: int
    context_tokens: int
    memory_gib: int
    cpu_floor_vcpus: int
    workspace_gib: int


class PublishedOrigin(Section):
    """What the publisher of an image that targets pin recorded of it; what is absent is unknown."""

    title: str
    record_sha256: Sha256 | None = None
    source_image: str | None = None
    source_revision: str | None = None


class ReleasedImage(Section):
    """One image of a release: a definition, and either the task that it serves or the image that it derives from.

    `published` describes the image that targets pin. With it a repair needs no task, and exists only where pinned.
    """

    id: Name
    definition: RelativePath
    task: RelativePath | None = None
    base: Name | None = None
    published: PublishedOrigin | None = None
    budgets: Budgets


class Identity(Section):
    """Who signs: exact certificate identity and issuer."""

    subject: str
    issuer: str


class Target(Section):
    """Where images come from, where they go and who signs."""

    kind: Literal["embedded", "remote"]
    registry: str
    repository: str
    identity: Identity
    rekor: Literal[1, 2]
    trusted_root: RelativePath | None = None
    log_outage_budget_s: int = Field(ge=0)
    pinned: dict[str, str] = Field(default_factory=dict)


class PolicyException(Section):
    """A finding that is accepted for one digest until a date."""

    digest: Digest
    owner: str
    reason: str
    expires: Date


class Policy(Section):
    """policies/<id>.yaml."""

    id: Name
    statement: str
    rationale: str
    severity: Literal["error", "warning"]
    check: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    exceptions: tuple[PolicyException, ...] = ()


class TaskGroup(Section):
    """Tasks of one image, in a row and in this order; without `ids` all of the image's."""

    image: Name
    split: Literal["train", "validation", "test"] = "train"
    ids: tuple[TaskId, ...] | None = Field(default=None, min_length=1)


class Dataset(Section):
    """What the tasks were taken from."""

    name: str
    revision: str
    licence: str


class ReleaseFile(Section):
    """release.yaml. `name`, `dataset` and `tasks` are for the submission; without tasks it has all, image by image."""

    version: Literal[1]
    release: Date
    source: str
    default_target: Name
    policies: tuple[Name, ...] = Field(min_length=1)
    images: tuple[ReleasedImage, ...] = Field(min_length=1)
    targets: dict[Name, Target] = Field(min_length=1)
    name: str | None = None
    dataset: Dataset | None = None
    tasks: tuple[TaskGroup, ...] = ()

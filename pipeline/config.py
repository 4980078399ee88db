"""release.yaml, images/*/image.yaml, tasks/*/task.yaml and policies/*.yaml -> one checked `Release`.

Everything that a person can get wrong is refused here, before any work, with file:line and the nearest valid name.
"""

from __future__ import annotations

import calendar
import difflib
import hashlib
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from pipeline.derive.vendored import MAX_MODULE_BYTES, find_case_ids
from pipeline.errors import ConfigError
from pipeline.files import read_bytes_limited
from pipeline.model.reference import load_reference
from pipeline.model.release import ImageDefinition, Policy, ReleasedImage, ReleaseFile, Section, Target, TaskDefinition
from pipeline.strict_yaml import Document, Location, load_document
from pipeline.tasks import find_problem, load_case_ids

Model = TypeVar("Model", bound=Section)


@dataclass(frozen=True)
class ImageSource:
    """One image of a release with everything that its files say. Paths are absolute folders."""

    released: ReleasedImage
    definition: ImageDefinition
    definition_path: Path
    task: TaskDefinition | None
    task_path: Path | None
    task_ids: tuple[str, ...]

    @property
    def id(self) -> str:
        """The image's id in the release."""
        return self.released.id


@dataclass(frozen=True)
class Release:
    """A release as asked for: images in an order in which each follows its base."""

    root: Path
    file: ReleaseFile
    images: tuple[ImageSource, ...]
    policies: tuple[Policy, ...]

    @property
    def epoch_s(self) -> int:
        """Midnight UTC of the release date: the only time that goes into artefacts."""
        year, month, day = map(int, self.file.release.split("-"))
        return calendar.timegm((year, month, day, 0, 0, 0))

    def target(self, name: str | None) -> tuple[str, Target]:
        """The named target, or the default one; ConfigError with the nearest name."""
        chosen = name or self.file.default_target
        if chosen not in self.file.targets:
            raise ConfigError(
                f"no target {chosen!r}", where="release.yaml: targets", remedy=nearest(chosen, self.file.targets)
            )
        return chosen, self.file.targets[chosen]

    def image(self, image_id: str) -> ImageSource:
        """The image of that id."""
        return next(image for image in self.images if image.id == image_id)


def load_release(release_path: Path) -> Release:
    """Read and check a release file and all that it names; paths in it are relative to the repository root."""
    root = release_path.resolve().parent
    while not (root / "policies").is_dir() and root != root.parent:
        root = root.parent
    document = _read(release_path)
    file = load_model(document, ReleaseFile)
    _check_targets(document, file)
    images = tuple(_load_image(root, document, index, image) for index, image in enumerate(file.images))
    _check_tasks(document, file, images)
    policies = tuple(_load_policy(root, document, index, name) for index, name in enumerate(file.policies))
    _check_unique(document, "policies", list(file.policies))
    return Release(root, file, _in_base_order(document, images), policies)


def load_model(document: Document, model: type[Model]) -> Model:
    """Validate a document against a model; ConfigError with file:line and a hint for the first thing that is wrong."""
    try:
        # through JSON: lists become tuples there, while Python-mode strictness would refuse them
        return model.model_validate_json(json.dumps(document.value))
    except ValidationError as error:
        # a misspelt key is both unknown and missing: what is there is what the person can see
        first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        location = tuple(part for part in first["loc"] if not _is_validator_name(part))
        raise _config_error(document, model, location, first) from error


def nearest(name: str, valid: Mapping[str, Any] | list[str]) -> str:
    """A remedy that names the nearest valid name, or all of them."""
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"valid: {', '.join(names)}"


def _config_error(document: Document, model: type[Section], location: Location, error: Any) -> ConfigError:
    dotted = ".".join(str(part) for part in location)
    if error["type"] == "extra_forbidden":
        fields = _fields_at(model, location[:-1])
        return ConfigError(
            f"unknown key {location[-1]!r}", where=document.where(location), remedy=nearest(str(location[-1]), fields)
        )
    if error["type"] == "missing":
        return ConfigError(f"missing key {dotted!r}", where=document.where(location), remedy=f"add {location[-1]!r}")
    if error["type"] == "literal_error":
        expected = error["ctx"]["expected"]
        return ConfigError(f"{dotted}: {error['input']!r} is not {expected}", where=document.where(location))
    return ConfigError(f"{dotted}: {error['msg']}", where=document.where(location), remedy=_type_hint(error))


def _type_hint(error: Any) -> str:
    if error["type"] == "string_type":
        return "put it in quotes"
    pattern = error.get("ctx", {}).get("pattern")
    return f"it must match {pattern}" if pattern else ""


def _is_validator_name(part: str | int) -> bool:
    return isinstance(part, str) and ("[" in part or "(" in part)


def _fields_at(model: Any, location: Location) -> list[str]:
    for part in location:
        model = _element(
            model if isinstance(part, int) or not _is_model(model) else model.model_fields[part].annotation
        )
    return list(model.model_fields) if _is_model(model) else []


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _element(annotation: Any) -> Any:
    # X | None -> X; tuple[X, ...] and dict[K, X] are unwrapped when the location goes on into them
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return _element(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple:
        return _element(arguments[0])
    if origin is dict:
        return _element(arguments[1])
    return annotation


def _read(path: Path, where: str = "", shown: str | None = None) -> Document:
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        siblings = [child.name for child in path.parent.iterdir()] if path.parent.is_dir() else []
        raise ConfigError(f"missing file: {shown or path}", where=where, remedy=nearest(path.name, siblings)) from error
    except OSError as error:
        raise ConfigError(f"cannot read {shown or path}: {error.strerror}", where=where) from error
    return load_document(raw, shown or path.name)


def _load_image(root: Path, document: Document, index: int, image: ReleasedImage) -> ImageSource:
    where = document.where(("images", index))
    definition_path = root / image.definition
    definition_document = _read(definition_path / "image.yaml", where, f"{image.definition}/image.yaml")
    definition = load_model(definition_document, ImageDefinition)
    _check_layers(definition_document, definition, definition_path)
    _check_curriculum(definition_document, definition, definition_path)
    task = task_path = None
    _check_origin(document, index, image, definition)
    if image.task is not None:
        task_path = root / image.task
        task_document = _read(task_path / "task.yaml", where, f"{image.task}/task.yaml")
        task = load_model(task_document, TaskDefinition)
        for name in ("record", "packages", "future"):
            _check_exists(task_document, (name,), task_path, getattr(task, name))
        _check_record(task_document, task, task_path / task.record)
        _check_exists(task_document, ("repository", "lock"), task_path, task.repository.lock)
        _check_exists(task_document, ("reference_repair",), definition_path, task.reference_repair)
    return ImageSource(
        image, definition, definition_path, task, task_path, _load_task_ids(image, definition, definition_path, task)
    )


def _check_origin(document: Document, index: int, image: ReleasedImage, definition: ImageDefinition) -> None:
    where = document.where(("images", index))
    if definition.base == "image" and (image.base is None or image.task is not None):
        raise ConfigError(f"image {image.id!r} derives from an image: it takes 'base' and no 'task'", where=where)
    if definition.base == "task" and (image.base is not None or (image.task is None and image.published is None)):
        raise ConfigError(
            f"image {image.id!r} is a repair: it takes 'task' and no 'base'",
            where=where,
            remedy="one that exists only where a target pins it takes 'published' instead",
        )
    if image.published is not None and image.published.source_image is not None:
        location: Location = ("images", index, "published", "source_image")
        load_reference(image.published.source_image, document.where(location), pinned=True)


def _load_task_ids(
    image: ReleasedImage, definition: ImageDefinition, folder: Path, task: TaskDefinition | None
) -> tuple[str, ...]:
    if definition.suite == "repair":
        return (task.id if task is not None else image.id,)
    if definition.curriculum is not None:
        source = definition.curriculum.source
        ids = find_case_ids(read_bytes_limited(folder / source, MAX_MODULE_BYTES), f"{image.definition}/{source}")
        if ids is not None:
            return ids
    cases = folder / "cases.json"
    return load_case_ids(cases.read_bytes(), f"{image.definition}/cases.json") if cases.is_file() else ()


def _check_tasks(document: Document, file: ReleaseFile, images: tuple[ImageSource, ...]) -> None:
    problem = find_problem(file.tasks, {image.id: image.task_ids for image in images})
    if problem is not None:
        wrong: Any = document.value
        for part in ("tasks", *problem.location):
            wrong = wrong[part]
        remedy = nearest(str(wrong), list(problem.valid)) if problem.valid else "keep one"
        raise ConfigError(problem.what, where=document.where(("tasks", *problem.location)), remedy=remedy)


def _check_record(document: Document, task: TaskDefinition, path: Path) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != task.record_sha256:
        raise ConfigError(
            f"{task.record} is {found}",
            where=document.where(("record_sha256",)),
            remedy="records are kept byte for byte: restore the file, or write the new SHA-256 if it is a new record",
        )


def _check_layers(document: Document, definition: ImageDefinition, folder: Path) -> None:
    for index, layer in enumerate(definition.layers):
        location: Location = ("layers", index)
        if (layer.wheels is None) == (not layer.files):
            raise ConfigError(f"layer {layer.name!r} takes either 'wheels' or 'files'", where=document.where(location))
        if layer.wheels is not None:
            if layer.path is None:
                raise ConfigError(f"layer {layer.name!r} of wheels needs a 'path'", where=document.where(location))
            _check_exists(document, (*location, "wheels"), folder, layer.wheels)
        for number, files in enumerate(layer.files):
            _check_exists(document, (*location, "files", number, "source"), folder, files.source)
    _check_unique(document, "layers", [layer.name for layer in definition.layers])
    if definition.base == "task" and definition.debian is None:
        raise ConfigError("an image over a task needs 'debian'", where=document.where(()), remedy="add the section")
    for index, path in enumerate(definition.fixtures.paths):
        _check_exists(document, ("fixtures", "paths", index), folder, path)


def _check_curriculum(document: Document, definition: ImageDefinition, folder: Path) -> None:
    curriculum = definition.curriculum
    if curriculum is None:
        return
    if definition.suite != "workflow":
        where = document.where(("curriculum",))
        raise ConfigError("only an image of workflow cases takes a 'curriculum'", where=where, remedy="remove it")
    location: Location = ("curriculum", "source")
    _check_exists(document, location, folder, curriculum.source)
    if not (folder / curriculum.source).is_file():
        raise ConfigError(f"{curriculum.source} is not a file", where=document.where(location))
    found = hashlib.sha256(read_bytes_limited(folder / curriculum.source, MAX_MODULE_BYTES)).hexdigest()
    if found != curriculum.sha256:
        raise ConfigError(
            f"the vendored curriculum {curriculum.source} has SHA-256 {found}",
            where=document.where(("curriculum", "sha256")),
            remedy=f"take {curriculum.path} of {curriculum.repository} at {curriculum.revision} again, "
            "or review the change and write the new SHA-256",
        )


def _check_exists(document: Document, location: Location, folder: Path, name: str) -> None:
    path = folder / name
    if not path.exists():
        siblings = [child.name for child in path.parent.iterdir()] if path.parent.is_dir() else []
        raise ConfigError(f"missing file: {name}", where=document.where(location), remedy=nearest(path.name, siblings))
    if not path.resolve().is_relative_to(_repository_of(folder)):
        raise ConfigError(f"{name} leads out of the repository", where=document.where(location))


def _repository_of(folder: Path) -> Path:
    resolved = folder.resolve()
    return next((parent for parent in resolved.parents if (parent / "policies").is_dir()), resolved)


def _check_unique(document: Document, section: str, names: list[str]) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ConfigError(f"{name!r} is named twice", where=document.where((section, index)), remedy="keep one")


def _check_targets(document: Document, file: ReleaseFile) -> None:
    if file.default_target not in file.targets:
        where = document.where(("default_target",))
        raise ConfigError(
            f"no target {file.default_target!r}", where=where, remedy=nearest(file.default_target, file.targets)
        )
    ids = [image.id for image in file.images]
    _check_unique(document, "images", ids)
    for name, target in file.targets.items():
        _check_registry(document, name, target)
        for image_id, reference in target.pinned.items():
            location: Location = ("targets", name, "pinned", image_id)
            if image_id not in ids:
                raise ConfigError(
                    f"no image {image_id!r}", where=document.where(location), remedy=nearest(image_id, ids)
                )
            load_reference(reference, document.where(location), pinned=True)


def _check_registry(document: Document, name: str, target: Target) -> None:
    where = document.where(("targets", name, "registry"))
    load_reference(f"{target.registry}/{target.repository.replace('{image}', 'x')}:x", where)
    loopback = target.registry.partition(":")[0] in ("127.0.0.1", "localhost")
    if (target.kind == "embedded") != loopback:
        raise ConfigError(
            f"target {name!r} is {target.kind} and its registry is {target.registry!r}",
            where=where,
            remedy="an embedded target listens on 127.0.0.1:port; a remote one never does",
        )


def _load_policy(root: Path, document: Document, index: int, name: str) -> Policy:
    where = document.where(("policies", index))
    policy_document = _read(root / "policies" / f"{name}.yaml", where, f"policies/{name}.yaml")
    policy = load_model(policy_document, Policy)
    if policy.id != name:
        raise ConfigError(
            f"the file is named {name!r} and its id is {policy.id!r}", where=policy_document.where(("id",))
        )
    return policy


def _in_base_order(document: Document, images: tuple[ImageSource, ...]) -> tuple[ImageSource, ...]:
    by_id = {image.id: image for image in images}
    ordered: list[ImageSource] = []

    def visit(image: ImageSource, path: tuple[str, ...]) -> None:
        where = document.where(("images", images.index(image), "base"))
        if image.id in path:
            raise ConfigError(f"images derive from one another: {' -> '.join((*path, image.id))}", where=where)
        base = image.released.base
        if base is not None and base not in by_id:
            raise ConfigError(f"no image {base!r} to derive from", where=where, remedy=nearest(base, by_id))
        if image in ordered:
            return
        if base is not None:
            visit(by_id[base], (*path, image.id))
        ordered.append(image)

    for image in images:
        visit(image, ())
    return tuple(ordered)

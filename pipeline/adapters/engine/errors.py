"""What an engine's failures mean to a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import requests
import urllib3
from docker.errors import APIError, DockerException

from pipeline.errors import PipelineError, ServiceError, StorageError

# The engine reports a full disk as status 500 like everything else; the kernel's own words are the only sign of it.
_FULL = "no space left on device"


@contextmanager
def engine_errors(what: str, where: str) -> Iterator[None]:
    """ServiceError or StorageError for whatever the SDK raises while the engine does `what` to `where`."""
    try:
        yield
    except APIError as error:
        raise failure_of(what, where, str(error.explanation or error)) from error
    except (
        DockerException,
        requests.RequestException,
        urllib3.exceptions.HTTPError,
        ConnectionError,
        TimeoutError,
    ) as error:
        raise ServiceError(
            f"the Docker engine does not answer: {what}",
            where=f"{where}: {type(error).__name__}: {error}",
            remedy="see `nox -s status`, start the engine (`nox -s up`), then run the same command again",
        ) from error


def failure_of(what: str, where: str, message: str) -> PipelineError:
    """The error for a message of the engine itself."""
    if _FULL in message.lower():
        return StorageError(
            f"the Docker engine's disk is full: {what}",
            where=where,
            remedy="free space for the engine, then run it again",
        )
    return ServiceError(
        f"the Docker engine refuses: {what}", where=f"{where}: {message}", remedy="see the engine's log"
    )

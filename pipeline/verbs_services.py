"""The verbs for the local target's services. They work whatever state the release file is in."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import ConfigError
from pipeline.files import remove_tree
from pipeline.paths import STATE_FOLDER
from pipeline.world import Settings, World

if TYPE_CHECKING:
    from pipeline.embedded.services import Services, Status

DEFAULT_PORT, TESTS_PORT = 5710, 5720
# downloads are kept by --purge: they are checked by digest whenever they are used
KEPT = ("cache", "noxw.lock", "lock")


def up(options: argparse.Namespace, settings: Settings) -> None:
    """Start the local services."""
    from pipeline.embedded import services

    _print_status(services.start(World(options.release, options.target, settings).services))


def down(options: argparse.Namespace, settings: Settings) -> None:
    """Stop the local services, and those that a killed test run left; with --purge, remove the local state too."""
    from pipeline.embedded import services
    from pipeline.embedded.services import Services

    state = _state_path(options)
    services.stop(_services(options, settings))
    if (state / "tests").is_dir():
        services.stop(Services(state / "tests", TESTS_PORT))
    if options.purge:
        for path in sorted(state.iterdir()):
            if path.name not in KEPT and path.is_dir():
                remove_tree(path)
    print("stopped" + (", and local state removed" if options.purge else ""))


def status(options: argparse.Namespace, settings: Settings) -> None:
    """Print what runs."""
    from pipeline.embedded import services

    _print_status(services.status(_services(options, settings)))


def _services(options: argparse.Namespace, settings: Settings) -> Services:
    from pipeline.embedded.services import Services

    try:
        return World(options.release, options.target, settings).services
    except ConfigError:  # a broken release file must not keep anything running
        return Services(_state_path(options) / "services", DEFAULT_PORT, settings.engine_url, settings.proxies)


def _state_path(options: argparse.Namespace) -> Path:
    release: Path = options.release
    return release.resolve().parent / STATE_FOLDER


def _print_status(found: Status) -> None:
    for service in found.services:
        print(f"{service.name:20} {service.state:10} {service.where:55} {service.pid or ''}".rstrip())

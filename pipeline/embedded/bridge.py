"""A network bridge of a private engine's own: never docker0, which another engine may hold."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from pathlib import Path
from typing import Any

from pipeline.embedded.process import find_program
from pipeline.errors import ServiceError

_POOL = ipaddress.IPv4Network("10.212.0.0/15")
_PREFIX = 24
_CANDIDATES = 64


def bridge_exists(name: str) -> bool:
    """Whether the interface is there."""
    return (Path("/sys/class/net") / name).exists()


def make_bridge(name: str, seed: int) -> None:
    """Make the bridge with a free /24 of 10.212.0.0/15, the first choice by `seed`, and bring it up."""
    remove_bridge(name)
    subnet = choose_subnet(_networks_in_use(), seed)
    _ip("link", "add", name, "type", "bridge")
    _ip("address", "add", f"{subnet[1]}/{_PREFIX}", "dev", name)
    _ip("link", "set", name, "up")


def remove_bridge(name: str) -> None:
    """Remove it when it is there."""
    if bridge_exists(name):
        _ip("link", "delete", name)


def choose_subnet(used: list[ipaddress.IPv4Network], seed: int) -> ipaddress.IPv4Network:
    """The first of the pool's /24 networks, counted from `seed`, that overlaps none in use. ServiceError if none."""
    count = 1 << (_PREFIX - _POOL.prefixlen)
    for step in range(_CANDIDATES):
        first = int(_POOL.network_address) + ((seed + step) % count << (32 - _PREFIX))
        subnet = ipaddress.IPv4Network((first, _PREFIX))
        if not any(subnet.overlaps(other) for other in used):
            return subnet
    raise ServiceError("no free network for the private engine", where=str(_POOL), remedy="free a part of this range")


def _networks_in_use() -> list[ipaddress.IPv4Network]:
    destinations = [route["dst"] for route in _ip_json("-4", "route", "show", "table", "all")]
    return [ipaddress.IPv4Network(destination) for destination in destinations if destination[0].isdigit()]


def _ip_json(*arguments: str) -> list[dict[str, Any]]:
    parsed: list[dict[str, Any]] = json.loads(_ip("-json", *arguments) or "[]")
    return [entry for entry in parsed if entry]


def _ip(*arguments: str) -> str:
    done = subprocess.run([find_program("ip", "iproute2"), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServiceError(
            "cannot set up the private engine's network",
            where=f"ip {' '.join(arguments)}: {done.stderr.strip()}",
            remedy="run as root where network interfaces may be made, or start a Docker engine and set DOCKER_HOST",
        )
    return done.stdout

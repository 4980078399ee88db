"""Run as a program: download sdists by way of pip's own index machinery, without building or executing any of them.

`pip download` runs a project's build backend even with `--no-deps`. This asks pip's package finder for the links, so
the machine's index, certificates, proxy and credentials apply, and fetches the files that it is told to. Standard
input: JSON `{"project", "files": {name: sha256}, "destination"}`. Standard output: JSON `{"missing": [name]}`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

MAX_FILE_BYTES = 256 << 20
CONNECTIONS = 6


def main() -> None:
    """Fetch what standard input asks for."""
    request = json.load(sys.stdin)
    wanted, destination = request["files"], Path(request["destination"])
    # pip prints notes about its sources to standard output; that is for our answer alone.
    with contextlib.redirect_stdout(sys.stderr):
        missing = _fetch(request["project"], wanted, destination)
    json.dump({"missing": sorted(missing)}, sys.stdout)


def _fetch(project: str, wanted: dict[str, str], destination: Path) -> set[str]:
    command = importlib.import_module("pip._internal.commands").create_command("index")
    options, _ = command.parse_args(["versions", project, "--no-binary", ":all:", "--pre", "-q"])
    with command.main_context():
        session = command._build_session(options)
        finder = command._build_package_finder(options, session)
        links = {item.link.filename: item.link for item in finder.find_all_candidates(project)}
        found = [name for name in wanted if name in links]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda name: _download(session, links[name], wanted[name], destination), found))
    return set(wanted) - set(links)


def _download(session: Any, link: Any, sha256: str, destination: Path) -> None:
    response = session.get(link.url_without_fragment, stream=True, headers={"Accept-Encoding": "identity"})
    response.raise_for_status()
    digest, count = hashlib.sha256(), 0
    with (destination / link.filename).open("wb") as stream:
        for chunk in response.iter_content(1 << 20):
            digest.update(chunk)
            count += len(chunk)
            if count > MAX_FILE_BYTES:
                raise ValueError(f"{link.filename} is larger than {MAX_FILE_BYTES} bytes")
            stream.write(chunk)
    if digest.hexdigest() != sha256:
        raise ValueError(f"{link.filename} has sha256 {digest.hexdigest()}, expected {sha256}")


if __name__ == "__main__":
    main()

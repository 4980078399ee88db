"""A real image of a few megabytes of this machine's own programs: a shell, perl, and an HTTP server of ten lines."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from pipeline.derive.layer import Entry, make_layer
from pipeline.layout import Layout
from pipeline.model.oci import OCI_CONFIG, OCI_LAYER_GZIP, OCI_MANIFEST, Descriptor, Manifest

PORT = 8000
_PROGRAMS = ("sh", "perl", "cat", "sleep", "id")
_LIBRARY = re.compile(r"(/\S+) \(0x")
# As process 1 it has no default reaction to SIGTERM, so it says what to do itself.
_SERVER = rb"""
$| = 1; $SIG{TERM} = sub { exit 0 }; $SIG{CHLD} = 'IGNORE';
socket(my $server, 2, 1, 6) or die $!; setsockopt($server, 1, 2, pack('l', 1));
bind($server, pack('S n a4 x8', 2, 8000, "\0\0\0\0")) or die $!; listen($server, 16) or die $!;
print "listening\n";
while (1) {
    accept(my $client, $server) or next;
    sysread($client, my $request, 4096);
    syswrite($client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    close($client);
}
"""


def make_tiny_image(folder: Path, *, marker: str = "", port: bool = True) -> tuple[Layout, Manifest]:
    """The image as a layout. `marker` makes another image of it, with other digests; without `port` it exposes none."""
    layout = Layout(folder)
    system, facts = make_layer(_system_entries(), 0)
    server, server_facts = make_layer([Entry("server.pl", data=_SERVER + marker.encode())], 0)
    layers = [
        Descriptor(mediaType=OCI_LAYER_GZIP, digest=layout.write_bytes(data), size=len(data))
        for data in (system, server)
    ]
    runtime = {"Cmd": ["/bin/perl", "/server.pl"], "Env": ["PATH=/bin"], "User": "root", "StopSignal": "SIGTERM"}
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {**runtime, **({"ExposedPorts": {f"{PORT}/tcp": {}}} if port else {})},
        "rootfs": {"type": "layers", "diff_ids": [facts.diff_id, server_facts.diff_id]},
    }
    config_data = json.dumps(config).encode()
    described = Descriptor(mediaType=OCI_CONFIG, digest=layout.write_bytes(config_data), size=len(config_data))
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": described.to_json(),
        "layers": [layer.to_json() for layer in layers],
    }
    manifest = Manifest(json.dumps(document).encode(), OCI_MANIFEST)
    layout.write_bytes(manifest.raw)
    layout.write_index([manifest.descriptor])
    return layout, manifest


def _system_entries() -> list[Entry]:
    programs = [shutil.which(name, path="/usr/bin:/bin") for name in _PROGRAMS]
    libraries = {library for program in programs if program for library in _libraries(program)}
    entries = [
        Entry(f"bin/{name}", data=Path(str(program)).read_bytes(), mode=0o755)
        for name, program in zip(_PROGRAMS, programs, strict=True)
    ]
    entries += [Entry(library.lstrip("/"), data=Path(library).read_bytes(), mode=0o755) for library in libraries]
    users = Entry("etc/passwd", data=b"root:x:0:0:root:/:/bin/sh\n")
    return [*entries, users, Entry("tmp", "dir", mode=0o777)]


def _libraries(program: str) -> set[str]:
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return set(_LIBRARY.findall(listed))

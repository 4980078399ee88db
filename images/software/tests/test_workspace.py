"""The folder that the agent owns: what is written, what is read, and that nothing redirects either."""

import errno
import os
import resource
import socket
import stat
import threading
from pathlib import Path

import pytest
from workflow.grading import MAX_BYTES
from workflow.workspace import read_answer

OWNER = os.getuid()


@pytest.fixture
def folder(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield tmp_path, descriptor
    os.close(descriptor)


def within(seconds, function, *arguments):
    """The function's result, or a failure when it blocks."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*arguments)), daemon=True)
    thread.start()
    thread.join(seconds)
    assert results, "blocked"
    return results[0]


def test_a_regular_file_is_read(folder):
    (folder[0] / "answer.json").write_bytes(b"x" * MAX_BYTES)
    assert read_answer(folder[1], OWNER) == b"x" * MAX_BYTES


def test_larger_and_sparse_files_are_not_read(folder):
    (folder[0] / "answer.json").write_bytes(b"x" * (MAX_BYTES + 1))
    assert read_answer(folder[1], OWNER) == b""
    os.truncate(folder[0] / "answer.json", 1 << 36)
    assert read_answer(folder[1], OWNER) == b""


def test_missing_is_empty(folder):
    assert read_answer(folder[1], OWNER) == b""


@pytest.mark.parametrize(
    "target", ["right.json", "/dev/zero", "/dev/stdin", "answer.json", "/proc/self/environ", "nowhere"]
)
def test_links_are_not_followed(folder, target):
    (folder[0] / "right.json").write_text("{}")
    (folder[0] / "answer.json").symlink_to(target)
    assert within(2, read_answer, folder[1], OWNER) == b""


def test_a_fifo_does_not_block_with_or_without_a_writer(folder):
    os.mkfifo(folder[0] / "answer.json")
    assert within(2, read_answer, folder[1], OWNER) == b""
    writer = os.open(folder[0] / "answer.json", os.O_RDWR | os.O_NONBLOCK)
    os.write(writer, b"{}")
    assert within(2, read_answer, folder[1], OWNER) == b""
    os.close(writer)


def test_directories_and_sockets_are_empty(folder, monkeypatch):
    (folder[0] / "answer.json").mkdir()
    assert read_answer(folder[1], OWNER) == b""
    (folder[0] / "answer.json").rmdir()
    monkeypatch.chdir(folder[0])
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("answer.json")
        assert read_answer(folder[1], OWNER) == b""


def test_a_file_of_somebody_else_is_not_read(folder):
    (folder[0] / "answer.json").write_text("{}")
    assert read_answer(folder[1], OWNER + 1) == b""


def test_a_renamed_folder_is_still_the_folder(folder):
    """The descriptor decides, not the path."""
    path, descriptor = folder
    (path / "answer.json").write_text("held")
    moved = path.with_name(path.name + "-moved")
    path.rename(moved)
    path.mkdir()
    (path / "answer.json").write_text("planted")
    assert read_answer(descriptor, OWNER) == b"held"


def test_no_descriptor_leaks(folder):
    (folder[0] / "answer.json").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(50):
        read_answer(folder[1], OWNER)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_server_without_descriptors_is_an_error_not_a_score(folder):
    (folder[0] / "answer.json").write_text("{}")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (folder[1] + 20, hard))
    try:
        while True:
            try:
                held.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        with pytest.raises(OSError, match="Too many open files") as failure:
            read_answer(folder[1], OWNER)
        assert failure.value.errno == errno.EMFILE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)


def test_modes_do_not_matter_to_root(folder):
    (folder[0] / "answer.json").write_text("{}")
    (folder[0] / "answer.json").chmod(0)
    expected = b"{}" if os.getuid() == 0 else b""
    assert read_answer(folder[1], OWNER) == expected
    assert stat.S_IMODE((folder[0] / "answer.json").stat().st_mode) == 0

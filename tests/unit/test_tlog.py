"""The append-only log: proofs for every size, durability, and what a crash or a full disk leaves."""

from __future__ import annotations

import base64
import hashlib
import threading
from pathlib import Path

import pytest

from pipeline.embedded.sigstore import tlog
from pipeline.embedded.sigstore.tlog import Inclusion, Log, Signature, Tree
from pipeline.errors import IntegrityError, LockedError, StorageError

SIGNATURE = Signature("log.test", "log.test", b"hint", lambda note: hashlib.sha256(note).digest())


def root_from_proof(body: bytes, index: int, size: int, hashes: tuple[bytes, ...]) -> bytes:
    """RFC 9162, section 2.1.3.2: another way to the root than the tree's own recursion."""
    node, last, rest = tlog.hash_leaf(body), size - 1, list(hashes)
    while last:
        if index & 1 or index == last:
            node = tlog.hash_children(rest.pop(0), node)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            node = tlog.hash_children(node, rest.pop(0))
        index, last = index >> 1, last >> 1
    assert not rest
    return node


def check(inclusion: Inclusion, body: bytes) -> None:
    assert root_from_proof(body, inclusion.index, inclusion.size, inclusion.hashes) == inclusion.root


def test_the_vectors_of_certificate_transparency() -> None:
    """The eight leaves and roots that implementations of RFC 6962 share."""
    leaves = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    roots = {
        1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    }
    tree = Tree()
    assert tree.root() == hashlib.sha256(b"").digest()
    for leaf in leaves:
        tree.append(bytes.fromhex(leaf))
    assert {size: tree.root(size).hex() for size in roots} == roots


def test_proofs_of_every_leaf_in_every_tree() -> None:
    tree, bodies = Tree(), [b"%d" % number for number in range(70)]
    for body in bodies:
        tree.append(body)
    for size in range(1, 71):
        for index in range(size):
            found = root_from_proof(bodies[index], index, size, tree.path(index, size))
            assert found == tree.root(size)


def test_a_restarted_log_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log"
    first = Log(path, SIGNATURE)
    for number in range(5):
        check(first.append(b"%d" % number), b"%d" % number)
    before = first.checkpoint()
    first.close()
    second = Log(path, SIGNATURE)
    assert second.checkpoint() == before
    inclusion = second.append(b"more")
    assert (inclusion.index, inclusion.size) == (5, 6)
    check(inclusion, b"more")


@pytest.mark.parametrize("torn", [b"a", b"aGVsbG8", b"aGVsbG8=", b"\xff\0"])
def test_a_torn_last_line_is_dropped(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "log"
    log = Log(path, SIGNATURE)
    log.append(b"kept")
    before = log.checkpoint()
    log.close()
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    again = Log(path, SIGNATURE)
    assert again.checkpoint() == before
    assert path.read_bytes() == whole
    check(again.append(b"next"), b"next")
    again.close()
    assert path.read_bytes() == whole + base64.b64encode(b"next") + b"\n"


def test_a_damaged_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a2VwdA==\nnot base64!\na2VwdA==\n")
    with pytest.raises(IntegrityError) as caught:
        Log(path, SIGNATURE)
    assert caught.value.where == f"{path}:2"


def test_one_process_owns_a_log(tmp_path: Path) -> None:
    owner = Log(tmp_path / "log", SIGNATURE)
    with pytest.raises(LockedError):
        Log(tmp_path / "log", SIGNATURE)
    owner.close()
    Log(tmp_path / "log", SIGNATURE).close()


def test_a_write_that_fails_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    log = Log(path, SIGNATURE)
    log.append(b"kept")
    before, whole = log.checkpoint(), path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(StorageError):
            log.append(b"lost")
    assert (log.checkpoint(), path.read_bytes()) == (before, whole)
    check(log.append(b"next"), b"next")


def test_an_entry_is_on_the_disk_before_it_is_proved(tmp_path: Path) -> None:
    path, seen = tmp_path / "log", []

    def sign(_: bytes) -> bytes:
        seen.append(path.read_bytes())
        return b"signature"

    Log(path, Signature("log.test", "log.test", b"hint", sign)).append(b"body")
    assert seen == [base64.b64encode(b"body") + b"\n"]


def test_threads_get_distinct_entries(tmp_path: Path) -> None:
    log, found = Log(tmp_path / "log", SIGNATURE), []

    def work(worker: int) -> None:
        for number in range(25):
            body = b"%d-%d" % (worker, number)
            found.append((log.append(body), body))

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(inclusion.index for inclusion, _ in found) == list(range(100))
    for inclusion, body in found:
        check(inclusion, body)


def test_a_checkpoint_is_a_signed_note(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", SIGNATURE)
    root = log.append(b"body").root
    note, _, signature = log.checkpoint().partition("\n\n")
    assert note == f"log.test\n1\n{base64.b64encode(root).decode()}"
    dash, name, value = signature.rstrip("\n").split(" ")
    assert (dash, name) == ("\u2014", "log.test")
    assert base64.b64decode(value) == b"hint" + hashlib.sha256(note.encode() + b"\n").digest()


def test_tiles_hold_the_hashes_of_the_tree(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", SIGNATURE)
    bodies = [b"%d" % number for number in range(300)]
    for body in bodies:
        log.append(body)
    leaves = [tlog.hash_leaf(body) for body in bodies]
    assert log.tile(0, 0, 256) == b"".join(leaves[:256])
    assert log.tile(0, 1, 44) == b"".join(leaves[256:])
    row = leaves[:256]
    while len(row) > 1:
        row = [tlog.hash_children(*row[place : place + 2]) for place in range(0, len(row), 2)]
    assert log.tile(1, 0, 1) == row[0]
    assert log.bundle(1, 44) == b"".join(len(body).to_bytes(2, "big") + body for body in bodies[256:])
    for level, index, width in ((0, 1, 45), (0, 2, 1), (1, 0, 2), (7, 0, 1)):
        assert log.tile(level, index, width) is None
    assert log.bundle(1, 256) is None

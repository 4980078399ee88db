"""Run by an image's own Python: sources on standard input, unchecked-hash bytecode (PEP 552) on standard output.

Input, repeated: two big-endian 32-bit lengths, the path inside the image, the source. Output, in the same order: a
status byte (0 bytecode, 1 note), a 32-bit length, the content.

Every file is compiled in a child forked from one fixed state: `marshal` marks an object as shared by its reference
count, so a name that an earlier file interned would change the bytes of a later one.
"""

import importlib.util
import marshal
import os
import resource
import struct
import sys

COMPILE_S = 20
MEMORY_BYTES = 2 << 30


def main() -> None:
    """Answer every source in turn."""
    stream, out = sys.stdin.buffer, sys.stdout.buffer
    while head := stream.read(8):
        path_bytes, source_bytes = struct.unpack(">II", head)
        path, source = stream.read(path_bytes).decode(), stream.read(source_bytes)
        out.write(_compile_in_child(path, source))
    out.flush()


def _compile_in_child(path: str, source: bytes) -> bytes:
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiving)
        _answer(sending, path, source)
    os.close(sending)
    with os.fdopen(receiving, "rb") as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    if status != 0 or len(answer) < 5:
        return _frame(1, f"the compiler ended with status {status}".encode())
    return answer


def _answer(sending: int, path: str, source: bytes) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (COMPILE_S, COMPILE_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        code = compile(source, path, "exec", dont_inherit=True, optimize=0)
        head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source)
        frame = _frame(0, head + marshal.dumps(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        frame = _frame(1, f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
    with os.fdopen(sending, "wb") as stream:
        stream.write(frame)
    os._exit(0)


def _frame(status: int, content: bytes) -> bytes:
    return struct.pack(">BI", status, len(content)) + content


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()

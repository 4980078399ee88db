"""A layer's plain bytes, by its media type. Damage in the compressed stream is a HostileInputError."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import zstandard
from isal import igzip, igzip_lib

from pipeline.errors import HostileInputError
from pipeline.model.oci import DOCKER_LAYER_GZIP, OCI_LAYER_GZIP, OCI_LAYER_TAR, OCI_LAYER_ZSTD, Descriptor

_MAX_WINDOW_BYTES = 128 << 20
_ISAL = cast("type[Exception]", igzip_lib.IsalError)
_DAMAGE = (zlib.error, _ISAL, zstandard.ZstdError, EOFError, igzip.BadGzipFile)


@contextmanager
def open_layer(blob: BinaryIO, layer: Descriptor) -> Iterator[BinaryIO]:
    """Plain tar bytes of a layer's blob; HostileInputError for an unknown media type or a damaged stream."""
    try:
        yield _plain(blob, layer)
    except _DAMAGE as error:
        raise HostileInputError(f"damaged compressed layer: {error}", where=layer.digest) from error


def _plain(blob: BinaryIO, layer: Descriptor) -> BinaryIO:
    if layer.media_type in (OCI_LAYER_GZIP, DOCKER_LAYER_GZIP):
        return cast(BinaryIO, igzip.open(blob, "rb"))  # type: ignore[no-untyped-call]
    if layer.media_type == OCI_LAYER_ZSTD:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
        return cast(BinaryIO, decompressor.stream_reader(blob, read_across_frames=True))
    if layer.media_type == OCI_LAYER_TAR:
        return blob
    raise HostileInputError(f"a layer of unknown media type {layer.media_type!r}", where=layer.digest)

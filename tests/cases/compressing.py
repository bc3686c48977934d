"""Content codings as senders apply them: a whole body at once, or a stream that is flushed after each event."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable

import brotli
import zstandard

CODINGS = ("gzip", "deflate", "br", "zstd")

_WHOLE: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}
_UNDO: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


def compressed(coding: str, data: bytes) -> bytes:
    return _WHOLE[coding](data)


def decompressed(coding: str, data: bytes) -> bytes:
    return _UNDO[coding](data)


def flushed(coding: str, pieces: Iterable[bytes]) -> list[bytes]:
    """Each piece compressed, behind those before it, so far that a reader can have all of it; then the end."""
    match coding:
        case "gzip" | "deflate":
            stream = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
            done = [stream.compress(piece) + stream.flush(zlib.Z_SYNC_FLUSH) for piece in pieces]
            return [*done, stream.flush()]
        case "br":
            brotlied = brotli.Compressor()
            return [*[brotlied.process(piece) + brotlied.flush() for piece in pieces], brotlied.finish()]
        case "zstd":
            framed = zstandard.ZstdCompressor().compressobj()
            block = zstandard.COMPRESSOBJ_FLUSH_BLOCK
            return [*[framed.compress(piece) + framed.flush(block) for piece in pieces], framed.flush()]
        case _:
            raise ValueError(coding)

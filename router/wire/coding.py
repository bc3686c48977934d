"""Content codings, undone in order to look: at compressed answers beside the relay, at compressed request bodies.

What passes the router stays compressed as it came. A decoder gives out at once all that the bytes so far contain, so a
stream that its sender flushes after each event is seen event by event. Output is made in bounded pieces: ten
kilobytes can hold a gigabyte, and whoever asked stops taking pieces where enough is enough.

Sources: RFC 9110 section 8.4 (codings), RFC 1950-1952 (deflate, gzip), RFC 7932 (br), RFC 8878 and RFC 9659 (zstd).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import brotli
import zstandard

from router.errors import BadRequest, TooLarge, UnsupportedCoding

_PIECE_BYTES = 256 * 1024
_FEED_LIMIT_BYTES = 16 * 2**20
_MOST_CODINGS = 4
_HARMLESS_BYTES = 4 * 2**20
_MOST_RATIO = 200
"""No text that people or programs write gets that much smaller; what comes out beyond `_HARMLESS_BYTES` is a bomb."""
_ZSTD_WINDOW_BYTES = 8 * 2**20
"""RFC 9659: no sender of this coding may need more."""
_ZSTD_SLICE_BYTES = 256
"""Four bytes of zstd are at most one block of 128 KiB, and the library cannot stop in the middle of its input."""
_CORRUPT = (zlib.error, brotli.error, zstandard.ZstdError)


class Decoder:
    """Undoes one coding of one body."""

    __slots__ = ("_open", "_stream", "broken", "complete")

    def __init__(self, open_stream: Callable[[], _Stream]) -> None:
        self._open = open_stream
        self._stream = open_stream()
        self.broken = False
        """The bytes are not of this coding; nothing more will come out."""
        self.complete = False
        """The coding's own end was reached."""

    def feed(self, data: bytes) -> bytes:
        """All that these bytes complete, up to where they are corrupt. Never raises; what inflates beyond reason gives
        nothing.
        """
        taken: list[bytes] = []
        size = 0
        for piece in self.pieces(data):
            taken.append(piece)
            size += len(piece)
            if size > _FEED_LIMIT_BYTES:
                self.broken = True
                return b""
        return b"".join(taken)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """The same in pieces of at most some megabytes, made while they are taken."""
        while data and not self.broken:
            if self.complete and self._stream.may_repeat:
                self._stream = self._open()
            try:
                yield from self._stream.inflate(data)
            except _CORRUPT:
                self.broken = True
                return
            data = self._stream.rest
            self.complete = self._stream.ended


def decoder(coding: str) -> Decoder | None:
    """A decoder for a name as it stands in Content-Encoding; None: not known here."""
    open_stream = _STREAMS.get(coding.strip().lower())
    return Decoder(open_stream) if open_stream is not None else None


def decode_body(data: bytes, codings: Sequence[str], limit_bytes: int) -> bytes:
    """A request body without its codings, which are given in the order in which they were applied.

    Raises `UnsupportedCoding`, `BadRequest` (corrupt or cut off) and `TooLarge` (as soon as more than `limit_bytes`
    have come out of any coding, or so much more than went in that it can only be meant to fill the memory).
    """
    if len(codings) > _MOST_CODINGS:
        raise UnsupportedCoding(f"Content-Encoding: at most {_MOST_CODINGS} codings are undone; send fewer")
    limit_bytes = min(limit_bytes, max(_HARMLESS_BYTES, _MOST_RATIO * len(data)))
    for coding in reversed(codings):
        if coding.strip().lower() != "identity":
            data = _decode(data, coding, limit_bytes)
    return data


def _decode(data: bytes, coding: str, limit_bytes: int) -> bytes:
    undo = decoder(coding)
    if undo is None:
        known = ", ".join(_STREAMS)
        raise UnsupportedCoding(f"Content-Encoding: {coding[:40]!r} is not known; send one of {known}, or no coding")
    taken: list[bytes] = []
    size = 0
    for piece in undo.pieces(data):
        size += len(piece)
        if size > limit_bytes:
            raise TooLarge(
                f"the body is larger than {limit_bytes} bytes when decompressed; send a smaller one, or not compressed"
            )
        taken.append(piece)
    if undo.broken:
        raise BadRequest(f"Content-Encoding: the body is not valid {coding[:40]}; send what the header says")
    if not undo.complete:
        raise BadRequest(f"Content-Encoding: the {coding[:40]} body ends too early; send all of it")
    return b"".join(taken)


class _Stream(Protocol):
    """One compressed body."""

    may_repeat: bool
    """Whether several, one after the other, count as one; gzip and zstd allow it."""
    ended: bool
    rest: bytes
    """Input after the end."""

    def inflate(self, data: bytes) -> Iterator[bytes]: ...


class _Zlib:
    may_repeat = True

    def __init__(self, window_bits: int) -> None:
        self.ended = False
        self.rest = b""
        self._stream = zlib.decompressobj(window_bits)

    def inflate(self, data: bytes) -> Iterator[bytes]:
        while not self.ended:
            piece = self._stream.decompress(data, _PIECE_BYTES)
            if piece:
                yield piece
            data = self._stream.unconsumed_tail
            self.ended = self._stream.eof
            if not data and len(piece) < _PIECE_BYTES:
                break
        self.rest = self._stream.unused_data


class _Deflate:
    """RFC 9110 means deflate in a zlib wrapper; some senders leave the wrapper out."""

    may_repeat = True

    def __init__(self) -> None:
        self.ended = False
        self.rest = b""
        self._start = b""
        self._stream: _Zlib | None = None

    def inflate(self, data: bytes) -> Iterator[bytes]:
        if self._stream is None:
            data = self._start = self._start + data
            if len(data) < 2:
                return
            wrapped = data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
            self._stream = _Zlib(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
        yield from self._stream.inflate(data)
        self.ended = self._stream.ended
        self.rest = self._stream.rest


class _Brotli:
    may_repeat = False  # the library refuses what follows

    def __init__(self) -> None:
        self.ended = False
        self.rest = b""
        self._stream = brotli.Decompressor()

    def inflate(self, data: bytes) -> Iterator[bytes]:
        full = True
        while full:
            piece: bytes = self._stream.process(data, output_buffer_limit=_PIECE_BYTES)
            if piece:
                yield piece
            data = b""
            # The library says that it can take more input also while it holds back output.
            full = len(piece) >= _PIECE_BYTES or not self._stream.can_accept_more_data()
        self.ended = self._stream.is_finished()


class _Zstd:
    may_repeat = True

    def __init__(self) -> None:
        self.ended = False
        self.rest = b""
        self._stream = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES).decompressobj()

    def inflate(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_SLICE_BYTES):
            end = start + _ZSTD_SLICE_BYTES
            if piece := self._stream.decompress(data[start:end]):
                yield piece
            if self._stream.eof:
                self.ended = True
                self.rest = self._stream.unused_data + data[end:]
                return


_STREAMS: dict[str, Callable[[], _Stream]] = {
    "gzip": lambda: _Zlib(16 + zlib.MAX_WBITS),
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
    "x-gzip": lambda: _Zlib(16 + zlib.MAX_WBITS),
}

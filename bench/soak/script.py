"""The answer to an order: which bytes, in which writes, and what becomes of the connection.

Made from the order alone, so the client knows to the byte what has to come without having asked anybody. Each piece
of output carries the number of the call and its own place, and the last one a checksum of all.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import islice

from bench.soak.apis import Api
from bench.soak.order import Fault, Framing, Order, Way

_FILLER = "a word, żółć, 渐, 😀; "
_KEEP_ALIVE = b"Connection: keep-alive\r\nKeep-Alive: timeout=4\r\n"
_SHARDS = 6
"""Pieces in which an answer is written that is not streamed."""
_OFF_BYTES = 40
"""By which a wrong Content-Length is wrong."""
_OVERFLOWS = frozenset({Fault.SURPLUS, Fault.TOO_SHORT})
"""All in one write: what comes after the connection has been given another call looks like a part of that one."""
STATUS = {
    Fault.ERROR: (500, b"Internal Server Error", b""),
    Fault.BUSY: (503, b"Service Unavailable", b"Retry-After: 3\r\n"),
    Fault.LIMIT: (429, b"Too Many Requests", b"Retry-After: 3\r\n"),
    Fault.LOADING: (503, b"Service Unavailable", b""),
}


@lru_cache(maxsize=4096)
def _filler(size: int) -> bytes:
    """About so many bytes, whole characters."""
    text = _FILLER * (size // len(_FILLER.encode()) + 1)
    return text.encode()[:size].decode(errors="ignore").encode()


def texts(order: Order) -> Iterator[bytes]:
    """What the pieces say."""
    filler = _filler(order.size)
    total = 0
    for place in range(order.pieces - 1):
        text = b"%d.%d %b" % (order.n, place, filler)
        total = zlib.crc32(text, total)
        yield text
    yield b"%d.%d sum %08x" % (order.n, order.pieces - 1, total)


def events(api: Api, order: Order) -> Iterator[bytes]:
    """The events of a streamed answer."""
    before, behind = api.piece
    if api.opening:
        yield api.opening
    for text in texts(order):
        yield before + text + behind
    yield api.ending


def parts(api: Api, order: Order) -> Sequence[bytes]:
    """The body of a complete answer, in the pieces in which it is written."""
    if order.stream and not order.gzip:
        return list(events(api, order))
    if order.stream:
        whole = b"".join(events(api, order))
    else:
        before, behind = api.whole
        whole = before + b"|".join(texts(order)) + behind
    if order.gzip:
        whole = gzip.compress(whole, 1, mtime=0)
    step = len(whole) // _SHARDS + 1
    return [whole[start : start + step] for start in range(0, len(whole), step)]


def begins(api: Api, order: Order, size_bytes: int) -> bytes:
    """The first bytes of a streamed answer that may be too large to be held."""
    found: list[bytes] = []
    size = 0
    for event in events(api, order):
        found.append(event)
        size += len(event)
        if size >= size_bytes:
            break
    return b"".join(found)[:size_bytes]


def no(order: Order) -> bytes:
    """The body of a backend's own error: it names the call."""
    word = "Loading model" if order.fault is Fault.LOADING else f"no {order.n}"
    return b'{"error":{"code":"%b","type":"server_error","param":null,"message":"%b"}}' % (
        order.fault.encode(),
        word.encode(),
    )


class End(StrEnum):
    """What a backend does when it has written all that it will."""

    NEXT = "next"
    """It waits for the next call, or does what `Order.then` says."""
    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"


@dataclass(frozen=True, slots=True)
class Script:
    """`writes`: milliseconds to wait, then the bytes."""

    writes: Iterator[tuple[int, bytes]]
    end: End


_ENDS = {Way.CLOSE: End.CLOSE, Way.RESET: End.RESET, Way.HANG: End.HANG}


def script(api: Api, order: Order) -> Script:
    fault = order.fault
    if fault in STATUS:
        return Script(_once(order, _error(order)), End.NEXT)
    match fault:
        case Fault.UNANSWERED:
            return Script(_once(order, b""), _ENDS[order.way])
        case Fault.GARBAGE:
            return Script(_once(order, b"220 mail.example ESMTP\r\n"), End.HANG)
        case Fault.NONE | Fault.TOO_SHORT | Fault.SURPLUS:
            end = End.CLOSE if order.framing is Framing.UNTIL_CLOSE or fault is not Fault.NONE else End.NEXT
        case Fault.GARBAGE_MID:
            end = End.HANG
        case Fault.TOO_LONG:
            end = End.CLOSE
        case _:
            end = _ENDS[order.way]
    return Script(_writes(api, order), end)


def _once(order: Order, data: bytes) -> Iterator[tuple[int, bytes]]:
    yield order.think_ms, data


def _error(order: Order) -> bytes:
    status, reason, fields = STATUS[order.fault]
    body = no(order)
    return b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b" % (
        status,
        reason,
        fields,
        len(body),
        body,
    )


def _writes(api: Api, order: Order) -> Iterator[tuple[int, bytes]]:
    """A batch is one write; the first one goes with the head."""
    if order.stream and not order.gzip and order.fault is Fault.NONE and order.framing is Framing.CHUNKED:
        yield from _unheld(api, order)
        return
    pieces = parts(api, order)
    head = _head(api, order, sum(map(len, pieces)))
    fault = order.fault
    if fault is Fault.AFTER_HEAD:
        yield order.think_ms, head
        return
    whole = pieces
    if fault in (Fault.MID, Fault.HALF_CHUNK, Fault.GARBAGE_MID):
        pieces = whole[: order.after]
    framed = [_framed(piece, order.framing) for piece in pieces]
    framed.append(_last(order, whole))
    framed[0] = head + framed[0]
    wait_ms = order.think_ms
    batch = len(framed) if fault in _OVERFLOWS else order.batch
    for start in range(0, len(framed), batch):
        yield wait_ms, b"".join(framed[start : start + batch])
        wait_ms = order.gap_ms


def _unheld(api: Api, order: Order) -> Iterator[tuple[int, bytes]]:
    """A stream of any length, of which nobody holds more than a batch."""
    head, wait_ms = _head(api, order, 0), order.think_ms
    coming = events(api, order)
    while batch := b"".join(_framed(event, order.framing) for event in islice(coming, order.batch)):
        yield wait_ms, head + batch
        head, wait_ms = b"", order.gap_ms
    yield 0, b"0\r\n\r\n"


def _head(api: Api, order: Order, length: int) -> bytes:
    kind = api.stream_type if order.stream else "application/json"
    coding = b"Content-Encoding: gzip\r\n" if order.gzip else b""
    framing = b"Connection: close\r\n"
    if order.framing is Framing.CHUNKED:
        framing = b"Transfer-Encoding: chunked\r\n" + _KEEP_ALIVE
    elif order.framing is Framing.LENGTH:
        off = {Fault.TOO_LONG: _OFF_BYTES, Fault.TOO_SHORT: -_OFF_BYTES}.get(order.fault, 0)
        framing = b"Content-Length: %d\r\n" % (length + off) + _KEEP_ALIVE
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nX-Soak: %d\r\n%b%b\r\n" % (kind.encode(), order.n, coding, framing)


def _framed(piece: bytes, framing: Framing) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece) if framing is Framing.CHUNKED else piece


def _last(order: Order, whole: Sequence[bytes]) -> bytes:
    """What comes behind the pieces."""
    chunked = order.framing is Framing.CHUNKED
    next_piece = whole[min(order.after, len(whole) - 1)]
    half = next_piece[: len(next_piece) // 2 + 1]
    match order.fault:
        case Fault.MID:
            return _framed(half, order.framing) if order.torn else b""
        case Fault.HALF_CHUNK:
            return b"%x\r\n%b" % (len(next_piece), half) if order.torn else b"%x" % (len(next_piece) << 4)
        case Fault.GARBAGE_MID:
            return b"oops\r\n"
        case Fault.AFTER_LAST | Fault.TOO_LONG | Fault.TOO_SHORT:
            return b""
        case Fault.SURPLUS:
            return (b"0\r\n\r\n" if chunked else b"") + b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsurplus"
        case _:
            return b"0\r\n\r\n" if chunked else b""


@dataclass(frozen=True, slots=True)
class Expected:
    """A complete answer. `cut_bytes`: how much of `body` a complete transfer carries."""

    status: int
    body: bytes
    cut_bytes: int


def expected(api: Api, order: Order) -> Expected:
    """What reaches a client if no fault strikes and nobody in between errs."""
    if order.fault in STATUS and order.fault is not Fault.LOADING:
        body = no(order)
        return Expected(STATUS[order.fault][0], body, len(body))
    body = b"".join(parts(api, order))
    off = _OFF_BYTES if order.fault is Fault.TOO_SHORT else 0
    return Expected(200, body, len(body) - off)

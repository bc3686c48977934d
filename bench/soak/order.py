"""What one call asks of the scripted backends, written into its own prompt.

So a backend needs no list of calls, and any call of a run can be sent again by hand: `order=n=17 fault=mid ...`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any


class Framing(StrEnum):
    """How the end of the answer is told."""

    CHUNKED = "chunked"
    LENGTH = "length"
    UNTIL_CLOSE = "until_close"


class Fault(StrEnum):
    """What goes wrong, and where."""

    NONE = "none"
    UNANSWERED = "unanswered"
    """The call is read and nothing is said."""
    AFTER_HEAD = "after_head"
    MID = "mid"
    """After so many pieces."""
    AFTER_LAST = "after_last"
    """All pieces have come, and what ends them has not."""
    HALF_CHUNK = "half_chunk"
    """Less is written than the size of the chunk says."""
    TOO_LONG = "too_long"
    """Less comes than Content-Length says."""
    TOO_SHORT = "too_short"
    """More comes than Content-Length says."""
    SURPLUS = "surplus"
    """More comes behind an answer that was complete."""
    GARBAGE = "garbage"
    """An answer that is no HTTP."""
    GARBAGE_MID = "garbage_mid"
    """A chunk whose size is no number."""
    ERROR = "error"
    """A 500."""
    BUSY = "busy"
    """A 503 with Retry-After."""
    LIMIT = "limit"
    """A 429 with Retry-After."""
    LOADING = "loading"
    """A 503 of a server whose model is not in memory yet; the next server that is asked does the work."""


class Way(StrEnum):
    """How a backend falls silent."""

    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"
    """It keeps the connection and says no more."""


class Then(StrEnum):
    """What becomes of the connection after a complete answer that promised to keep it."""

    KEEP = "keep"
    CLOSE = "close"
    RESET = "reset"
    DEAF = "deaf"
    """It is not read any more, then closed with whatever has come unread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Fields at their defaults are not written down."""

    n: int
    """Number of the call, its own in the whole run."""
    stream: bool = False
    pieces: int = 8
    size: int = 24
    """Bytes of filler in each piece."""
    batch: int = 4
    """Pieces that are written at once."""
    think_ms: int = 0
    """Until the head."""
    gap_ms: int = 0
    """Between batches."""
    framing: Framing = Framing.CHUNKED
    gzip: bool = False
    """The answer has a content coding."""
    fault: Fault = Fault.NONE
    way: Way = Way.CLOSE
    after: int = 0
    """Pieces that come before the fault."""
    torn: bool = False
    """Half of the next piece comes, too."""
    then: Then = Then.KEEP
    then_ms: int = 0


_BEGIN, _END, _SUM = b"order=", b"/order", b" sum="
_DEFAULTS = tuple((field.name, field.default) for field in fields(Order))
_READ: dict[str, Callable[[str], Any]] = {
    "framing": Framing,
    "fault": Fault,
    "way": Way,
    "then": Then,
    **dict.fromkeys(("stream", "gzip", "torn"), "1".__eq__),
}


def written(order: Order) -> bytes:
    """The order as it stands in a prompt, without its end; plain characters that JSON does not escape."""
    words = []
    for name, default in _DEFAULTS:
        value = getattr(order, name)
        if value != default:
            words.append(f"{name}={value:d}" if isinstance(value, int) else f"{name}={value}")
    return _BEGIN + " ".join(words).encode()


def sealed(before: bytes, order: bytes, model_end: int) -> bytes:
    """`before` and the order, closed with a checksum of all behind the name of the model, which a router may change."""
    text = before + order
    return b"%b sum=%08x%b" % (text, zlib.crc32(text[model_end:]), _END)


@dataclass(frozen=True, slots=True)
class Asked:
    """An order as it arrived. `intact`: all between the name of the model and the order is as it was sent."""

    order: Order
    intact: bool


def read(body: bytes) -> Asked | None:
    """The order in this body, None where there is none."""
    begin = body.rfind(_BEGIN)
    end = body.find(_END, begin)
    mark = body.rfind(_SUM, begin, end)
    if begin < 0 or end < 0 or mark < 0:
        return None
    pairs = [word.split("=", 1) for word in body[begin + len(_BEGIN) : mark].decode("ascii").split(" ")]
    order = Order(**{name: _READ.get(name, int)(value) for name, value in pairs})
    claimed = int(body[mark + len(_SUM) : end], 16)
    return Asked(order, zlib.crc32(body[after_model(body) : mark]) == claimed)


def after_model(body: bytes) -> int:
    """Where the rest of a body begins whose first field is the model."""
    return body.index(b'",', body.index(b'":"') + 3) + 1

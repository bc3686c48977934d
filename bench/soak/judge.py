"""Is that what should have come? First by the answer alone, then by what the backends did with the call.

A fault may lead only to what is promised for it:

    before the head   502 (it broke), 504 (it was silent), 503 (it is certain that no backend began)
    behind the head   a broken transfer: no last chunk, fewer bytes than the length said, a reset; between two events
                      of a stream that is not compressed, an event of the API's own error shape comes before the break
    the backend's no  passed on as it is
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from bench.soak.apis import Api
from bench.soak.client import Seen
from bench.soak.journal import Fate
from bench.soak.order import Fault, Order, Way
from bench.soak.script import Expected, expected


class Kind(StrEnum):
    """What a client saw."""

    COMPLETE = "complete"
    PASSED = "backend's no"
    SHORT = "short"
    """As many true bytes as Content-Length promised, which was too little."""
    BROKEN = "broken"
    SAID = "broken, said"
    """With an error event before the break."""
    BAD_GATEWAY = "502"
    UNAVAILABLE = "503"
    OVERLOADED = "429"
    TIMEOUT = "504"
    LEFT = "left"
    LOST = "lost"
    SWAPPED = "swapped"
    ALTERED = "altered"
    FALSE_END = "false end"
    BAD_ERROR = "bad error"


WRONG = frozenset({Kind.LOST, Kind.SWAPPED, Kind.ALTERED, Kind.FALSE_END, Kind.BAD_ERROR})
_REFUSALS = {502: Kind.BAD_GATEWAY, 503: Kind.UNAVAILABLE, 429: Kind.OVERLOADED, 504: Kind.TIMEOUT}
_CODES = {
    Kind.BAD_GATEWAY: {"backend_failed", "backend_unreachable"},
    Kind.UNAVAILABLE: {"no_backend_available", "waited_too_long"},
    Kind.OVERLOADED: {"overloaded"},
    Kind.TIMEOUT: {"backend_timeout"},
}
_NUMBERED = re.compile(rb"(\d{1,9})\.\d{1,9} (?:a word|sum)")
"""In an answer: the number of its call."""
_BREAK_CODES = {"backend_failed", "backend_timeout"}


@dataclass(frozen=True, slots=True)
class Look:
    """What a client saw, and in words what is wrong or remarkable about it."""

    kind: Kind
    words: str = ""


def look(seen: Seen) -> Look:
    """By the answer alone."""
    call = seen.call
    if not seen.status:
        if seen.left:
            return Look(Kind.LEFT)
        return Look(Kind.LOST, seen.error or "the connection ended without an answer")
    if seen.request_id != call.request_id:
        return Look(Kind.SWAPPED, f"the answer is that of {seen.request_id!r}")
    if seen.error:
        return Look(Kind.LOST, seen.error)
    wanted = expected(call.api, call.order)
    body = seen.body
    if seen.status == wanted.status and (seen.status == 200 or body == wanted.body):
        return _own(seen, wanted, body)
    if seen.left and not seen.complete:
        return Look(Kind.LEFT)
    return _refusal(seen, body)


def _own(seen: Seen, wanted: Expected, body: bytes) -> Look:
    """An answer of a backend."""
    order = seen.call.order
    if seen.complete:
        if body == wanted.body[: wanted.cut_bytes]:
            if wanted.status != 200:
                return Look(Kind.PASSED)
            return Look(Kind.COMPLETE if wanted.cut_bytes == len(wanted.body) else Kind.SHORT)
        if wanted.body.startswith(body):
            return Look(Kind.FALSE_END, f"complete after {len(body)} of {len(wanted.body)} bytes")
        return _foreign(order, wanted, body)
    if wanted.body.startswith(body):
        return Look(Kind.LEFT) if seen.left else _broken(seen, wanted, body)
    return _said(seen, wanted, body)


def _foreign(order: Order, wanted: Expected, body: bytes) -> Look:
    """Bytes that are not of this answer."""
    at = _common(wanted.body, body)
    words = f"byte {at} of {len(body)}: {body[at : at + 120]!r} in place of {wanted.body[at : at + 60]!r}"
    strangers = any(int(n) != order.n for n in _NUMBERED.findall(body))
    return Look(Kind.SWAPPED if strangers else Kind.ALTERED, words)


def _common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _broken(seen: Seen, wanted: Expected, body: bytes) -> Look:
    """A transfer that did not end. Between two events the client has to be told why, unless it has all of them."""
    between = not body or body.endswith(seen.call.api.boundary)
    if _may_be_told(seen) and between and body != wanted.body and not seen.until_close:
        return Look(Kind.BAD_ERROR, f"it broke after {len(body)} bytes, between two events, without a word")
    return Look(Kind.BROKEN)


def _said(seen: Seen, wanted: Expected, body: bytes) -> Look:
    """As much as came of the answer ends in what should be an event of an error."""
    api: Api = seen.call.api
    at = _common(wanted.body, body)
    begin = body.rfind(api.boundary, 0, at) + len(api.boundary) if api.boundary in body[:at] else 0
    event = body[begin:]
    if not _may_be_told(seen) or not (event.startswith(api.error_begins) or api.error_begins.startswith(event)):
        return _foreign(seen.call.order, wanted, body)
    if seen.left:
        return Look(Kind.LEFT)
    code = api.event_error(event)
    if code is None or (code and code not in _BREAK_CODES) or not body.endswith(api.boundary):
        return Look(Kind.BAD_ERROR, f"an error that is none: {event[:200]!r}")
    return Look(Kind.SAID, code)


def _may_be_told(seen: Seen) -> bool:
    """Whether an event of the router can stand in this answer."""
    return seen.call.order.stream and not seen.call.order.gzip


def _refusal(seen: Seen, body: bytes) -> Look:
    """An error of the router."""
    api: Api = seen.call.api
    kind = _REFUSALS.get(seen.status)
    code = api.body_error(body)
    if kind is None or code is None or not seen.complete:
        return Look(Kind.BAD_ERROR, f"status {seen.status}, complete: {seen.complete}, {body[:200]!r}")
    if code and code not in _CODES[kind]:
        return Look(Kind.BAD_ERROR, f"status {seen.status} with the code {code!r}")
    if kind in (Kind.UNAVAILABLE, Kind.OVERLOADED) and not seen.retry_after:
        return Look(Kind.BAD_ERROR, f"status {seen.status} without Retry-After")
    return Look(kind, code)


_BREAKS = frozenset({Kind.BROKEN, Kind.SAID})
_NO_HEAD = frozenset({Kind.BAD_GATEWAY})
_EITHER = _BREAKS | _NO_HEAD
"""A reset can overtake the bytes before it, so that not even the head arrives."""
_NO_ROOM = frozenset({Kind.UNAVAILABLE, Kind.OVERLOADED})


def promised(order: Order) -> frozenset[Kind]:
    """What a call with this order may lead to, if nothing but its own fault strikes."""
    match order.fault:
        case Fault.NONE | Fault.SURPLUS | Fault.LOADING:
            return frozenset({Kind.COMPLETE})
        case Fault.TOO_SHORT:
            return frozenset({Kind.SHORT})
        case Fault.ERROR | Fault.BUSY | Fault.LIMIT:
            return frozenset({Kind.PASSED})
        case Fault.GARBAGE:
            return _NO_HEAD
        case Fault.UNANSWERED:
            return frozenset({Kind.TIMEOUT}) if order.way is Way.HANG else _NO_HEAD
        case Fault.AFTER_HEAD | Fault.MID | Fault.HALF_CHUNK | Fault.AFTER_LAST if order.way is Way.HANG:
            return _BREAKS
        case _:
            return _EITHER


def as_promised(order: Order, kind: Kind) -> bool:
    """Whether its own fault explains it."""
    return kind is Kind.LEFT or kind in promised(order)


def miscounted(kind: Kind, generations: int) -> str:
    """What is wrong with the number of times that backends worked on a call; empty: nothing."""
    if generations > 1:
        return f"{kind}, generated {generations} times"
    if kind in (Kind.COMPLETE, Kind.SHORT) and not generations:
        return f"{kind}, and never generated"
    if kind in _NO_ROOM and generations:
        return f"{kind}, and yet generated"
    return ""


def excused(kind: Kind, fate: Fate, generations: int, *, outage: bool) -> bool:
    """Whether what its own fault does not explain came from a backend that went down.

    That can strike any call, also one that the backend had accepted and not yet read, of which its journal knows
    nothing (`outage`: a backend was going down while the call was open).
    """
    if kind in _NO_ROOM:
        return True
    return kind in _EITHER and (bool(fate & Fate.CUT) or (not generations and outage))

"""Which trace a call is part of: the W3C header `traceparent`, read and written (Trace Context, level 1)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

_FIELD: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_LONGEST: Final = 256
_SAMPLED: Final = 1


class Trace(NamedTuple):
    """One call in its trace. Ids are lower-case hex digits: 32 of a trace, 16 of a span."""

    trace_id: str
    parent_id: str
    """Span of the caller; empty: the trace begins here."""
    sampled: bool
    span_id: str = ""
    """Our own span; empty: none is recorded."""

    @property
    def header(self) -> bytes:
        """`traceparent` for the backend, whose parent we are."""
        return f"00-{self.trace_id}-{self.span_id}-{_SAMPLED if self.sampled else 0:02x}".encode()


Begin = Callable[[str | None, float], Trace]
"""Given the `traceparent` of a call, if it has one, and the time, makes our span of it."""


def read(header: str | None) -> Trace | None:
    """What a caller says. None: nothing, or nothing that can be read, so that a new trace has to begin."""
    if header is None or len(header) > _LONGEST:
        return None
    found = _FIELD.fullmatch(header.strip())
    if found is None:
        return None
    version, trace_id, parent_id, flags, more = found.groups()
    known = version != "ff" and (more is None or version != "00")
    if not known or not trace_id.strip("0") or not parent_id.strip("0"):
        return None
    return Trace(trace_id, parent_id, sampled=bool(int(flags, 16) & _SAMPLED))

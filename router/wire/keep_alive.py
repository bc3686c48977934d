"""How long a kept connection of one backend can be trusted. Pure: time is an argument.

A request that meets a closing server costs a second connection where it certainly was not read, and the call where
that is not certain. So it must not happen often, and servers say little about when they close. Three sources:

- What was promised: `Keep-Alive: timeout=N`, used up to a margin; else a time that is short enough for most servers.
- What was seen when idle: a backend that ended a connection after so many seconds will do so again. For a minute,
  connections are used for three quarters of that time only; then it may be tried again, since a restart ends
  connections of any age.
- What was seen after a streamed answer: llama.cpp promises five seconds and closes a tenth of a millisecond later, a
  tenth of a second on a busy machine, and reads and throws away what comes in between. Until more is known, a
  connection that carried a stream rests for a second. If it ends meanwhile, this backend's connections are not kept
  after streams. If it lives, they need no rest.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import inf
from typing import Final

UNPROMISED_S: Final = 4.0
"""Uvicorn, the most common server, closes after five seconds and does not say so."""

LONGEST_S: Final = 60.0
MARGIN_S: Final = 1.0
REST_AFTER_STREAM_S: Final = 1.0
SEEN_SHARE: Final = 0.75
SEEN_COUNTS_FOR_S: Final = 60.0

_PROMISE = re.compile(rb"timeout\s*=\s*\"?(\d{1,6})", re.IGNORECASE)


class KeepAlive:
    """Of one backend."""

    __slots__ = ("_limit_s", "_limit_until_s", "ends_after_streams", "rest_s")

    def __init__(self) -> None:
        self.rest_s = REST_AFTER_STREAM_S
        """A connection that carried a stream is not used for this long."""
        self.ends_after_streams = False
        """It is not worth keeping."""
        self._limit_s = inf
        self._limit_until_s = -inf

    def trusts(self, idle_s: float, *, now_s: float) -> bool:
        """Whether a connection that has been idle for so long may be used."""
        return idle_s < self._limit_s or now_s >= self._limit_until_s

    def ended(self, idle_s: float, *, streamed: bool, now_s: float) -> None:
        """The backend ended a connection that had been idle for so long; `streamed`: since a streamed answer."""
        if streamed and idle_s < REST_AFTER_STREAM_S:
            self.ends_after_streams = True
            return
        known_s = self._limit_s if now_s < self._limit_until_s else inf
        self._limit_s = min(known_s, idle_s * SEEN_SHARE)
        self._limit_until_s = now_s + SEEN_COUNTS_FOR_S

    def lived(self) -> None:
        """A connection was there after the rest that followed its stream."""
        self.rest_s = 0.0


@lru_cache(maxsize=64)
def promised_s(field: bytes) -> float:
    """How long an idle connection is worth keeping; `field`: the value of `Keep-Alive`, or empty."""
    promise = _PROMISE.search(field)
    if promise is None:
        return UNPROMISED_S
    timeout_s = float(promise[1])
    return min(max(timeout_s - MARGIN_S, timeout_s / 2), LONGEST_S)

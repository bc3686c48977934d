"""Ended calls, gathered for a moment and then told to who observes them, several at once.

What an observer does for one call after the other it does in a third of the time: its code and its tables are then in
the caches of the processor, where between two calls of a busy router everything else has been. Few enough at once that
nobody waits for a millisecond, and no longer than a quarter of a second; who shows figures asks for what is gathered
first, so nobody sees that they came later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from router.observe.facts import CallFacts, JudgedCall

AT_ONCE: Final = 16
LONGEST_S: Final = 0.25


class Ended(NamedTuple):
    """One ended call, and when that was."""

    facts: CallFacts
    judged: JudgedCall | None
    at_s: float
    """By the clock that durations are taken from."""
    unix_ns: int
    """Since 1970."""


class Gathered:
    """`tell` is handed what was gathered, in the order in which it ended."""

    def __init__(self, tell: Callable[[Sequence[Ended]], None]) -> None:
        self._tell = tell
        self._calls: list[Ended] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, ended: Ended) -> None:
        """Inside the event loop."""
        self._calls.append(ended)
        if len(self._calls) >= AT_ONCE:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LONGEST_S, self._late)

    def _late(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Tell what was gathered now."""
        calls, self._calls = self._calls, []
        if calls:
            self._tell(calls)

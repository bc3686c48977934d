"""How soon calls end of late, and so how soon those who wait may move up."""

from __future__ import annotations

from typing import Final

_WEIGHT: Final = 0.05
_LONGEST_S: Final = 60.0
_ENOUGH: Final = 40
"""Ends of calls after which the pace is worth turning somebody away for."""


class Turnover:
    """Mean time between the ends of calls while others wait, exponentially weighted over about the last twenty."""

    def __init__(self) -> None:
        self._interval_s = 1.0
        self._last_s: float | None = None
        self._seen = 0

    @property
    def certain(self) -> bool:
        """Whether enough was seen to go by."""
        return self._seen >= _ENOUGH

    def idle(self) -> None:
        """Nobody waits: how long it takes until the next call ends says nothing about how fast they could."""
        self._last_s = None

    def ended(self, now_s: float) -> None:
        if self._last_s is not None:
            self._seen += 1
            self._interval_s += _WEIGHT * (min(_LONGEST_S, now_s - self._last_s) - self._interval_s)
        self._last_s = now_s

    def seconds(self, calls: int) -> float:
        """Until so many calls have ended."""
        return calls * self._interval_s

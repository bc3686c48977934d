"""Calls of one client that have something in common: how many there were, how many are open, when the last one was."""

from __future__ import annotations

import math
from collections import OrderedDict

MINUTE_S = 60.0
_SHARE_OF_NEWEST = 0.3
"""Of typical values: the newest one's weight."""


class LastMinute:
    """Counts what happened in the last 60 s; the minute before the current one is taken as even.

    Two counters instead of a list of times, so its size does not grow.
    """

    __slots__ = ("_before", "_minute", "_now")

    def __init__(self) -> None:
        self._minute = 0
        self._now = 0
        self._before = 0

    def add(self, now_s: float) -> None:
        self._roll(int(now_s // MINUTE_S))
        self._now += 1

    def count(self, now_s: float) -> int:
        self._roll(int(now_s // MINUTE_S))
        if not self._before:
            return self._now
        return self._now + round(self._before * (1.0 - now_s % MINUTE_S / MINUTE_S))

    def _roll(self, minute: int) -> None:
        if minute != self._minute:
            self._before = self._now if minute == self._minute + 1 else 0
            self._now = 0
            self._minute = minute


class Typical:
    """A geometric mean that forgets: what a size usually is."""

    __slots__ = ("_log2",)

    def __init__(self) -> None:
        self._log2: float | None = None

    def take(self, value: float) -> None:
        log2 = math.log2(1.0 + value)
        self._log2 = log2 if self._log2 is None else self._log2 + _SHARE_OF_NEWEST * (log2 - self._log2)

    @property
    def value(self) -> float | None:
        return None if self._log2 is None else 2.0**self._log2 - 1.0

    def change(self, value: float) -> float:
        """Base-2 logarithm of `value` over what is usual; 0 where nothing is."""
        return 0.0 if self._log2 is None else math.log2(1.0 + value) - self._log2


class Kin(LastMinute):
    """Calls that share one mark."""

    __slots__ = ("ended_s", "last_s", "open", "output", "seen", "size")

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0
        self.open = 0
        self.last_s: float | None = None
        self.ended_s: float | None = None
        self.output = Typical()
        """Tokens of their answers."""
        self.size = Typical()
        """Tokens of their prompts."""

    def arrived(self, prompt_tokens: int, now_s: float) -> None:
        self.add(now_s)
        self.seen += 1
        self.open += 1
        self.last_s = now_s
        self.size.take(prompt_tokens)

    def ended(self, output_tokens: int | None, now_s: float) -> None:
        self.open -= 1
        self.ended_s = now_s
        if output_tokens is not None:
            self.output.take(output_tokens)


class Kins:
    """By mark, the least recently used ones forgotten first."""

    __slots__ = ("_by_mark", "_capacity")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._by_mark: OrderedDict[int, Kin] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_mark)

    def of(self, mark: int) -> Kin:
        """Of calls with this mark; new where none is known."""
        kin = self._by_mark.get(mark)
        if kin is not None:
            self._by_mark.move_to_end(mark)
            return kin
        kin = self._by_mark[mark] = Kin()
        if len(self._by_mark) > self._capacity:
            self._by_mark.popitem(last=False)
        return kin

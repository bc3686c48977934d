"""A token bucket. Pure: time is an argument."""

from __future__ import annotations


class Bucket:
    """Fills evenly by `per_minute` units a minute and holds those of `holds_s`, so that a burst of so long is possible.

    It may be in debt: what a call used is known at its end, and is taken then, whatever is left.
    """

    __slots__ = ("_at_s", "_holds_s", "_level", "_per_s", "capacity")

    def __init__(self, per_minute: int, now_s: float, *, holds_s: float = 60.0) -> None:
        self._holds_s = holds_s
        self._per_s = per_minute / 60
        self._level = self.capacity = per_minute * (holds_s / 60)
        self._at_s = now_s

    def level(self, now_s: float) -> float:
        """Units that are there; negative: debt."""
        if now_s > self._at_s:
            self._level = min(self.capacity, self._level + (now_s - self._at_s) * self._per_s)
            self._at_s = now_s
        return self._level

    def take(self, units: float, now_s: float) -> None:
        """Never refuses. Negative `units` are given back."""
        self._level = min(self.capacity, self.level(now_s) - units)

    def wait_s(self, now_s: float) -> float:
        """Until a whole unit is there; 0: it is there now."""
        return max(0.0, 1 - self.level(now_s)) / self._per_s

    def full_in_s(self, now_s: float) -> float:
        return (self.capacity - self.level(now_s)) / self._per_s

    def resize(self, per_minute: int, now_s: float) -> None:
        """Another limit from now on; what is used up stays used up."""
        used = self.capacity - self.level(now_s)
        self._per_s = per_minute / 60
        self.capacity = per_minute * (self._holds_s / 60)
        self._level = self.capacity - used

"""How far what was seen lay from what had been predicted, over the last answers of a backend."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from typing import Final

_KEPT: Final = 60
_ENOUGH: Final = 9
"""So many answers have nine tenths below their largest."""
_SHARE_0_1: Final = 0.9
_LEAST: Final = 1.05
_MOST: Final = 20.0


class Spread:
    """By how many times predictions are passed, nine times in ten, from the last answers: an empirical quantile."""

    __slots__ = ("_guess", "_latest", "_ordered")

    def __init__(self, guess: float) -> None:
        """`guess`: what is said as long as little was seen."""
        self._guess = guess
        self._latest: deque[float] = deque()
        self._ordered: list[float] = []

    def __len__(self) -> int:
        return len(self._latest)

    def take(self, predicted_s: float, seen_s: float) -> None:
        if not (predicted_s > 0 and 0 < seen_s < math.inf):
            return
        ratio = min(max(seen_s / predicted_s, 1 / _MOST), _MOST)
        if len(self._latest) == _KEPT:
            oldest = self._latest.popleft()
            del self._ordered[bisect_left(self._ordered, oldest)]
        self._latest.append(ratio)
        insort(self._ordered, ratio)

    @property
    def value(self) -> float:
        """The smallest ratio that is not passed by nine tenths of one answer more than were seen, which makes it hold
        for the next one (split conformal prediction: Vovk, Gammerman and Shafer, 2005).
        """
        count = len(self._ordered)
        if not count:
            return self._guess
        if count < _ENOUGH:
            return max(self._guess, self._ordered[-1])
        return max(_LEAST, self._ordered[math.ceil(_SHARE_0_1 * (count + 1)) - 1])

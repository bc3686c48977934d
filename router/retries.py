"""How many calls may be sent to a second backend.

To try another backend hides a failure from one caller and costs the backends that are left one call more. Where much
fails at once, that is the load which brings those down as well. So retries are kept to a share of the calls, and to a
few a second where there are hardly any calls (Finagle's retry budget has the same two limits).
"""

from __future__ import annotations

from math import exp
from typing import Final, Protocol

WINDOW_S: Final = 10.0
"""Counts fade: what happened this long ago weighs 1/e."""


class Limits(Protocol):
    """What the operator allows."""

    @property
    def share(self) -> float:
        """Retries per call, 0..1."""
        ...

    @property
    def per_second(self) -> float:
        """Retries beside that share."""
        ...


class RetryBudget:
    """Recent calls and retries. No clock of its own: instants are monotonic seconds and do not run backwards.

    After a quiet time `per_second * WINDOW_S` retries may come at once.
    """

    __slots__ = ("_at_s", "_calls", "_retries")

    def __init__(self) -> None:
        self._calls = 0.0
        self._retries = 0.0
        self._at_s = 0.0

    def __repr__(self) -> str:
        return f"<RetryBudget {self._retries:.1f} retries of {self._calls:.1f} calls>"

    def called(self, now_s: float) -> None:
        """A call came in."""
        self._fade(now_s)
        self._calls += 1.0

    def take(self, limits: Limits, now_s: float) -> bool:
        """Whether one retry more is within the limits; it counts if it is."""
        self._fade(now_s)
        if self._retries + 1.0 > limits.share * self._calls + limits.per_second * WINDOW_S:
            return False
        self._retries += 1.0
        return True

    def _fade(self, now_s: float) -> None:
        weight = exp((self._at_s - now_s) / WINDOW_S)
        self._at_s = now_s
        self._calls *= weight
        self._retries *= weight

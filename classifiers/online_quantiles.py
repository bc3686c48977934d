"""The lengths that answers of one kind had lately, in 32 bytes, and their quantiles.

A window of the newest lengths, each as a whole number on a logarithmic scale (6 % a step). The P2 algorithm (Jain and
Chlamtac, 1985) needs as much for every single quantile, and never forgets; here both quantiles come from one window,
exact but for the step, and what a client did 32 answers ago is gone.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

KEPT: Final = 32
_STEPS_PER_OCTAVE: Final = 12
_MOST_STEPS: Final = 255


class Seen(NamedTuple):
    """Lengths of one kind. Logarithms are to base 2, of tokens."""

    answers: int
    """At most `KEPT`."""
    log2_p50: float = 0.0
    log2_p90: float = 0.0


NOTHING: Final = Seen(0)


class RecentLengths:
    """The newest `KEPT` lengths."""

    __slots__ = ("_next", "_seen", "_steps")

    def __init__(self) -> None:
        self._steps = bytearray()
        self._next = 0
        self._seen: Seen | None = NOTHING
        """None: another length was taken since it was asked for."""

    def __len__(self) -> int:
        return len(self._steps)

    def take(self, tokens: int) -> None:
        """A length of at least 1; longer than 2**21 counts as that."""
        self._seen = None
        step = min(_MOST_STEPS, round(_STEPS_PER_OCTAVE * math.log2(max(1, tokens))))
        if len(self._steps) < KEPT:
            self._steps.append(step)
        else:
            self._steps[self._next] = step
            self._next = (self._next + 1) % KEPT

    def seen(self) -> Seen:
        found = self._seen
        if found is None:
            steps = sorted(self._steps)
            found = self._seen = Seen(len(steps), _quantile(steps, 0.5), _quantile(steps, 0.9))
        return found


def _quantile(steps: list[int], share: float) -> float:
    """Between two lengths: in proportion (type 7 of Hyndman and Fan, 1996)."""
    place = share * (len(steps) - 1)
    below = int(place)
    above = min(below + 1, len(steps) - 1)
    return (steps[below] + (place - below) * (steps[above] - steps[below])) / _STEPS_PER_OCTAVE

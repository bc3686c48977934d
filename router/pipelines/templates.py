"""What tasks of one kind usually need: how many steps, how long one takes, how long the program is busy in between.

A kind is what began with the same program of the same client. A step is a hop, or all hops that run at the same time.
Old tasks count less with each new one, by `_KEPT` a task.

Which steps come last is learned as well, by their manner: the program that sends them, and whether they are streamed.
One that answers the user has its own prompt in many tasks, or is the only one that is streamed. Where one prompt does
all in the same way, as in most loops of tools, nothing can be learned of it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

STEPS: Final = 64
"""More are counted as so many."""
_KEPT: Final = 0.97
_NEWEST: Final = 0.2
_CAPACITY: Final = 1_024
_MANNERS: Final = 16
"""Of steps of one kind of task that are told apart; those that come after them are not."""
_SURE: Final = 4
"""Tasks whose last step was of one manner, before its steps are said to be the last."""
_MOST_FOLLOWED: Final = 0.05
"""Of the steps that are said to be the last, those which others followed."""
_KEPT_STEPS: Final = 128
"""Steps of one manner after which its counts are halved, so that what it does now tells more."""
_UNKNOWN_STEPS_LEFT: Final = 2.0
"""Where no such task was seen to its end."""
_MOST_WEIGHT: Final = 1e100
_QUICKEST_FADES: Final = 1.02
"""The quickest step that was seen counts as so much slower with each one that was not as quick."""


class Template:
    """Of one kind of task. Unknown values are None."""

    __slots__ = ("_manners", "_newest", "_steps", "gap_s", "quickest_s", "seen", "step_s")

    def __init__(self) -> None:
        self.seen = 0
        """Tasks that have ended."""
        self._steps: dict[int, float] = {}
        """Weights by number of steps. The newest task has the largest: that spares making all others smaller."""
        self._newest = 1.0
        self._manners: dict[int, list[int]] = {}
        """Of each, its steps and those of them that were the last."""
        self.step_s: float | None = None
        """From its place on a backend to its end."""
        self.quickest_s: float | None = None
        self.gap_s: float | None = None
        """From the end of a step to the next one."""

    def took(self, seconds: float) -> None:
        """A hop has ended."""
        self.step_s = _mean(self.step_s, seconds)
        self.quickest_s = seconds if self.quickest_s is None else min(seconds, self.quickest_s * _QUICKEST_FADES)

    def went_on(self, manner: int, paused_s: float) -> None:
        """After a step of this manner the next one came, so much later."""
        self.gap_s = _mean(self.gap_s, paused_s)
        self._came(manner, last=False)

    def ended(self, steps: int, manner: int) -> None:
        """A task, with so many steps, the last of this manner."""
        self.seen += 1
        self._came(manner, last=True)
        if self._newest > _MOST_WEIGHT:
            self._steps = {number: weight / self._newest for number, weight in self._steps.items()}
            self._newest = 1.0
        self._newest /= _KEPT
        number = min(steps, STEPS)
        self._steps[number] = self._steps.get(number, 0.0) + self._newest

    def _came(self, manner: int, *, last: bool) -> None:
        counts = self._manners.get(manner)
        if counts is None:
            if len(self._manners) < _MANNERS:
                self._manners[manner] = [1, int(last)]
            return
        counts[0] += 1
        counts[1] += last
        if counts[0] >= _KEPT_STEPS:
            counts[0] //= 2
            counts[1] //= 2

    def ends_with(self, manner: int) -> bool:
        """Whether steps of this manner are known to be the last of their tasks."""
        counts = self._manners.get(manner)
        if counts is None or counts[1] < _SURE:
            return False
        return counts[0] - counts[1] <= _MOST_FOLLOWED * counts[0]

    def steps_left(self, step: int) -> float:
        """Expected after the one with this number; the first is number 1."""
        least = min(step, STEPS)
        count = total = 0.0
        for number, weight in self._steps.items():
            if number >= least:
                count += weight
                total += weight * (number - step)
        return max(0.0, total / count) if count > 0.0 else _UNKNOWN_STEPS_LEFT if not self.seen else 0.5


def _mean(before: float | None, value: float) -> float:
    return value if before is None else before + _NEWEST * (value - before)


class Templates:
    """The least recently used ones are forgotten first."""

    __slots__ = ("_by_key", "_capacity")

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._by_key: OrderedDict[int, Template] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_key)

    def of(self, key: int) -> Template:
        found = self._by_key.get(key)
        if found is not None:
            self._by_key.move_to_end(key)
            return found
        found = self._by_key[key] = Template()
        if len(self._by_key) > self._capacity:
            self._by_key.popitem(last=False)
        return found

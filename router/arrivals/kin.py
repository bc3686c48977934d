"""Calls of one client that have something in common: how many there were, how many are open, when the last one was."""

from __future__ import annotations

import math
from array import array
from collections import OrderedDict
from typing import Final, Generic, TypeVar

from classifiers.api import Features
from classifiers.carry import LogOdds
from classifiers.marks import Marks

MINUTE_S: Final = 60.0
KEPT_NEWEST: Final = 16
"""Calls of a program whose beginnings and endings are compared."""
_NEWEST_BITS: Final = (1 << KEPT_NEWEST) - 1
_SMALLEST: Final = 0.01
"""Of what is usual: below it differences do not count."""
_LOG2_OF_NOTHING: Final = math.log2(_SMALLEST)
_SHARE_OF_NEWEST = 0.3
"""Of typical values: the newest one's weight."""


class LastMinute:
    """Counts what happened in the last 60 s; the minute before the current one is taken as even.

    Two counters instead of a list of times, so its size does not grow.
    """

    __slots__ = ("_before", "_minute", "_now")

    def __init__(self) -> None:
        self._minute = 0.0
        self._now = 0
        self._before = 0

    def add(self, minute: float) -> None:
        """`minute` is that of the clock: seconds // 60."""
        if minute != self._minute:
            self._roll(minute)
        self._now += 1

    def count(self, minute: float, left: float) -> int:
        """`left`: the share of this minute that is still to come."""
        if minute != self._minute:
            self._roll(minute)
        return self._now + round(self._before * left) if self._before else self._now

    def _roll(self, minute: float) -> None:
        self._before = self._now if minute == self._minute + 1.0 else 0
        self._now = 0
        self._minute = minute


def log2_of(value: float) -> float:
    """As `Typical` takes it."""
    return math.log2(_SMALLEST + value) if value > 0 else _LOG2_OF_NOTHING


class Typical:
    """A geometric mean that forgets: what a size or a time usually is, and by what factor it varies."""

    __slots__ = ("_log2", "spread")

    def __init__(self) -> None:
        self._log2: float | None = None
        self.spread = 0.0
        """Mean distance from what is usual, as a base-2 logarithm; 0 where it is always the same."""

    def take(self, value: float) -> None:
        self.take_log2(log2_of(value))

    def take_log2(self, log2: float) -> None:
        if self._log2 is None:
            self._log2 = log2
        else:
            off = log2 - self._log2
            self._log2 += _SHARE_OF_NEWEST * off
            self.spread += _SHARE_OF_NEWEST * (abs(off) - self.spread)

    @property
    def value(self) -> float | None:
        if self._log2 is None:
            return None
        value: float = 2.0**self._log2 - _SMALLEST
        return value if value > 0.0 else 0.0

    def change(self, value: float) -> float:
        """Base-2 logarithm of `value` over what is usual; 0 where nothing is."""
        return 0.0 if self._log2 is None else math.log2(_SMALLEST + value) - self._log2


class Kin(LastMinute):
    """Calls that share one mark."""

    __slots__ = ("ended_s", "last_s", "open", "seen")

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0
        self.open = 0
        self.last_s: float | None = None
        self.ended_s: float | None = None

    def arrived(self, now_s: float, minute: float) -> None:
        if minute != self._minute:
            self._roll(minute)
        self._now += 1
        self.seen += 1
        self.open += 1
        self.last_s = now_s

    def ended(self, log2_tokens: float | None, now_s: float) -> None:
        """`log2_tokens`: of the answer, as `log2_of`; None: they were not counted."""
        self.open -= 1
        self.ended_s = now_s


class Template(Kin):
    """Calls whose newest message begins, or ends, in the same way."""

    __slots__ = ("output",)

    def __init__(self) -> None:
        super().__init__()
        self.output = Typical()
        """Tokens of their answers."""

    def ended(self, log2_tokens: float | None, now_s: float) -> None:
        self.open -= 1
        self.ended_s = now_s
        if log2_tokens is not None:
            self.output.take_log2(log2_tokens)


class Program(Template):
    """Calls with the same system text and the same tools: what seems to be one program, and its habits."""

    __slots__ = (
        "answer_gap",
        "continued",
        "ends",
        "gap",
        "heads",
        "pause",
        "said",
        "size",
        "starts",
        "streamed",
        "tails",
    )

    def __init__(self) -> None:
        super().__init__()
        self.size = Typical()
        """Tokens of their prompts."""
        self.gap = Typical()
        """Seconds from one of its calls to the next."""
        self.answer_gap = Typical()
        """Seconds from its last answer to a call, whichever call was answered."""
        self.pause = Typical()
        """Seconds from an answer to the call that goes on from it."""
        self.said: list[LogOdds | None] = [None, None]
        """What a model said lately of its calls that do not stream, and of those that do."""
        self.continued = 0
        """A bit for each of its last calls: whether it went on from another."""
        self.streamed = 0
        self.heads = array("q")
        """How its last calls began and ended: marks, the newest in the place of the oldest."""
        self.tails = array("q")
        self.starts = array("q")
        self.ends = array("q")

    def shares(self, marks: Marks) -> tuple[float, float]:
        """Of its last calls, those with the same long and those with the same short beginning or ending."""
        count = len(self.heads)
        if not count:
            return 0.0, 0.0
        alike = self.heads.count(marks.head)
        if alike < count:
            alike = max(alike, self.tails.count(marks.tail))
        if alike == count:
            return 1.0, 1.0  # who begins with the same 64 characters begins with the same 16
        return alike / count, max(self.starts.count(marks.start), self.ends.count(marks.end)) / count

    def took(self, features: Features, marks: Marks, now_s: float, *, continues: bool, paused_s: float | None) -> None:
        """Before `arrived`: how this call came. `paused_s`: since the answer that it goes on from."""
        self.size.take(features.prompt_tokens)
        if self.last_s is not None:
            self.gap.take(now_s - self.last_s)
        if self.ended_s is not None:
            self.answer_gap.take(now_s - self.ended_s)
        if paused_s is not None:
            self.pause.take(paused_s)
        self.continued = (self.continued << 1 | continues) & _NEWEST_BITS
        self.streamed = (self.streamed << 1 | features.stream) & _NEWEST_BITS
        if len(self.heads) < KEPT_NEWEST:
            self.heads.append(marks.head)
            self.tails.append(marks.tail)
            self.starts.append(marks.start)
            self.ends.append(marks.end)
        else:
            place = self.seen % KEPT_NEWEST
            self.heads[place], self.tails[place] = marks.head, marks.tail
            self.starts[place], self.ends[place] = marks.start, marks.end

    @property
    def continued_share(self) -> float:
        return self.continued.bit_count() / (len(self.heads) or 1)

    @property
    def streamed_share(self) -> float:
        return self.streamed.bit_count() / (len(self.heads) or 1)


Each = TypeVar("Each")


class Kins(Generic[Each]):
    """By mark, the least recently used ones forgotten first."""

    __slots__ = ("_by_mark", "_capacity", "_make")

    def __init__(self, make: type[Each], capacity: int) -> None:
        self._make = make
        self._capacity = capacity
        self._by_mark: OrderedDict[int, Each] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_mark)

    def of(self, mark: int) -> Each:
        """Of calls with this mark; new where none is known."""
        kin = self._by_mark.get(mark)
        if kin is not None:
            self._by_mark.move_to_end(mark)
            return kin
        kin = self._by_mark[mark] = self._make()
        if len(self._by_mark) > self._capacity:
            self._by_mark.popitem(last=False)
        return kin

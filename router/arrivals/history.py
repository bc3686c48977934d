"""Histories of one client that were served, found again by their last border when a call goes on from there."""

from __future__ import annotations

import math
from collections import OrderedDict

from classifiers.api import Features
from classifiers.marks import Marks

_SHORTEST_PAUSE_S = 0.01


class Served:
    """A call that was sent, as the history that a later one may go on from."""

    __slots__ = (
        "ended_s",
        "hops",
        "log_pauses",
        "longest_pause_s",
        "prompt_tokens",
        "stream",
        "streamed_hops",
        "times",
        "tools",
    )

    def __init__(self, features: Features) -> None:
        self.prompt_tokens = features.prompt_tokens
        self.stream = features.stream
        self.tools = features.tools > 0
        self.ended_s: float | None = None
        """None while its answer still runs."""
        self.times = 1
        self.hops = 0
        """Calls in the history before this one."""
        self.streamed_hops = 0
        """Of these, those that asked for a stream."""
        self.log_pauses = 0.0
        """Sum of the logarithms of the gaps between an answer and the next call."""
        self.longest_pause_s: float | None = None

    def go_on_from(self, earlier: Served, now_s: float) -> None:
        self.hops = earlier.hops + 1
        self.streamed_hops = earlier.streamed_hops + earlier.stream
        pause_s = 0.0 if earlier.ended_s is None else now_s - earlier.ended_s
        self.log_pauses = earlier.log_pauses + math.log(max(_SHORTEST_PAUSE_S, pause_s))
        self.longest_pause_s = max(pause_s, earlier.longest_pause_s or 0.0)

    @property
    def pause_s(self) -> float | None:
        return math.exp(self.log_pauses / self.hops) if self.hops else None


class Histories:
    """By border, the least recently used ones forgotten first."""

    __slots__ = ("_by_border", "_capacity")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._by_border: OrderedDict[int, Served] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_border)

    def again(self, marks: Marks) -> Served | None:
        """This very call, if it was sent before."""
        keys = marks.borders[-1:] or marks.ends[:1]
        return self._by_border.get(keys[0]) if keys else None

    def continued(self, marks: Marks) -> tuple[Served, int] | None:
        """The longest history that the call goes on from, and how many messages it adds; 0: its text has grown."""
        by_border = self._by_border
        borders = marks.borders
        for added in range(1, len(borders)):
            if (earlier := by_border.get(borders[-1 - added])) is not None:
                return earlier, added
        for line in marks.lines:
            if (earlier := by_border.get(line)) is not None:
                return earlier, 0
        return None

    def remember(self, marks: Marks, served: Served) -> None:
        """Under all borders at which a later call may show that it goes on from here."""
        by_border = self._by_border
        for border in (*marks.borders[-1:], *marks.ends):
            by_border[border] = served
            by_border.move_to_end(border)
        while len(by_border) > self._capacity:
            by_border.popitem(last=False)

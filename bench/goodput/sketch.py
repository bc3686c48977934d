"""A yardstick: sixty lines that know every class and have one number to turn, the rows that the rack may have at once.

Who waits for the first token takes a free slot of the desk, else the rack; a hop the rack, unless rows crowd it and the
desk has slots to spare; a row the rack while fewer than `most_rows` are there. The best of several such numbers, chosen
after the fact for one workload, is what a router without foresight may be compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.goodput.judge import Figures, judge
from bench.goodput.routers import Own, by_class
from bench.goodput.virtual import simulate
from bench.mixes.plan import Workload
from classifiers.api import CallClass
from policies.api import Ask, Decision, Dispatch, Lane, View, Wait

MOST_ROWS = (4, 7, 10, 16, 24, 40, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A policy for one backend in each lane and calls with true labels."""

    most_rows: int
    spare: int = 1
    """Slots of the desk that hops leave to those who wait for the first token."""

    def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
        desk = next((view for view in views if view.lane is Lane.LATENCY), None)
        rack = next((view for view in views if view.lane is Lane.THROUGHPUT), None)
        free = desk.free if desk is not None else 0
        if rack is None or desk is None:
            return Dispatch((rack or desk or views[0]).name, "only_one")
        room = rack.free >= 1
        match ask.verdict.call_class:
            case CallClass.TTFT:
                chosen = desk if free >= 1 else rack if room else None
            case CallClass.MIXED:
                chosen = desk if free >= 1 + self.spare else rack if room else None
            case _:
                rows = rack.own_by_class.get(CallClass.THROUGHPUT, 0)
                chosen = rack if rows < self.most_rows and room else None
        return Wait("no_room") if chosen is None else Dispatch(chosen.name, "sketch")


def with_rows(most_rows: int, workload: Workload) -> Figures:
    return judge(simulate(Own(name="sketch", label=by_class), workload, policy=Sketch(most_rows=most_rows)))


def best(workload: Workload) -> tuple[int, Figures]:
    """The number with the highest mean share on this very workload, and its figures."""
    tried = {most_rows: with_rows(most_rows, workload) for most_rows in MOST_ROWS}
    most_rows = max(tried, key=lambda each: tried[each].mean_share)
    return most_rows, tried[most_rows]

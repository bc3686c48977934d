"""The lane that serves the class best, and another one rather than a wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from classifiers.api import CallClass
from policies.api import Ask, Decision, Dispatch, Lane, View
from policies.scoring import open_in_lane, present, stay_or_least_loaded, wait


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadAware:
    """The first of the class's lanes with room, and in it the conversation's backend or the least full one.

    A caller who waits for the first token is not sent where calls already queue inside the engine, as long as any
    allowed backend without such a queue has room. Slots that the class leaves to others stay free.
    """

    max_load_gap: Annotated[float, Field(ge=0)] = 0.5
    """How much fuller the conversation's backend may be than the least full one of its lane: 0.5 is half its slots."""

    def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
        lanes = present(ask, views)
        choices: Iterable[tuple[Lane, list[View]]] = ((lane, open_in_lane(ask, views, lane)) for lane in lanes)
        if ask.verdict.call_class is CallClass.TTFT:
            with_room = list(choices)
            choices = [(lane, _unqueued(found)) for lane, found in with_room] + with_room
        for lane, found in choices:
            if found:
                view = stay_or_least_loaded(ask, found, chance, self.max_load_gap)
                return Dispatch(view.name, _reason(ask, lanes, lane, view))
        return wait(ask, views)


def _unqueued(views: Sequence[View]) -> list[View]:
    return [view for view in views if view.queued < 0.5]


def _reason(ask: Ask, present_lanes: Sequence[Lane], lane: Lane, view: View) -> str:
    if lane is not present_lanes[0]:
        return "spill_over"
    if view.name == ask.home:
        return "affinity"
    return "preferred_lane" if lane is ask.rules.lanes[0] else "other_lane"

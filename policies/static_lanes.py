"""Each class has its lane and stays in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.api import Ask, Decision, Dispatch, View
from policies.scoring import least_loaded, open_in_lane, present, wait


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticLanes:
    """The least full backend of the class's first lane; a call waits for room there rather than use another lane.

    Only a lane that has no backend at all (none configured, or none up) is passed over.
    """

    def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
        lanes = present(ask, views)
        choices = open_in_lane(ask, views, lanes[0]) if lanes else ()
        if not choices:
            return wait(ask, [view for view in views if view.lane in lanes[:1]])
        reason = "preferred_lane" if lanes[0] is ask.rules.lanes[0] else "other_lane"
        return Dispatch(least_loaded(choices, chance).name, reason)

"""The better one of two that were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.api import Ask, Decision, Dispatch, View
from policies.scoring import draw, load, open_views, present, wait


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOfTwo:
    """Two backends with room are drawn, by weight, in any lane that the class allows; the less full one gets the call.

    Almost as even as looking at all of them, and where what is known of load is old, calls that come at the same time
    do not all run to the same backend (Mitzenmacher, "The power of two choices", 2001).
    """

    def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
        choices = open_views(ask, views, present(ask, views))
        if not choices:
            return wait(ask, views)
        # One number between 0 and 1 is two: what it draws first, and what its last digits draw.
        first = draw(choices, chance)
        others = [view for view in choices if view is not first]
        if not others:
            return Dispatch(first.name, "only_one")
        second = draw(others, chance * 1_021.0 % 1.0)
        return Dispatch((second if load(second) < load(first) else first).name, "better_of_two")

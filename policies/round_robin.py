"""Everyone gets its share, whatever it is doing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.api import Ask, Decision, Dispatch, View
from policies.scoring import draw, open_views, present, wait


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobin:
    """Calls in proportion to `weight` among the backends with room; class decides only which lanes are allowed.

    In turn on average, not one by one: a policy keeps no state, so the turn is drawn. The shares are those of a
    strict rotation after some hundred calls, and a backend that comes back is not flooded with what it missed.
    """

    def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
        choices = open_views(ask, views, present(ask, views))
        return Dispatch(draw(choices, chance).name, "in_turn") if choices else wait(ask, views)

"""Everyone gets its share, whatever it is doing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.api import Ask, Decision, Dispatch, View
from policies.scoring import draw, open_views, present, wait

_TURN = 0.6180339887498949
"""Golden ratio less one: its multiples, taken modulo 1, fill the unit interval as evenly as any sequence can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobin:
    """Calls in proportion to `weight` among the backends with room; class decides only which lanes are allowed.

    A policy keeps no state, so the turn follows from how many calls the backends have had in all. It is not strictly
    one after the other, but each share stays within a few calls of its due, also where calls for several models
    alternate; and a backend that comes back is not flooded with what it missed.
    """

    def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
        choices = open_views(ask, views, present(ask, views))
        if not choices:
            return wait(ask, views)
        turn = sum([view.dispatched for view in views]) * _TURN % 1.0
        return Dispatch(draw(choices, turn).name, "in_turn")

"""To whoever has the least to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.api import Ask, Decision, Dispatch, View
from policies.scoring import least_loaded, open_views, present, wait


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastLoaded:
    """The backend that is least full for its cap and weight, in any lane that the class allows."""

    def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
        choices = open_views(ask, views, present(ask, views))
        return Dispatch(least_loaded(choices, chance).name, "least_loaded") if choices else wait(ask, views)

"""Back to where the conversation is still in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from policies.api import Ask, Decision, Dispatch, View
from policies.scoring import open_views, present, stay_or_least_loaded, wait


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixAffinity:
    """The backend that served the previous call of the conversation, else the least full one, in any allowed lane."""

    max_load_gap: Annotated[float, Field(ge=0)] = 0.5
    """How much fuller the known backend may be than the least full one: 0.5 is half of its slots."""

    def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
        choices = open_views(ask, views, present(ask, views))
        if not choices:
            return wait(ask, views)
        view = stay_or_least_loaded(ask, choices, chance, self.max_load_gap)
        return Dispatch(view.name, "affinity" if view.name == ask.home else "least_loaded")

"""What each backend would have given a call, asked at the moment of its placing and only while a page is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from policies.api import Ask, View
from policies.outlook import keeps_0_1, outlook
from router.observe.facts import Alternative

_EACH_S: Final = 0.004
"""Of pause for each outlook, which takes some 20 us: half a percent of a core, however many calls and backends."""


class Witness:
    """Looks at decisions as often as that stays cheap; those in between have no alternatives to show."""

    def __init__(self) -> None:
        self._next_s = float("-inf")

    def __call__(self, ask: Ask, views: Sequence[View], now_s: float) -> tuple[Alternative, ...]:
        if now_s < self._next_s:
            return ()
        self._next_s = now_s + _EACH_S * len(views)
        return tuple(_alternative(ask, view, now_s) for view in views)


def _alternative(ask: Ask, view: View, now_s: float) -> Alternative:
    seen = outlook(ask, view, now_s)
    keeps = keeps_0_1(ask, seen, now_s)
    return Alternative(view.name, seen.first.seconds, seen.tpot.seconds, seen.whole.seconds, keeps)

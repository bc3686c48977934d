"""Where the promise is kept, nobody else's is broken, and the least is taken from those who are still to come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from classifiers.api import CallClass
from policies.api import Ask, Decision, Dispatch, Lane, View, Wait
from policies.outlook import NEVER, ahead_tokens, too_late, uncached_tokens
from policies.prospects import Prospect, breaks, harm, least_harm, prospect, reserve
from policies.scoring import NOMINAL_CAP, calls_at, has_slot, least_loaded, open_views, present, wait

_LOOK_S: Final = 0.05
_ALIKE_S: Final = 0.02
_HARM_MIXED: Final = 1.0
"""First tokens that others are likely to get too late because of a hop, up to which it is sent."""
_TRIED: Final = 10
"""Answers after which a backend's own pace counts beside that of others."""
_FEW: Final = 4
"""Backends with room of which it is foreseen what would happen there, and as many without."""
_SERVICE_S: Final = 1.2
"""For which a call that waits for a first token is taken to have its slot, where slots are kept for those to come."""
_HARM_FILL: Final = 0.05
_MOST_STEPS_AHEAD: Final = 2
"""Prompts that are being worked on, in steps of the engine, behind which work that takes what is left is not sent."""
_LATE_READER: Final = 10.0
"""Times what was promised for the first token, after half of which a reader who waits is no longer put off."""
_HARM_ALONE: Final = 0.75
"""Beside, where no other prompt is being worked on: all that is there has to be done at some time."""
_DUE_SHARE_0_1: Final = 0.25
"""Of the engine's time: where prompts had less of it lately, and waiting makes nothing better, the next one is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadAware:
    """Sends a call where it is likely to keep its promise, and makes it wait where that is not so yet.

    Of those backends, one on which no running call would miss its own promise because of it, and of these the one that
    costs least: in time of the engine, in lanes further down the class's list, in slots that others will need. Calls
    that nobody waits for, and those that are too late for their promise, get what is left: one prompt after the other,
    as long as streams beside them keep their pace and a first token that is asked for next would still come in time.
    """

    safety: Annotated[float, Field(ge=0, le=3)] = 0.8
    """How safely a call must keep its promise to be sent at once: 0 as likely as not, 1 nine times in ten."""
    hope: Annotated[float, Field(le=0)] = -0.5
    """Below this a promise is given up, in the same measure."""

    def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
        lanes = present(ask, views)
        if now_s - ask.arrived_s >= ask.rules.ageing_s:
            return self._aged(ask, [view for view in views if view.lane in lanes], now_s, chance)
        open_ = _few(ask, open_views(ask, views, lanes))
        if ask.verdict.call_class is not CallClass.THROUGHPUT and not (too_late(ask, now_s) and self.hope > NEVER):
            full: list[View] = []
            if len(open_) < _FEW:  # else hardly one that has to become free first is the better one
                full = _few(ask, [view for view in views if view.lane in lanes and not has_slot(view)])
            found = self._protected(ask, [*open_, *full], open_, now_s, chance)
            if found is not None:
                return found
        return self._fill(ask, views, open_, now_s, chance)

    def _aged(self, ask: Ask, views: Sequence[View], now_s: float, chance: float) -> Decision:
        """It has waited for so long that any slot will do, whoever it is kept for; but not behind several prompts."""
        room = _few(ask, [view for view in views if has_slot(view)])
        ready = [view for view in room if _steps_ahead(view, now_s) < _MOST_STEPS_AHEAD]
        if not ready:
            return _waits(ask, views, room, now_s)
        seen = [prospect(ask, view, now_s) for view in ready]
        return _sent(ask, _least(seen, [each.whole_s for each in seen], chance, ask.home), "waited_long")

    def _protected(
        self, ask: Ask, usable: Sequence[View], open_: Sequence[View], now_s: float, chance: float
    ) -> Decision | None:
        """None: it cannot keep its promise any more. `usable`: those of `open_`, then those without room."""
        seen = _unprejudiced([prospect(ask, view, now_s) for view in usable])
        if not seen or max([each.margin for each in seen]) < self.hope:
            return None
        mixed = ask.verdict.call_class is CallClass.MIXED
        opened = {view.name for view in open_}
        enough = min(self.safety, max([each.margin for each in seen]))
        safe, costs = [], []
        for each in seen:
            if each.margin < enough or each.view.name not in opened or breaks(ask, each.view, surely=True):
                continue
            hurts = self._hurts(ask, each, usable, now_s) if mixed else 0.0
            if hurts <= _HARM_MIXED or _due(each.view, usable):
                safe.append(each)
                costs.append(self._cost(ask, each) + hurts)
        if safe:
            return _sent(ask, _least(safe, costs, chance, ask.home))
        return _waits(ask, usable, open_, now_s)

    def _hurts(self, ask: Ask, seen: Prospect, usable: Sequence[View], now_s: float) -> float:
        """What a hop costs others; more than anybody may, where it would stand behind another prompt: it waits here."""
        if seen.view.work.prefilling and harm(ask, seen.view, (), now_s) > _HARM_FILL:
            return math.inf
        return harm(ask, seen.view, usable, now_s)

    def _cost(self, ask: Ask, seen: Prospect) -> float:
        """Seconds of the engine, and what taking a place there means."""
        view = seen.view
        order = ask.rules.lanes.index(view.lane)
        if ask.verdict.call_class is CallClass.TTFT:
            return seen.prefill_s + 0.2 * order
        cost = seen.prefill_s + 0.1 * seen.whole_s
        if view.lane is Lane.LATENCY and view.cap is not None and view.cap - calls_at(view) <= _kept(view):
            cost += 1.0
        return cost

    def _fill(self, ask: Ask, views: Sequence[View], open_: Sequence[View], now_s: float, chance: float) -> Decision:
        """Work that takes what the promises of others leave."""
        waited_s = now_s - ask.arrived_s
        most_harm = _HARM_FILL + 2.0 * max(0.0, waited_s / _patience_s(ask) - 0.5)
        kept = _leaves_reserve(ask, waited_s)
        late = ask.verdict.call_class is not CallClass.THROUGHPUT
        free: list[Prospect] = []
        for view in open_:
            if _steps_ahead(view, now_s) >= _MOST_STEPS_AHEAD or (kept and self._takes_reserve(view)):
                continue
            if breaks(ask, view, surely=late):
                continue
            # One prompt after the other: nobody else's room makes up for a backend that is shut for long.
            behind = view.work.prefilling > 0
            hurts = harm(ask, view, () if behind else views, now_s)
            if hurts > most_harm + (0.0 if behind else _HARM_ALONE) and not _due(view, views):
                continue
            free.append(prospect(ask, view, now_s))
        if not free:
            return _waits(ask, views, open_, now_s)
        costs = [each.whole_s + 2.0 * ask.rules.lanes.index(each.view.lane) for each in _unprejudiced(free)]
        return _sent(ask, _least(free, costs, chance, ask.home))

    def _takes_reserve(self, view: View) -> bool:
        if view.lane is not Lane.LATENCY or view.cap is None or not view.demand.per_s:
            return False
        return view.cap - calls_at(view) <= min(_kept(view), view.cap - 1)


def _kept(view: View) -> int:
    """Slots that are kept there for first tokens to come, beside those that they have."""
    return reserve(view.demand, _SERVICE_S) - view.own_by_class.get(CallClass.TTFT, 0)


def _steps_ahead(view: View, now_s: float) -> float:
    """How many steps the prompts that are there take to be prefilled; 0 where that cannot be told."""
    return ahead_tokens(view, now_s) / view.pace.step_tokens if view.pace.known else 0.0


def _due(view: View, views: Sequence[View]) -> bool:
    """Whether the engine would stand still for those to come, who lose as much by a prompt at any later time."""
    return view.work.prefill_0_1 <= _DUE_SHARE_0_1 and least_harm(view, views)


def _unprejudiced(seen: list[Prospect]) -> list[Prospect]:
    """A backend that has hardly been tried is taken to be as quick as the quickest that has; how else to find out?"""
    tried = [each for each in seen if each.view.pace.seen >= _TRIED]
    if not tried or len(tried) == len(seen):
        return seen
    prefill_s, whole_s = min([each.prefill_s for each in tried]), min([each.whole_s for each in tried])
    margin = max([each.margin for each in tried])
    return [
        each
        if each.view.pace.seen >= _TRIED
        else each._replace(
            prefill_s=min(each.prefill_s, prefill_s),
            whole_s=min(each.whole_s, whole_s),
            margin=max(each.margin, margin),
        )
        for each in seen
    ]


def _few(ask: Ask, views: list[View]) -> list[View]:
    """Of many, those that a first look finds best; to foresee what happens on each would take too long."""
    if len(views) <= _FEW:
        return views
    first = ask.rules.lanes[0]
    keys = [
        (view.work.prefill_tokens + uncached_tokens(ask, view.name)) * view.pace.prefill_token_s
        + view.own / ((view.cap or NOMINAL_CAP) * view.weight)
        + (view.lane is not first)
        for view in views
    ]
    return [views[index] for index in sorted(range(len(views)), key=keys.__getitem__)[:_FEW]]


def _patience_s(ask: Ask) -> float:
    """How long it takes until a call that waits may cost others something."""
    rules = ask.rules
    promised_s = rules.slo_complete_s
    if ask.verdict.call_class is CallClass.TTFT and rules.slo_ttft_s is not None:
        promised_s = _LATE_READER * rules.slo_ttft_s
    return min(rules.ageing_s, promised_s or math.inf)


def _leaves_reserve(ask: Ask, waited_s: float) -> bool:
    """Whether places that are kept for first tokens are not for this call.

    A reader whose promise is out of reach because of the prompt alone is one of those they are kept for; one who has
    waited for too long lets those go first who can still be in time, for a while.
    """
    if ask.verdict.call_class is not CallClass.TTFT:
        return True
    return (ask.rules.slo_ttft_s or 0.0) < waited_s < 0.5 * _patience_s(ask)


def _least(seen: Sequence[Prospect], costs: Sequence[float], chance: float, home: str) -> Prospect:
    """The one of least cost; of those that cost as good as the same, where the conversation was, or the least full."""
    if len(seen) == 1:
        return seen[0]
    most = min(costs) + _ALIKE_S
    alike = {each.view.name: each for each, cost in zip(seen, costs, strict=True) if cost <= most}
    if home in alike:
        return alike[home]
    return alike[least_loaded([each.view for each in alike.values()], chance).name]


def _sent(ask: Ask, seen: Prospect, reason: str = "") -> Dispatch:
    view = seen.view
    if not reason:
        if view.name == ask.home:
            reason = "affinity"
        else:
            reason = "preferred_lane" if view.lane is ask.rules.lanes[0] else "spill_over"
    return Dispatch(view.name, reason)


def _waits(ask: Ask, views: Sequence[View], open_: Sequence[View], now_s: float) -> Wait:
    reason = "others_first" if open_ else wait(ask, views).reason
    return Wait(reason, now_s + _LOOK_S)

"""What all policies share: where a call may start, how full a backend is, and a fair choice among equals.

Scraped figures decay and never quite reach zero, so they are rounded to whole calls first: a remainder of less than
half a call neither takes a slot nor decides between two idle backends.
"""

from __future__ import annotations

from collections.abc import Sequence

from policies.api import Ask, Lane, View, Wait

NOMINAL_CAP = 16
"""Calls that count as full where no cap is known: enough to compare such a backend with one that has slots."""


def calls_at(view: View) -> int:
    """Calls that are in flight there, in whole calls."""
    return view.own + int(view.foreign + 0.5)


def has_slot(view: View) -> bool:
    """Whether one is free there, whoever it is kept for."""
    return view.cap is None or calls_at(view) < view.cap


def load(view: View) -> float:
    """How full a backend is, relative to its cap and weight: 0 idle, 1 full, more where calls queue inside it."""
    size = NOMINAL_CAP if view.cap is None else view.cap
    return (calls_at(view) + int(view.queued + 0.5)) / (size * view.weight)


def present(ask: Ask, views: Sequence[View]) -> list[Lane]:
    """The lanes that the class may use and that have a backend, in the class's order of preference."""
    lanes = {view.lane for view in views}
    return [lane for lane in ask.rules.lanes if lane in lanes]


def open_views(ask: Ask, views: Sequence[View], lanes: Sequence[Lane]) -> list[View]:
    """The views of `lanes` where the call may start now: a slot is free, and the reserve of the lane stays free.

    `lanes` is what `present` gave, or a part of it.
    """
    return [view for lane in lanes for view in open_in_lane(ask, views, lane)]


def open_in_lane(ask: Ask, views: Sequence[View], lane: Lane) -> list[View]:
    """The same for one lane."""
    members = [view for view in views if view.lane is lane]
    keep_free = ask.rules.keep_free.get(lane, 0)
    if keep_free and not _reserve_stays(members, keep_free, elsewhere=_has_another_lane(ask, views, lane)):
        return []
    return [view for view in members if has_slot(view)]


def _has_another_lane(ask: Ask, views: Sequence[View], lane: Lane) -> bool:
    return any(view.lane is not lane and view.lane in ask.rules.lanes for view in views)


def _reserve_stays(members: Sequence[View], keep_free: int, *, elsewhere: bool) -> bool:
    """Whether `keep_free` slots of the lane are still free after one more call.

    Where the lane is all that the class has and the reserve would take every slot of it, the calls of the class run
    one at a time, each only when the lane is idle: waiting for ever is no promise that anybody wants.
    """
    cap = free = 0
    for view in members:
        if view.cap is None:
            return True
        cap += view.cap
        free += max(0, view.cap - calls_at(view))
    if not elsewhere:
        keep_free = min(keep_free, cap - 1)
    return free > keep_free


def draw(views: Sequence[View], chance: float) -> View:
    """One of `views` (not empty), each as likely as its weight says."""
    if len(views) == 1:
        return views[0]
    mark = chance * sum([view.weight for view in views])
    for view in views:
        mark -= view.weight
        if mark < 0:
            return view
    return views[-1]  # sums of floats may fall short by a rounding error


def least_loaded(views: Sequence[View], chance: float) -> View:
    """The least full of `views` (not empty)."""
    if len(views) == 1:
        return views[0]
    loads = [load(view) for view in views]
    lowest = min(loads)
    # Ties are drawn, or a backend that came back idle would never be tried.
    return draw([view for view, its_load in zip(views, loads, strict=True) if its_load == lowest], chance)


def stay_or_least_loaded(ask: Ask, views: Sequence[View], chance: float, max_load_gap: float) -> View:
    """The backend that served the conversation before, unless it is fuller than the least full by more than the gap."""
    home = next((view for view in views if view.name == ask.home), None)
    if home is not None and load(home) - min([load(view) for view in views]) <= max_load_gap:
        return home
    return least_loaded(views, chance)


def wait(ask: Ask, views: Sequence[View]) -> Wait:
    """Why a call for which nothing is open has to wait."""
    usable = [view for view in views if view.lane in ask.rules.lanes]
    if not usable:
        return Wait("no_backend_in_lanes")
    return Wait("slots_reserved" if any([has_slot(view) for view in usable]) else "no_room")

"""The least full backend."""

from __future__ import annotations

from policies.api import Dispatch, Lane
from policies.least_loaded import LeastLoaded
from tests.policies.makers import ask, desk, rack


def test_the_least_full_backend_of_all_allowed_lanes_is_taken() -> None:
    views = [desk("a", own=1), desk("b", cap=4, own=1), rack(own=12)]

    assert LeastLoaded().decide(ask(), views, now_s=1.0, chance=0.9) == Dispatch("b", "least_loaded")


def test_an_excluded_lane_is_not_taken_however_idle_it_is() -> None:
    asked = ask(lanes=(Lane.LATENCY,))

    assert LeastLoaded().decide(asked, [desk(own=1), rack()], now_s=1.0, chance=0.9) == Dispatch("desk", "least_loaded")

"""One lane for each class."""

from __future__ import annotations

from policies.api import Decision, Dispatch, View, Wait
from policies.static_lanes import StaticLanes
from tests.policies.makers import MIXED, TTFT, ask, batch, desk, rack


def decide(asked: object, *views: View) -> Decision:
    return StaticLanes().decide(asked, views, now_s=1.0, chance=0.0)  # type: ignore[arg-type]


def test_each_class_goes_to_its_first_lane() -> None:
    assert decide(ask(TTFT), desk(), rack()) == Dispatch("desk", "preferred_lane")
    assert decide(ask(MIXED), desk(), rack()) == Dispatch("desk", "preferred_lane")
    assert decide(batch(), desk(), rack()) == Dispatch("rack", "preferred_lane")


def test_within_the_lane_the_least_full_backend_is_taken() -> None:
    assert decide(ask(), desk("a", own=1), desk("b"), rack()) == Dispatch("b", "preferred_lane")


def test_a_full_lane_is_waited_for_while_another_is_idle() -> None:
    assert decide(ask(), desk(own=2), rack()) == Wait("no_room")


def test_a_lane_without_any_backend_is_passed_over() -> None:
    assert decide(ask(), rack()) == Dispatch("rack", "other_lane")
    assert decide(batch(), desk()) == Dispatch("desk", "other_lane")

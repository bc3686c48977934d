"""What every policy promises, whatever the fleet looks like."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

from policies import BUILTIN, build
from policies.api import Ask, Decision, Dispatch, Lane, Policy, Reject, View, Wait
from tests.policies.makers import THROUGHPUT, ask, asks, chances, desk, fleets, rack

POLICIES = {name: build(name, {}) for name in BUILTIN}
every_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
drawing_policies = pytest.mark.parametrize("policy", [POLICIES[name] for name in POLICIES if name != "round_robin"])
"""Those that break ties by chance."""


def whole_calls(view: View) -> int:
    """In flight there; less than half a call of others is the remainder of an old figure."""
    return view.own + int(view.foreign + 0.5)


def free_slots(views: list[View], lane: Lane) -> float:
    members = [view for view in views if view.lane is lane]
    return sum(float("inf") if view.cap is None else max(0, view.cap - whole_calls(view)) for view in members)


def waits_for(decision: Decision) -> str:
    assert isinstance(decision, Wait)
    return decision.reason


def target(policy: Policy, asked: Ask, views: list[View], chance: float) -> View | None:
    match policy.decide(asked, views, now_s=1.0, chance=chance):
        case Dispatch(backend=name):
            return next(view for view in views if view.name == name)
        case Wait():
            return None
        case Reject():
            raise AssertionError("rejecting is the line's business")


@every_policy
@given(asked=asks(), views=fleets(), chance=chances)
def test_no_call_is_sent_to_a_backend_without_room(
    policy: Policy, asked: Ask, views: list[View], chance: float
) -> None:
    chosen = target(policy, asked, views, chance)

    assert chosen is None or chosen.cap is None or whole_calls(chosen) < chosen.cap


@every_policy
@given(asked=asks(), views=fleets(), chance=chances)
def test_no_call_is_sent_to_a_lane_that_its_class_excludes(
    policy: Policy, asked: Ask, views: list[View], chance: float
) -> None:
    chosen = target(policy, asked, views, chance)

    assert chosen is None or chosen.lane in asked.rules.lanes


@every_policy
@given(asked=asks(), views=fleets(), chance=chances)
def test_reserved_slots_stay_free_unless_an_idle_lane_is_all_that_the_class_has(
    policy: Policy, asked: Ask, views: list[View], chance: float
) -> None:
    chosen = target(policy, asked, views, chance)
    if chosen is None:
        return

    left = free_slots(views, chosen.lane) - 1
    lane = [view for view in views if view.lane is chosen.lane]
    usable_lanes = {view.lane for view in views} & set(asked.rules.lanes)
    idle_and_alone = usable_lanes == {chosen.lane} and not any(whole_calls(view) for view in lane)
    assert left >= asked.rules.keep_free.get(chosen.lane, 0) or idle_and_alone


@every_policy
@given(asked=asks(), views=fleets(), chance=chances)
def test_no_call_waits_for_an_idle_fleet(policy: Policy, asked: Ask, views: list[View], chance: float) -> None:
    idle = [replace(view, own=0, foreign=0.0, queued=0.0) for view in views]
    usable = [view for view in idle if view.lane in asked.rules.lanes]
    reserved = sum(asked.rules.keep_free.values())

    if usable and not reserved:
        assert target(policy, asked, idle, chance) is not None


@every_policy
@given(asked=asks(), views=fleets(), chance=chances)
def test_a_class_with_one_lane_never_starves_on_an_idle_one(
    policy: Policy, asked: Ask, views: list[View], chance: float
) -> None:
    only = [replace(view, lane=Lane.LATENCY, own=0, foreign=0.0, queued=0.0) for view in views]

    if Lane.LATENCY in asked.rules.lanes:
        assert target(policy, asked, only, chance) is not None


@drawing_policies
def test_equals_share_evenly(policy: Policy) -> None:
    views = [desk(f"b{index}") for index in range(4)]

    taken = Counter(
        chosen.name for step in range(400) if (chosen := target(policy, ask(), views, step / 400)) is not None
    )

    assert taken == dict.fromkeys(("b0", "b1", "b2", "b3"), 100)


@drawing_policies
def test_a_small_remainder_of_an_old_figure_does_not_decide_between_idle_backends(policy: Policy) -> None:
    views = [desk("a"), desk("b", foreign=0.2)]

    assert {chosen.name for step in range(4) if (chosen := target(policy, ask(), views, step / 4))} == {"a", "b"}


@drawing_policies
def test_idle_backends_share_by_weight(policy: Policy) -> None:
    views = [desk("a", weight=3.0), desk("b", weight=1.0)]

    taken = Counter(chosen.name for step in range(400) if (chosen := target(policy, ask(), views, step / 400)))

    assert taken == {"a": 300, "b": 100}


@every_policy
def test_a_call_waits_for_room_and_says_so(policy: Policy) -> None:
    full = [desk(own=2), rack(cap=4, own=4)]

    assert waits_for(policy.decide(ask(), full, now_s=1.0, chance=0.5)) == "no_room"


@every_policy
def test_a_call_whose_lanes_have_no_backend_waits_and_says_so(policy: Policy) -> None:
    decision = policy.decide(ask(lanes=(Lane.LATENCY,)), [rack()], now_s=1.0, chance=0.5)

    assert waits_for(decision) == "no_backend_in_lanes"


@every_policy
def test_a_call_that_may_not_take_the_last_slots_waits_and_says_so(policy: Policy) -> None:
    asked = ask(THROUGHPUT, keep_free={Lane.LATENCY: 1})

    assert waits_for(policy.decide(asked, [desk(own=1)], now_s=1.0, chance=0.5)) == "slots_reserved"

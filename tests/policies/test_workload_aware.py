"""The default policy, with two lanes and with one backend."""

from __future__ import annotations

import pytest

from classifiers.api import CallClass
from policies.api import Ask, Decision, Dispatch, Lane, View, Wait
from policies.workload_aware import WorkloadAware
from tests.policies.makers import MIXED, THROUGHPUT, TTFT, ask, batch, desk, rack


def decide(asked: Ask, *views: View, policy: WorkloadAware | None = None) -> Decision:
    return (policy or WorkloadAware()).decide(asked, views, now_s=1.0, chance=0.0)


def test_each_class_goes_to_its_first_lane_while_that_has_room() -> None:
    assert decide(ask(TTFT), rack(), desk(own=1)) == Dispatch("desk", "preferred_lane")
    assert decide(ask(MIXED), rack(), desk(own=1)) == Dispatch("desk", "preferred_lane")
    assert decide(batch(), desk(), rack(own=200)) == Dispatch("rack", "preferred_lane")


def test_a_call_spills_over_rather_than_wait() -> None:
    assert decide(ask(TTFT), desk(own=2), rack()) == Dispatch("rack", "spill_over")
    assert decide(batch(), desk(), rack(cap=4, own=4)) == Dispatch("desk", "spill_over")


def test_a_batch_spills_over_only_as_far_as_the_reserve_of_the_lane() -> None:
    assert decide(batch(), desk(own=1), rack(cap=4, own=4)) == Wait("slots_reserved")


def test_a_call_whose_class_has_one_lane_waits_for_it() -> None:
    assert decide(ask(lanes=(Lane.LATENCY,)), desk(own=2), rack()) == Wait("no_room")


def test_a_conversation_stays_on_its_backend_within_the_lane() -> None:
    views = (desk("a"), desk("b", own=1), rack())

    assert decide(ask(home="b"), *views) == Dispatch("b", "affinity")
    assert decide(ask(home="b"), *views, policy=WorkloadAware(max_load_gap=0.4)) == Dispatch("a", "preferred_lane")


def test_a_home_in_another_lane_is_no_reason_to_leave_the_preferred_one() -> None:
    assert decide(ask(home="rack"), desk(), rack()) == Dispatch("desk", "preferred_lane")


def test_who_waits_for_the_first_token_is_not_sent_behind_a_queue_inside_an_engine() -> None:
    assert decide(ask(), desk("a", queued=2.0), desk("b", own=1), rack()) == Dispatch("b", "preferred_lane")
    assert decide(ask(home="a"), desk("a", queued=2.0), rack()) == Dispatch("rack", "spill_over")


def test_a_queue_inside_an_engine_is_better_than_no_place_at_all() -> None:
    assert decide(ask(), desk(own=2), rack(queued=3.0)) == Dispatch("rack", "spill_over")
    assert decide(ask(), desk(queued=3.0), rack(queued=3.0)) == Dispatch("desk", "preferred_lane")


@pytest.mark.parametrize("call_class", [MIXED, THROUGHPUT])
def test_other_classes_do_not_mind_a_queue_inside_an_engine(call_class: CallClass) -> None:
    views = (desk(queued=3.0), rack(queued=3.0))

    assert decide(ask(call_class), *views) == Dispatch("desk" if call_class is MIXED else "rack", "preferred_lane")


def test_one_backend_serves_all_classes_and_keeps_a_slot_for_those_who_wait() -> None:
    for asked in (ask(TTFT), ask(MIXED)):
        assert decide(asked, desk(own=1)) == Dispatch("desk", "preferred_lane")
    assert decide(batch(), desk()) == Dispatch("desk", "other_lane")
    assert decide(batch(), desk(own=1)) == Wait("slots_reserved")


def test_one_backend_with_one_slot_runs_batches_while_it_is_idle() -> None:
    assert decide(batch(), desk(cap=1)) == Dispatch("desk", "other_lane")
    assert decide(batch(), desk(cap=1, own=1)) == Wait("no_room")

"""The default policy, with two lanes and with one backend."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.api import CallClass, Features
from classifiers.lengths import Lengths
from policies.api import Ask, Decision, Demand, Dispatch, Lane, Pace, Protected, View, Wait, Work
from policies.prospects import harm
from policies.workload_aware import WorkloadAware
from tests.policies.makers import MIXED, THROUGHPUT, TTFT, ask, batch, desk, rack

SLOW = Pace(
    step_s=0.010, sequence_s=0.001, prefill_token_s=1 / 6_000, step_tokens=512, spread=1.2, first_spread=1.2, seen=99
)
FAST = Pace(
    step_s=0.012, sequence_s=0.0002, prefill_token_s=1 / 9_000, step_tokens=2_048, spread=1.2, first_spread=1.2, seen=99
)
CHATS = Demand(per_s=2.0, prompt_tokens=300, output_tokens=90, ttft_s=0.5, tpot_s=0.05)


def decide(asked: Ask, *views: View, policy: WorkloadAware | None = None, now_s: float = 0.0) -> Decision:
    return (policy or WorkloadAware()).decide(asked, views, now_s=now_s, chance=0.0)


def why_it_waits(decision: Decision) -> str:
    assert isinstance(decision, Wait)
    return decision.reason


def call(call_class: CallClass = TTFT, *, tokens: int = 300, **known: Any) -> Ask:
    """As the default settings promise it; chats are streamed."""
    made = ask(call_class, **known)
    promised: dict[CallClass, dict[str, Any]] = {
        TTFT: {"slo_ttft_s": 0.5, "slo_tpot_s": 0.05},
        MIXED: {"slo_complete_s": 6.0},
        THROUGHPUT: {"keep_free": {Lane.LATENCY: 1}},
    }
    features = Features(surface="openai_chat", prompt_tokens=tokens, stream=call_class is TTFT)
    lengths = Lengths(p50_tokens=90, p90_tokens=180)
    return replace(made, features=features, lengths=lengths, rules=replace(made.rules, **promised[call_class]))


def slots(own: int = 0, **facts: Any) -> View:
    return desk(**{"own": own, "cap": 4, "pace": SLOW, "demand": CHATS, **facts})


def many(own: int = 0, **facts: Any) -> View:
    return rack(own=own, **{"cap": 64, "pace": FAST, "demand": CHATS, **facts})


def test_each_class_goes_to_its_first_lane_while_nothing_speaks_against_it() -> None:
    assert decide(ask(TTFT), rack(), desk(own=1)) == Dispatch("desk", "preferred_lane")
    assert decide(batch(), desk(), rack(own=200)) == Dispatch("rack", "preferred_lane")


def test_a_call_spills_over_rather_than_wait() -> None:
    assert decide(ask(TTFT), desk(own=2), rack()) == Dispatch("rack", "spill_over")
    assert decide(batch(), desk(), rack(cap=4, own=4)) == Dispatch("desk", "spill_over")


def test_a_batch_spills_over_only_as_far_as_the_reserve_of_the_lane() -> None:
    assert why_it_waits(decide(batch(), desk(own=1), rack(cap=4, own=4))) == "slots_reserved"


def test_a_call_whose_class_has_one_lane_waits_for_it() -> None:
    assert why_it_waits(decide(ask(lanes=(Lane.LATENCY,)), desk(own=2), rack())) == "no_room"


def test_a_conversation_stays_where_its_prompt_is_cached() -> None:
    asked = call(tokens=2_000, home="rack", cached_tokens={"rack": 1_900})

    assert decide(asked, slots(), many()) == Dispatch("rack", "affinity")
    assert decide(replace(asked, cached_tokens={}), slots(), many()) == Dispatch("desk", "preferred_lane")


def test_a_first_token_that_would_come_too_late_behind_other_prompts_goes_elsewhere() -> None:
    behind = slots(own=2, work=Work(prefilling=1, prefill_tokens=4_000.0, decoding=1.0))

    assert decide(call(), behind, many()) == Dispatch("rack", "spill_over")


def test_who_can_still_be_in_time_where_a_slot_comes_free_waits_for_it() -> None:
    full = slots(own=4, work=Work(decoding=4.0, ends_s=(0.1, 1.0, 1.5, 2.0)))
    behind = many(own=5, work=Work(prefilling=5, prefill_tokens=9_000.0))

    assert why_it_waits(decide(call(), full, behind)) == "others_first"
    assert isinstance(decide(call(), full, many()), Dispatch)


def test_rows_leave_alone_a_stream_that_has_no_time_to_spare() -> None:
    tight = Work(decoding=1.0, protected=(Protected(0.1, 50.0, 0.1, TTFT),))
    easy = Work(decoding=1.0, protected=(Protected(3.0, 50.0, 1.0, TTFT),))

    assert why_it_waits(decide(call(THROUGHPUT, tokens=2_000), many(1, work=tight))) == "others_first"
    assert decide(call(THROUGHPUT, tokens=2_000), many(1, work=easy)) == Dispatch("rack", "preferred_lane")


def test_a_promise_that_is_lost_anyway_holds_nobody_up() -> None:
    lost = Work(decoding=1.0, protected=(Protected(-9.0, 50.0, -9.0, TTFT),))

    assert decide(call(THROUGHPUT, tokens=2_000), many(1, work=lost)) == Dispatch("rack", "preferred_lane")


def test_rows_come_one_prompt_after_the_other_where_chats_are_expected() -> None:
    one_inside = Work(prefilling=1, prefill_tokens=1_800.0)

    assert isinstance(decide(call(THROUGHPUT, tokens=2_000), many()), Dispatch)
    assert why_it_waits(decide(call(THROUGHPUT, tokens=2_000), many(1, work=one_inside))) == "others_first"


def test_rows_do_not_take_the_slots_that_chats_will_need() -> None:
    assert why_it_waits(decide(call(THROUGHPUT), slots(1), many(64))) == "others_first"
    assert decide(call(THROUGHPUT), slots(1, demand=replace(CHATS, per_s=0.01)), many(64)).reason == "spill_over"


def test_who_waited_for_the_whole_ageing_gets_what_room_there_is() -> None:
    tight = many(1, work=Work(decoding=1.0, protected=(Protected(0.1, 50.0, 0.1, TTFT),)))
    asked = call(THROUGHPUT, tokens=2_000)
    aged = replace(asked, rules=replace(asked.rules, ageing_s=60.0))

    assert why_it_waits(decide(aged, tight, now_s=1.0)) == "others_first"
    assert decide(aged, tight, now_s=60.0) == Dispatch("rack", "waited_long")


def test_a_call_that_cannot_be_in_time_any_more_takes_what_others_leave() -> None:
    tight = many(1, work=Work(decoding=1.0, protected=(Protected(0.01, 50.0, 0.01, TTFT),)))

    assert why_it_waits(decide(call(), tight, now_s=2.0)) == "others_first"
    assert isinstance(decide(call(), many(), now_s=2.0), Dispatch)


def test_a_backend_that_was_never_tried_is_not_passed_over_for_one_that_is_known_to_be_quick() -> None:
    unknown = slots(name="unknown", pace=replace(SLOW, prefill_token_s=1 / 2_000, seen=0))
    known = slots(name="known", pace=SLOW)
    asked = call(tokens=600)

    decisions = [WorkloadAware().decide(asked, (known, unknown), now_s=0.0, chance=chance) for chance in (0.1, 0.9)]
    chosen = {decision.backend for decision in decisions if isinstance(decision, Dispatch)}

    assert chosen == {"known", "unknown"}


def test_whoever_waits_is_asked_again_soon() -> None:
    decision = decide(call(), slots(own=4), now_s=5.0)

    assert isinstance(decision, Wait)
    assert 5.0 < decision.again_s < 5.5


def test_one_backend_serves_all_classes_and_keeps_a_slot_for_those_who_wait() -> None:
    for asked in (ask(TTFT), ask(MIXED)):
        assert decide(asked, desk(own=1)) == Dispatch("desk", "preferred_lane")
    assert decide(batch(), desk()) == Dispatch("desk", "spill_over")
    assert why_it_waits(decide(batch(), desk(own=1))) == "slots_reserved"


def test_one_backend_with_one_slot_runs_batches_while_it_is_idle() -> None:
    assert decide(batch(), desk(cap=1)) == Dispatch("desk", "spill_over")
    assert why_it_waits(decide(batch(), desk(cap=1, own=1))) == "no_room"


@pytest.mark.parametrize("call_class", [TTFT, MIXED, THROUGHPUT])
def test_an_idle_backend_that_is_too_slow_for_any_promise_serves_all_the_same(call_class: CallClass) -> None:
    crawl = Pace(step_s=0.5, sequence_s=0.1, prefill_token_s=0.1, step_tokens=64)

    assert isinstance(decide(call(call_class), slots(pace=crawl, demand=Demand())), Dispatch)


def test_a_reader_whose_prompt_is_too_long_for_the_promise_is_not_put_off() -> None:
    """The slot is kept for readers, and this is one; few others come meanwhile."""
    one_left = slots(3, own_by_class={TTFT: 1, THROUGHPUT: 2}, demand=replace(CHATS, per_s=0.4))
    assert decide(call(tokens=6_000), one_left) == Dispatch("desk", "preferred_lane")


def test_a_reader_who_waited_for_too_long_lets_others_go_first_for_a_while_only() -> None:
    one_left = slots(3, own_by_class={TTFT: 1, THROUGHPUT: 2})
    assert why_it_waits(decide(call(), one_left, now_s=1.0)) == "others_first"
    assert decide(call(), one_left, now_s=3.0) == Dispatch("desk", "preferred_lane")


def test_nobody_waits_for_the_sake_of_figures_that_are_guesses() -> None:
    """Of an engine of an unknown kind nothing can be foretold until some answers were seen."""
    guessed = replace(FAST, prefill_token_s=1 / 100, sequence_s=0.01, known=False, seen=0)
    crowded = many(200, pace=guessed, cap=None, work=Work(decoding=200, prefill_tokens=50_000, prefilling=50))
    for call_class in CallClass:
        assert isinstance(decide(call(call_class), crowded), Dispatch)


@pytest.mark.parametrize("call_class", list(CallClass))
def test_an_idle_backend_is_not_kept_for_those_who_would_be_late_there_anyway(call_class: CallClass) -> None:
    """A processor that reads 100 tokens a second: nobody has a first token in time, nobody waits for others."""
    slow = replace(SLOW, prefill_token_s=1 / 100)
    assert isinstance(decide(call(call_class), slots(pace=slow)), Dispatch)


@pytest.mark.parametrize("call_class", list(CallClass))
def test_nor_for_those_whose_tokens_would_come_too_slowly(call_class: CallClass) -> None:
    slow = replace(SLOW, step_s=0.2)
    assert isinstance(decide(call(call_class, tokens=4_000), slots(pace=slow)), Dispatch)


@given(
    call_class=st.sampled_from(CallClass),
    tokens=st.integers(1, 200_000),
    prefill_token_s=st.floats(1e-5, 0.1),
    step_s=st.floats(1e-4, 1.0),
    per_s=st.floats(0.0, 1_000.0),
    ttft_s=st.floats(0.05, 60.0),
    waited_s=st.floats(0.0, 100.0),
    two=st.booleans(),
)
def test_an_idle_fleet_takes_any_call_at_once(
    call_class: CallClass,
    tokens: int,
    prefill_token_s: float,
    step_s: float,
    per_s: float,
    ttft_s: float,
    waited_s: float,
    two: bool,
) -> None:
    """Whoever may come, nobody is served better by engines that stand still, whatever is thought of their pace."""
    facts: dict[str, Any] = {
        "pace": replace(SLOW, prefill_token_s=prefill_token_s, step_s=step_s),
        "demand": replace(CHATS, per_s=per_s, ttft_s=ttft_s),
    }
    idle = [slots(**facts), many(**facts)][: 1 + two]

    assert isinstance(decide(call(call_class, tokens=tokens), *idle, now_s=waited_s), Dispatch)


LONG = 12_000
"""Tokens of a prompt that takes two seconds on the desk, in which four chats come."""


@pytest.mark.parametrize("call_class", [MIXED, THROUGHPUT])
def test_long_prompts_leave_a_lone_backend_most_of_its_time_while_others_chat(call_class: CallClass) -> None:
    lately = Work(prefill_0_1=0.4)
    rested = Work(prefill_0_1=0.1)

    assert why_it_waits(decide(call(call_class, tokens=LONG), slots(work=lately))) == "others_first"
    assert isinstance(decide(call(call_class, tokens=LONG), slots(work=rested)), Dispatch)
    assert isinstance(decide(call(call_class, tokens=LONG), slots(work=lately, demand=Demand(ttft_s=0.5))), Dispatch)


def test_a_long_prompt_waits_until_chats_have_room_elsewhere_again() -> None:
    full, free = slots(4, work=Work(decoding=4.0)), slots()

    assert why_it_waits(decide(call(THROUGHPUT, tokens=LONG), full, many())) == "others_first"
    assert decide(call(THROUGHPUT, tokens=LONG), free, many()) == Dispatch("rack", "preferred_lane")


def test_no_more_chats_are_missed_than_the_engine_could_have_served() -> None:
    """A pace that is thought to be far too low, as after a pause of the machine, must not shut the backend."""
    paused = slots(pace=replace(SLOW, prefill_token_s=1 / 1_000))
    flooded = replace(paused, demand=replace(CHATS, per_s=500.0))
    served = replace(paused, demand=replace(CHATS, per_s=1_000 / 300))

    asked = call(THROUGHPUT)
    assert harm(asked, flooded, [], 0.0) == pytest.approx(harm(asked, served, [], 0.0), rel=1e-3)


def test_who_has_waited_long_enough_takes_a_slot_that_is_kept_for_others() -> None:
    aged = replace(call(THROUGHPUT), rules=replace(call(THROUGHPUT).rules, ageing_s=120.0))

    assert isinstance(decide(aged, slots(own=3), now_s=60.0), Wait)
    assert decide(aged, slots(own=3), now_s=120.0) == Dispatch("desk", "waited_long")


def test_of_many_the_fastest_is_looked_at_although_others_are_named_before_it() -> None:
    slow = replace(SLOW, prefill_token_s=1 / 200)
    several = [slots(name=f"slow-{number}", pace=slow) for number in range(9)]

    assert decide(call(tokens=2_000), *several, slots(name="fast")) == Dispatch("fast", "preferred_lane")


def test_a_hop_does_not_wait_for_a_slot_that_is_kept_from_it() -> None:
    kept = call(MIXED, tokens=500)
    kept = replace(kept, rules=replace(kept.rules, keep_free={Lane.LATENCY: 1}))

    in_a_hurry = many(demand=Demand(), pace=replace(FAST, step_s=0.055))

    assert decide(kept, slots(cap=1, demand=Demand()), in_a_hurry) == Dispatch("rack", "spill_over")

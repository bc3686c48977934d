"""What a call would see on a backend follows from the step model; what it costs the others as well."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.api import Features
from classifiers.lengths import Lengths
from policies.api import Ask, ClassRules, Pace, View, Work
from policies.outlook import (
    NEVER,
    UNKNOWN_LENGTHS,
    ahead_tokens,
    due_in_s,
    keeps_0_1,
    lengths,
    margin,
    outlook,
    sequences,
    stall_s,
    too_late,
)
from policies.urgency import alone_s
from tests.policies.makers import LATENCY_FIRST, TTFT, ask, view

PACE = Pace(step_s=0.010, sequence_s=0.001, prefill_token_s=1 / 1_000, step_tokens=512, call_s=0.004)


def wants(
    prompt_tokens: int = 100,
    tokens: tuple[int, int] = (11, 22),
    *,
    stream: bool = True,
    rules: Any = None,
    **known: Any,
) -> Ask:
    plain = ask(TTFT, lengths=Lengths(*tokens), **known)
    features = Features(surface="openai_chat", prompt_tokens=prompt_tokens, stream=stream)
    promised = ClassRules(lanes=LATENCY_FIRST, max_wait_s=30.0, **(rules or {}))
    fields = {name: getattr(plain, name) for name in ("verdict", "arrived_s", "lengths", "cached_tokens", "due_s")}
    return Ask(features=features, rules=promised, **fields)


def place(work: Work | None = None, **facts: Any) -> View:
    return view("it", cap=facts.pop("cap", 4), pace=PACE, work=work or Work(), **facts)


def test_on_an_idle_backend_a_call_takes_its_prompt_and_a_step_for_each_token() -> None:
    seen = outlook(wants(), place(), 0.0)
    assert seen.wait_s == 0.0
    assert seen.first_s == pytest.approx(0.004 + 0.100 + 0.010)
    assert seen.tpot_s == pytest.approx(0.011)
    assert seen.whole_s == pytest.approx(seen.first_s + 10 * seen.tpot_s)
    assert seen.prefill_s == pytest.approx(0.100)


@given(st.integers(1, 20_000), st.integers(1, 500))
def test_a_call_starts_when_it_has_to_by_the_same_times(prompt_tokens: int, tokens: int) -> None:
    asked = wants(prompt_tokens, (tokens, 2 * tokens))
    seen = outlook(asked, place(), 0.0)
    assert alone_s(asked, PACE, "it") == pytest.approx((seen.first_s, seen.whole_s))


def test_what_is_cached_is_not_prefilled_and_the_last_token_always_is() -> None:
    half = outlook(wants(cached_tokens={"it": 60}), place(), 0.0)
    assert half.first_s == pytest.approx(0.004 + 0.040 + 0.010)
    assert stall_s(wants(cached_tokens={"it": 100, "other": 5}), place()) == pytest.approx(0.001)


def test_prompts_ahead_are_prefilled_first_and_those_that_decode_slow_each_step() -> None:
    busy = place(Work(at_s=5.0, decoding=3.0, prefilling=1, prefill_tokens=500.0), own=4, cap=8)
    seen = outlook(wants(), busy, 5.0)
    step_s = 0.013
    assert seen.first_s == pytest.approx(0.004 + 0.5 * step_s + 0.600 + 2 * step_s)
    assert seen.tpot_s == pytest.approx(step_s + 2 * 0.001)


def test_the_work_ahead_gets_less_as_time_goes_by() -> None:
    busy = place(Work(at_s=5.0, prefilling=1, prefill_tokens=500.0))
    assert ahead_tokens(busy, 5.0) == 500.0
    assert 380 < ahead_tokens(busy, 5.1) < 410
    assert ahead_tokens(busy, 9.0) == 0.0


def test_where_no_slot_is_free_it_waits_for_the_soonest_end() -> None:
    full = place(Work(at_s=1.0, decoding=4.0, ends_s=(1.5, 2.0, 3.0, 4.0)), own=4)
    assert outlook(wants(), full, 1.0).wait_s == pytest.approx(0.5)
    assert outlook(wants(), full, 9.0).wait_s == 0.0
    crowded = place(Work(at_s=1.0, decoding=4.0, ends_s=(1.5, 2.0, 3.0, 4.0)), own=4, foreign=1.0)
    assert outlook(wants(), crowded, 1.0).wait_s == pytest.approx(1.0)


def test_of_slots_that_others_hold_half_a_usual_answer_is_expected() -> None:
    assert outlook(wants(), place(foreign=4.0), 0.0).wait_s > 0.5


def test_a_queue_inside_an_engine_without_slots_is_waited_for() -> None:
    ends_s = tuple(1.0 + number for number in range(9))
    crowded = place(Work(at_s=0.0, decoding=9.0, ends_s=ends_s), cap=None, own=9, queued=2.0)
    assert outlook(wants(), crowded, 0.0).wait_s == pytest.approx(2.0)


def test_prompts_of_late_are_taken_to_go_on_and_hold_up_what_decodes() -> None:
    quiet = outlook(wants(), place(Work(decoding=3.0), own=3, cap=None), 0.0)
    held_up = outlook(wants(), place(Work(decoding=3.0, prefill_0_1=0.5), own=3, cap=None), 0.0)
    assert held_up.tpot_s == pytest.approx(quiet.tpot_s / (1 - 0.5 * 3 / 4))
    assert held_up.least_tpot_s == quiet.least_tpot_s == quiet.tpot_s
    assert held_up.least_whole_s == quiet.whole_s < held_up.whole_s
    alone = outlook(wants(), place(Work(prefill_0_1=0.5), cap=1), 0.0)
    assert alone.tpot_s == pytest.approx(0.011), "in the only slot there is no other"


def test_what_is_decided_by_does_not_foresee_prompts_that_the_policy_would_hold_back() -> None:
    asked = wants(rules={"slo_tpot_s": 0.05, "slo_complete_s": 1.0})
    quiet, held_up = (place(Work(prefill_0_1=each), own=3, cap=None) for each in (0.0, 0.5))
    assert margin(asked, outlook(asked, quiet, 0.0), 0.0) == margin(asked, outlook(asked, held_up, 0.0), 0.0)


def test_a_length_that_is_not_known_is_bounded_by_the_limit_of_the_call() -> None:
    chat = Features(surface="openai_chat", prompt_tokens=5)
    assert lengths(_of(chat)) == UNKNOWN_LENGTHS
    chat.max_tokens = 32
    assert lengths(_of(chat)) == Lengths(32, 32)
    assert lengths(_of(Features(surface="rerank"))).p50_tokens == 1


def _of(features: Features) -> Ask:
    plain = ask()
    return Ask(features=features, verdict=plain.verdict, rules=plain.rules, arrived_s=0.0)


def test_an_uncertain_length_makes_the_end_uncertain() -> None:
    sure = outlook(wants(tokens=(100, 100)), place(), 0.0).whole
    unsure = outlook(wants(tokens=(100, 400)), place(), 0.0).whole
    assert sure.seconds == unsure.seconds
    assert sure.spread == pytest.approx(PACE.spread)
    assert unsure.spread > 3.0


def test_nine_in_ten_promises_of_margin_one_are_kept() -> None:
    rules = {"slo_complete_s": 1.0}
    seen = outlook(wants(rules=rules, tokens=(1, 1)), place(), 0.0)
    least_s = (
        seen.whole_s * PACE.spread
    )  # more than which is not taken for chance, but for a pace that is being learned
    assert keeps(rules | {"slo_complete_s": seen.whole_s}) == pytest.approx(0.5)
    assert keeps(rules | {"slo_complete_s": least_s}) > 0.9
    assert keeps(rules | {"slo_complete_s": 0.0}) == 0.0
    assert keeps({}) == 1.0


def keeps(rules: Any) -> float:
    asked = wants(rules=rules, tokens=(1, 1))
    return keeps_0_1(asked, outlook(asked, place(), 0.0), 0.0)


@given(st.floats(1e-3, 1e3), st.floats(1.0, 10.0), st.floats(0.0, 20.0))
def test_a_later_limit_is_never_less_likely_kept(limit_s: float, more: float, waited_s: float) -> None:
    sooner, later = (wants(rules={"slo_complete_s": each}) for each in (limit_s, limit_s * more))
    seen = outlook(sooner, place(), waited_s)
    assert margin(sooner, seen, waited_s) <= margin(later, seen, waited_s)
    assert 0.0 <= keeps_0_1(sooner, seen, waited_s) <= keeps_0_1(later, seen, waited_s) <= 1.0


def test_the_least_likely_promise_counts_and_time_that_was_waited_is_gone() -> None:
    rules = {"slo_ttft_s": 0.5, "slo_tpot_s": 0.050}
    call, there = wants(rules=rules), place()
    early = keeps_0_1(call, outlook(call, there, 0.0), 0.0)
    late = keeps_0_1(call, outlook(call, there, 0.4), 0.4)
    assert early > 0.95 > 0.5 > late
    assert keeps_0_1(wants(), outlook(wants(), there, 0.0), 0.0) == 1.0
    whole = wants(rules=rules, stream=False)
    assert keeps_0_1(whole, outlook(whole, there, 9.0), 9.0) == 1.0, "nothing of it comes before its end"


LIMITS = st.none() | st.floats(0.01, 20.0)


@given(LIMITS, LIMITS, LIMITS, st.booleans(), st.floats(0.0, 30.0))
def test_it_is_too_late_for_a_call_exactly_where_no_backend_has_a_margin(
    ttft_s: float | None, complete_s: float | None, due_s: float | None, stream: bool, waited_s: float
) -> None:
    rules = {"slo_ttft_s": ttft_s, "slo_complete_s": complete_s}
    call = wants(rules=rules, stream=stream, due_s=due_s)

    assert too_late(call, waited_s) == (margin(call, outlook(call, place(), waited_s), waited_s) == NEVER)


def test_the_sooner_of_two_ends_counts() -> None:
    assert due_in_s(wants(), 0.0) is None
    assert due_in_s(wants(rules={"slo_complete_s": 6.0}), 1.0) == pytest.approx(5.0)
    assert due_in_s(wants(rules={"slo_complete_s": 6.0}, due_s=4.0), 1.0) == pytest.approx(3.0)
    assert due_in_s(wants(rules={"slo_complete_s": 6.0}, due_s=9.0), 1.0) == pytest.approx(5.0)


@given(
    st.integers(1, 100_000),
    st.floats(0, 200),
    st.floats(0, 1e6),
    st.floats(0, 50),
    st.integers(0, 80),
)
def test_every_prediction_is_a_time(
    prompt_tokens: int, decoding: float, ahead: float, foreign: float, own: int
) -> None:
    there = place(Work(decoding=decoding, prefilling=1, prefill_tokens=ahead), own=own, foreign=foreign)
    seen = outlook(wants(prompt_tokens), there, 1.0)
    assert 0.0 <= seen.wait_s <= seen.first_s <= seen.whole_s < math.inf
    assert 0.0 < seen.tpot_s < math.inf
    assert seen.whole.spread >= 1.0


def test_answers_side_by_side_are_counted_and_a_million_of_them_is_not_believed() -> None:
    assert sequences(wants()) == 1
    pair, million, rows = wants(), wants(), _of(Features(surface="openai_embeddings", prompts=500))
    pair.features.choices, million.features.choices = 2, 1_000_000
    assert (sequences(pair), sequences(million), sequences(rows)) == (2, 64, 1)
    full = place(Work(at_s=1.0, decoding=4.0, ends_s=(1.5, 2.0, 3.0, 4.0)), own=4)
    assert outlook(million, full, 1.0).wait_s == pytest.approx(0.5), "the first of them comes first"

"""Steps, waiting, cancellation and preemption of modelled engines, by hand-computed times."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest

from router.simulate.engine import SimulatedEngine
from router.simulate.pace import DESK, RACK, EngineSpec, Flavour, Pace
from router.simulate.sequence import Sequence, Stage


def spec(
    flavour: Flavour = Flavour.BLOCKS,
    *,
    sequences: int = 4,
    context_token_s: float = 0.0,
    step_tokens: int = 100,
    cache_tokens: int = 262_144,
    context_tokens: int = 32_768,
) -> EngineSpec:
    pace = Pace(
        step_s=0.010,
        sequence_s=0.001,
        context_token_s=context_token_s,
        prefill_tokens_per_s=10_000,
        step_tokens=step_tokens,
    )
    return EngineSpec(
        flavour=flavour,
        pace=pace,
        sequences=sequences,
        cache_tokens=cache_tokens,
        context_tokens=context_tokens,
    )


def at(moment_s: float | None) -> float:
    """A moment that must have come."""
    assert moment_s is not None
    return moment_s


def drain(engine: SimulatedEngine) -> list[Sequence]:
    """Run to the end; what was told, in order."""
    told = []
    while (next_s := engine.next_s()) < math.inf:
        told += engine.run(next_s)
    return told


def test_a_call_alone_takes_its_prefill_steps_and_one_step_for_each_further_token() -> None:
    engine = SimulatedEngine(spec())
    call = engine.submit(1.0, prompt_tokens=250, output_tokens=11)
    assert drain(engine) == [call, call]
    prefill_s = 0.020 + 0.020 + 0.015
    assert call.first_s == pytest.approx(1.0 + prefill_s)
    assert call.end_s == pytest.approx(1.0 + prefill_s + 10 * 0.011)
    assert engine.tokens_out(call) == 11


def test_each_step_that_prefills_costs_more_and_no_other_does() -> None:
    usual = spec()
    engine = SimulatedEngine(replace(usual, pace=replace(usual.pace, prefill_step_s=0.007)))
    call = engine.submit(1.0, prompt_tokens=250, output_tokens=11)
    drain(engine)
    first_s = 1.0 + 0.020 + 0.020 + 0.015 + 3 * 0.007
    assert call.first_s == pytest.approx(first_s)
    assert call.end_s == pytest.approx(first_s + 10 * 0.011)


def test_a_prompt_takes_as_long_in_pieces_as_whole_where_each_token_looks_back_at_all_before_it() -> None:
    """And what the cache has is looked back at as well."""
    pace = replace(spec().pace, step_s=1e-9, prefill_tokens_per_s=1e12, prefill_pair_s=1e-6)
    in_pieces, whole = (
        SimulatedEngine(replace(spec(), pace=replace(pace, step_tokens=tokens))) for tokens in (100, 1_000)
    )
    for engine in (in_pieces, whole):
        call = engine.submit(0.0, prompt_tokens=640, output_tokens=2, full_blocks=range(10), blocks=range(10))
        drain(engine)
        assert call.first_s == pytest.approx(1e-6 * 640 * 640 / 2, rel=1e-3)
        again = engine.submit(10.0, prompt_tokens=740, output_tokens=1, blocks=range(10))
        drain(engine)
        assert again.cached_tokens == 640
        assert at(again.first_s) - 10.0 == pytest.approx(1e-6 * 100 * 690, rel=1e-3)


def test_a_call_of_one_token_ends_with_its_first() -> None:
    engine = SimulatedEngine(spec())
    call = engine.submit(0.0, prompt_tokens=50, output_tokens=1)
    assert drain(engine) == [call, call]
    assert call.first_s == call.end_s == pytest.approx(0.015)


def test_an_arrival_joins_when_the_running_step_ends_and_slows_the_others_down() -> None:
    engine = SimulatedEngine(spec())
    first = engine.submit(0.0, prompt_tokens=10, output_tokens=100)
    engine.run(0.011)
    second = engine.submit(0.025, prompt_tokens=50, output_tokens=2)  # in the step from 0.022 to 0.033
    drain(engine)
    assert second.admitted_s == pytest.approx(0.033)
    assert second.first_s == pytest.approx(0.033 + 0.010 + 0.001 + 0.005)
    assert second.end_s == pytest.approx(at(second.first_s) + 0.012)
    # 99 steps after its first token at 0.011: one beside the prefill, one beside the second call, the rest alone
    assert first.end_s == pytest.approx(0.011 + 97 * 0.011 + 0.016 + 0.012)


def test_growing_contexts_make_each_step_longer_and_the_closed_form_agrees_with_single_steps() -> None:
    jumping, stepping = (SimulatedEngine(spec(context_token_s=1e-6)) for _ in range(2))
    calls = []
    for engine in (jumping, stepping):
        calls.append(
            [engine.submit(0.001 * n, prompt_tokens=40 * n + 1, output_tokens=30 * n + 1) for n in range(1, 7)]
        )
    drain(jumping)
    while (end_s := stepping.step_end_s()) < math.inf:
        stepping.run(end_s)
    for one, other in zip(*calls, strict=True):
        assert one.first_s == pytest.approx(other.first_s)
        assert one.end_s == pytest.approx(other.end_s)
    only = SimulatedEngine(spec(context_token_s=1e-6))
    call = only.submit(0.0, prompt_tokens=100, output_tokens=3)
    drain(only)
    assert call.end_s == pytest.approx(0.020 + (0.011 + 101e-6) + (0.011 + 102e-6))


def test_looking_in_between_changes_nothing() -> None:
    chance = Random(5)
    quiet, watched = (SimulatedEngine(spec(context_token_s=1e-7, cache_tokens=3_000)) for _ in range(2))
    calls: list[list[Sequence]] = [[], []]
    at_s = 0.0
    for _ in range(200):
        at_s += chance.expovariate(8)
        tokens = chance.randint(1, 400), chance.randint(1, 60)
        looks = sorted(chance.uniform(at_s - 0.1, at_s) for _ in range(3))
        for index, engine in enumerate((quiet, watched)):
            if engine is watched:
                for look_s in looks:
                    engine.run(look_s)
            calls[index].append(engine.submit(at_s, prompt_tokens=tokens[0], output_tokens=tokens[1]))
    drain(quiet)
    drain(watched)
    for one, other in zip(*calls, strict=True):
        assert one.end_s == pytest.approx(other.end_s, abs=1e-9)


def test_slots_are_given_first_come_first_served_and_the_load_says_who_waits() -> None:
    engine = SimulatedEngine(spec(Flavour.SLOTS, sequences=2))
    calls = [engine.submit(0.0, prompt_tokens=10, output_tokens=10 + n) for n in range(5)]
    assert engine.load()[:2] == (1, 4)  # the step that runs began with the first call
    engine.run(0.05)
    assert engine.load()[:2] == (2, 3)
    drain(engine)
    admitted = [at(call.admitted_s) for call in calls]
    assert admitted == sorted(admitted)
    assert admitted[2] >= min(at(call.end_s) for call in calls[:2])
    assert engine.load() == (0, 0, 0.0)


def test_a_lower_priority_number_goes_first_where_the_engine_is_told_to_look() -> None:
    for by_priority in (False, True):
        engine = SimulatedEngine(
            EngineSpec(flavour=Flavour.BLOCKS, pace=spec().pace, sequences=1, by_priority=by_priority)
        )
        engine.submit(0.0, prompt_tokens=10, output_tokens=10)
        batch = engine.submit(0.001, prompt_tokens=10, output_tokens=10, priority=10)
        chat = engine.submit(0.002, prompt_tokens=10, output_tokens=10, priority=-10)
        drain(engine)
        assert (at(chat.first_s) < at(batch.first_s)) is by_priority


@pytest.mark.parametrize("after_s", [0.0, 0.012, 0.2])
def test_a_cancelled_call_makes_room_whatever_it_was_doing(after_s: float) -> None:
    engine = SimulatedEngine(spec(sequences=1))
    call = engine.submit(0.0, prompt_tokens=150, output_tokens=1_000)
    behind = engine.submit(0.0, prompt_tokens=50, output_tokens=5)
    engine.cancel(call, after_s)
    told = drain(engine)
    assert call.stage is Stage.CANCELLED
    assert call.end_s is None
    assert told.count(behind) == 2
    assert at(behind.end_s) < after_s + 0.12
    assert engine.load() == (0, 0, 0.0)


def test_a_call_that_leaves_the_line_is_never_admitted() -> None:
    engine = SimulatedEngine(spec(sequences=1))
    engine.submit(0.0, prompt_tokens=50, output_tokens=10)
    waits = engine.submit(0.0, prompt_tokens=50, output_tokens=10)
    engine.cancel(waits, 0.01)
    engine.cancel(waits, 0.02)
    drain(engine)
    assert waits.admitted_s is None
    assert engine.load() == (0, 0, 0.0)


def test_a_full_cache_lets_calls_wait_though_sequences_are_free() -> None:
    engine = SimulatedEngine(spec(cache_tokens=1_000, step_tokens=2_000))
    first = engine.submit(0.0, prompt_tokens=700, output_tokens=100)
    second = engine.submit(0.0, prompt_tokens=600, output_tokens=10)
    engine.run(0.2)
    running, waiting, used_0_1 = engine.load()
    assert (running, waiting) == (1, 1)
    assert used_0_1 == pytest.approx(0.7, abs=0.02)
    drain(engine)
    assert second.admitted_s == at(first.end_s)


def test_where_answers_outgrow_the_cache_the_youngest_is_computed_anew() -> None:
    engine = SimulatedEngine(spec(cache_tokens=1_000, step_tokens=2_000))
    first = engine.submit(0.0, prompt_tokens=400, output_tokens=300)
    second = engine.submit(0.0, prompt_tokens=400, output_tokens=300)
    told = drain(engine)
    assert engine.preemptions == 1
    assert told.count(second) == 2
    assert at(second.end_s) > at(first.end_s)
    assert engine.tokens_out(second) == 300
    assert engine.load() == (0, 0, 0.0)


def test_a_call_larger_than_the_cache_is_served_alone_rather_than_never() -> None:
    engine = SimulatedEngine(spec(cache_tokens=500, step_tokens=2_000))
    call = engine.submit(0.0, prompt_tokens=800, output_tokens=50)
    drain(engine)
    assert call.end_s is not None


def test_what_does_not_fit_the_context_is_refused_and_answers_end_there() -> None:
    engine = SimulatedEngine(spec(context_tokens=512))
    with pytest.raises(ValueError, match="512"):
        engine.submit(0.0, prompt_tokens=512, output_tokens=1)
    assert engine.submit(0.0, prompt_tokens=500, output_tokens=100).output_tokens == 12


def test_half_the_speed_takes_twice_as_long_from_the_next_step_on() -> None:
    engine = SimulatedEngine(spec())
    call = engine.submit(0.0, prompt_tokens=50, output_tokens=101)
    engine.run(0.015 + 50 * 0.011)
    engine.change_speed(0.5, 0.015 + 50 * 0.011)
    drain(engine)
    assert call.end_s == pytest.approx(0.015 + 51 * 0.011 + 49 * 0.022, abs=0.012)
    slow = SimulatedEngine(spec().at(0.5))
    alone = slow.submit(0.0, prompt_tokens=50, output_tokens=101)
    drain(slow)
    assert alone.end_s == pytest.approx(0.030 + 100 * 0.022)


def test_lost_slots_are_not_given_again_until_they_are_back() -> None:
    engine = SimulatedEngine(spec(Flavour.SLOTS, sequences=2))
    engine.resize(0, 0.0)
    call = engine.submit(1.0, prompt_tokens=10, output_tokens=2)
    assert engine.next_s() == math.inf
    engine.resize(9, 2.0)
    drain(engine)
    assert call.admitted_s == 2.0


def test_the_fleet_of_the_examples_is_as_fast_as_its_figures() -> None:
    desk, rack = SimulatedEngine(DESK), SimulatedEngine(RACK)
    on_desk = desk.submit(0.0, prompt_tokens=1_000, output_tokens=101)
    on_rack = rack.submit(0.0, prompt_tokens=1_000, output_tokens=101)
    drain(desk)
    drain(rack)
    assert on_desk.first_s == pytest.approx(2 * 0.008 + 1_000 / 6_000)
    assert on_desk.end_s == pytest.approx(at(on_desk.first_s) + 100 * 0.0092)
    assert on_rack.first_s == pytest.approx(0.012 + 1_000 / 9_000)
    assert on_rack.end_s == pytest.approx(at(on_rack.first_s) + 100 * 0.01225)


@pytest.mark.parametrize("flavour", list(Flavour))
@pytest.mark.parametrize("seed", range(4))
def test_under_any_traffic_every_call_ends_once_and_nothing_is_left(flavour: Flavour, seed: int) -> None:
    chance = Random(seed)
    engine = SimulatedEngine(spec(flavour, sequences=3, cache_tokens=900, context_tokens=600, context_token_s=1e-7))
    calls, told, at_s = [], [], 0.0
    for _ in range(400):
        at_s += chance.expovariate(5)
        told += engine.run(at_s)
        blocks = tuple(range(chance.randint(0, 4)))
        prompt = 64 * len(blocks) + chance.randint(1, 200)
        calls.append(engine.submit(at_s, prompt_tokens=prompt, output_tokens=chance.randint(1, 90), blocks=blocks))
        if chance.random() < 0.2:
            engine.cancel(chance.choice(calls), at_s + chance.random() / 20)
    told += drain(engine)
    for call in calls:
        assert call.stage in (Stage.ENDED, Stage.CANCELLED)
        if call.stage is Stage.ENDED:
            assert told.count(call) == 2
            assert call.submitted_s <= at(call.admitted_s) < at(call.first_s) <= at(call.end_s)
    assert engine.load() == (0, 0, 0.0)

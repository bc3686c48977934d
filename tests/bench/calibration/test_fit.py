"""The fit finds the pace of engines whose pace is known, from answers alone and together, also from noisy ones."""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import replace
from random import Random

import pytest

from bench.calibration.client import Seen
from bench.calibration.fit import errors, fitted, predicted
from router.simulate.engine import SimulatedEngine
from router.simulate.pace import DESK, RACK, EngineSpec, Pace
from router.simulate.sequence import Sequence

SMALL_RACK = replace(
    RACK, sequences=8, pace=Pace(step_s=0.015, sequence_s=0.0003, prefill_tokens_per_s=4_000, step_tokens=2_048)
)
DEAR_PREFILL = replace(SMALL_RACK, pace=replace(SMALL_RACK.pace, prefill_step_s=0.03))
NO_STEP = replace(
    DESK, pace=Pace(step_s=1e-5, sequence_s=0.001, prefill_tokens_per_s=1_000, step_tokens=2_048, prefill_step_s=0.005)
)


def seen(spec: EngineSpec, sizes: Items[tuple[float, int, int]], noise: Random | None = None) -> list[Seen]:
    """What a client would see of calls (instant, prompt tokens, answer tokens) on an idle engine of this pace.

    With noise each time is off by a tenth, and one call in ten is held up to three times as long as it takes.
    """
    engine = SimulatedEngine(spec)
    calls: list[Sequence] = []
    came: list[list[float]] = [[] for _ in sizes]

    def step_until(time_s: float) -> None:
        while (end_s := engine.step_end_s()) < time_s:
            engine.run(end_s)
            for call, tokens_s in zip(calls, came, strict=False):
                tokens_s += [end_s] * (engine.tokens_out(call) - len(tokens_s))

    for at_s, words, tokens in sizes:
        step_until(at_s)
        calls.append(engine.submit(at_s, prompt_tokens=words, output_tokens=tokens))
    step_until(math.inf)
    found = []
    for (at_s, words, tokens), tokens_s in zip(sizes, came, strict=True):
        factor = 1.0
        if noise is not None:
            factor = noise.uniform(1, 3) if noise.random() < 0.1 else noise.lognormvariate(0, 0.1)
        found.append(Seen(at_s, words, [at_s + factor * (token_s - at_s) for token_s in tokens_s], tokens))
    return found


def measured(spec: EngineSpec, noise: Random | None = None) -> EngineSpec:
    """The fit to what the measurements of `measure` would see, from a guess that is far off."""
    alone = [
        each for words in (16, 64, 256, 768, 1_500) for _ in range(3) for each in seen(spec, [(0.0, words, 32)], noise)
    ]
    groups = []
    for number in (2, 4, 8):
        for words in (16, 256):
            groups.append(seen(spec, [(0.0005 * place, words, 32) for place in range(number)], noise))
    chance, at_s, arrivals = Random(5), 0.0, []
    for _ in range(40):
        at_s += chance.expovariate(4)
        arrivals.append((at_s, chance.randint(8, 800), chance.randint(4, 48)))
    guess = replace(spec, pace=Pace(step_s=0.1, sequence_s=0.1, prefill_tokens_per_s=10, step_tokens=2_048))
    return fitted(alone, [*groups, seen(spec, arrivals, noise)], guess)


def checked(true: EngineSpec, found: EngineSpec) -> float:
    """Median error of whole answers that were not fitted to."""
    chance, at_s, arrivals = Random(9), 0.0, []
    for _ in range(60):
        at_s += chance.expovariate(3)
        arrivals.append((at_s, chance.randint(8, 800), chance.randint(4, 48)))
    real = seen(true, arrivals)
    error = errors(real, predicted(found, real))
    return max(error.first_median, error.whole_median)


@pytest.mark.parametrize("true", [SMALL_RACK, DEAR_PREFILL, NO_STEP])
def test_the_pace_of_an_engine_is_found_from_what_a_client_sees(true: EngineSpec) -> None:
    spec = measured(true)
    found = spec.pace
    assert found.prefill_tokens_per_s == pytest.approx(true.pace.prefill_tokens_per_s, rel=0.05)
    assert found.step_s + 4 * found.sequence_s == pytest.approx(true.pace.step_s + 4 * true.pace.sequence_s, rel=0.05)
    assert found.prefill_step_s == pytest.approx(true.pace.prefill_step_s, abs=0.002)
    assert checked(true, spec) < 0.03


@pytest.mark.parametrize("true", [SMALL_RACK, DEAR_PREFILL, NO_STEP])
def test_noise_and_calls_that_were_held_up_hardly_change_what_is_found(true: EngineSpec) -> None:
    assert checked(true, measured(true, Random(3))) < 0.12


def test_streams_that_came_all_at_once_do_not_make_steps_look_like_nothing() -> None:
    """As of a server that computes and has no time to send: some tokens wait for the last one."""
    alone = [each for words in (16, 64, 256, 768) for _ in range(3) for each in seen(SMALL_RACK, [(0.0, words, 32)])]
    for held_up in (alone[0], alone[3], alone[5]):
        held_up.tokens_s = [held_up.tokens_s[-1] + 5e-6 * number for number in range(len(held_up.tokens_s))]
    groups = [seen(SMALL_RACK, [(0.0, 64, 32)] * number) for number in (2, 4)]
    assert checked(SMALL_RACK, fitted(alone, groups, SMALL_RACK)) < 0.12


def test_what_a_client_sees_of_the_fitted_engine_is_what_is_predicted() -> None:
    real = seen(SMALL_RACK, [(0.0, 300, 20), (0.05, 100, 10), (0.051, 900, 30)])
    assert errors(real, predicted(SMALL_RACK, real)).whole_p90 == pytest.approx(0.0, abs=1e-9)


def test_errors_are_relative_and_zero_for_a_perfect_model() -> None:
    asked = [Seen(0.0, 300, [0.1], 11), Seen(0.1, 500, [0.3], 5)]
    guesses = predicted(DESK, asked)
    exact = [
        Seen(each.sent_s, each.prompt_tokens, [each.sent_s + first_s, each.sent_s + whole_s], each.output_tokens)
        for each, (first_s, whole_s) in zip(asked, guesses, strict=True)
    ]
    assert errors(exact, guesses).whole_p90 == pytest.approx(0.0)
    doubled = [(2 * first_s, 2 * whole_s) for first_s, whole_s in guesses]
    error = errors(exact, doubled)
    assert (error.first_median, error.whole_median, error.whole_bias) == pytest.approx((1.0, 1.0, 1.0))
    assert not math.isnan(error.first_p90)

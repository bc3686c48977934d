"""Predictions converge to what a modelled engine does, from calls as a router sees them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from statistics import median

import pytest

from router.engines.api import Identity
from router.fleet.evidence import Answered
from router.fleet.pace import PaceLearner, likely
from router.simulate.pace import DESK, RACK, EngineSpec
from router.simulate.pace import Pace as TruePace
from tests.router.fleet.loop import Loop, Went

CPU = replace(
    RACK,
    sequences=8,
    pace=TruePace(step_s=0.008, sequence_s=0.0006, prefill_tokens_per_s=2_500, step_tokens=2_048),
)
"""A vLLM whose figures stand to each other otherwise than its kind makes likely."""
PLACES = {"desk": (DESK, 3), "desk, full": (DESK, 4), "rack": (RACK, 3), "rack, busy": (RACK, 16), "cpu": (CPU, 6)}


def off_by(went: Sequence[Went], ratio: Callable[[Went], float]) -> float:
    """Median of how many times too long or too short; 1 is exact."""
    return math.exp(median(abs(math.log(ratio(each))) for each in went))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("speed", [0.25, 1.0, 4.0])
def test_twenty_calls_are_enough(place: str, speed: float) -> None:
    spec, at_once = PLACES[place]
    loop = Loop(spec.at(speed), at_once=at_once, pause_s=0.2 / speed)
    loop.run(20)
    went = loop.run(60)
    assert off_by(went, lambda each: each.first_ratio) < 1.25
    assert off_by(went, lambda each: each.tpot_ratio) < 1.45
    assert off_by(went, lambda each: each.whole_ratio) < 1.4
    later = loop.run(100)
    assert off_by(later, lambda each: each.first_ratio) < 1.15
    bias = math.exp(median(math.log(each.whole_ratio) for each in later))
    assert 0.85 < bias < 1.15


@pytest.mark.parametrize("spec", [DESK, RACK])
def test_the_spread_is_what_nine_in_ten_stay_below(spec: EngineSpec) -> None:
    loop = Loop(spec, at_once=4)
    loop.run(100)
    went = loop.run(300)
    below = [each.first_ratio <= each.pace.first_spread for each in went]
    assert 0.82 < sum(below) / len(below) < 0.97
    below = [each.tpot_ratio <= each.pace.tpot_spread for each in went]
    assert 0.82 < sum(below) / len(below) < 0.97


@pytest.mark.parametrize("spec", [DESK, RACK])
def test_half_the_speed_is_found_within_twenty_calls(spec: EngineSpec) -> None:
    loop = Loop(spec, at_once=3)
    loop.run(80)
    loop.engine.change_speed(0.5, loop.went[-1].end_s)
    loop.run(20)
    went = loop.run(40)
    assert off_by(went, lambda each: each.first_ratio) < 1.25
    assert off_by(went, lambda each: each.tpot_ratio) < 1.3


def test_some_first_tokens_that_came_late_for_no_reason_change_little() -> None:
    loop, chance = Loop(RACK, at_once=3, streams=1.0), Random(1)
    loop.late = lambda seconds: seconds + (5.0 if chance.random() < 0.05 else 0.0)
    loop.run(60)
    went = loop.run(100)
    assert off_by(went, lambda each: each.first_ratio) < 1.3


def test_answers_in_one_piece_teach_too() -> None:
    loop = Loop(RACK, at_once=4, streams=0.0)
    loop.run(20)
    assert off_by(loop.run(60), lambda each: each.whole_ratio) < 1.2


def test_before_anything_was_seen_the_kind_of_engine_is_believed() -> None:
    assert likely("ollama") == likely("llamacpp") != likely("vllm")
    assert likely("something else").seen == 0
    loop = Loop(DESK, at_once=1)
    assert loop.backend.view(0.0).pace == likely("llamacpp")
    loop.run(3)
    learned = loop.backend.view(9.0).pace
    assert learned.seen == 3
    loop.fleet.identified(loop.backend, Identity(engine="llamacpp", slots=4, models=("another",)))
    assert loop.backend.view(9.0).pace == learned, "another model may be as fast"
    loop.fleet.identified(loop.backend, Identity(engine="vllm", models=("another",)))
    assert loop.backend.view(9.0).pace == likely("vllm")


def test_a_call_that_failed_or_of_which_nothing_is_known_teaches_nothing() -> None:
    loop = Loop(DESK, at_once=1)
    loop.run(1)
    before = loop.backend.pacer.pace
    learner, (went,) = PaceLearner("llamacpp"), loop.went
    assert went.lease.running is not None
    learner.answered(went.lease.running, loop.backend.work.mark(), None, Answered())
    assert learner.pace.prefill_token_s == likely("llamacpp").prefill_token_s
    assert before.seen == 1


def test_of_many_answers_at_once_a_few_are_learned_from() -> None:
    loop = Loop(DESK, at_once=1)
    loop.run(1)
    running, now = loop.went[0].lease.running, loop.backend.work.mark()
    assert running is not None
    learner = PaceLearner("llamacpp")
    for number in range(1_000):
        learner.answered(running, now._replace(at_s=now.at_s + 0.001 * number), None, Answered())
    assert 100 < learner.pace.seen < 200

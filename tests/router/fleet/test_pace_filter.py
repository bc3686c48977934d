"""The four figures are found from times, whatever machine it is, whatever goes wrong now and then."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.fleet.pace_filter import PaceFilter, Sighting

GUESS = (0.002, 1 / 4_000, 0.010, 0.001)


def answers(true: Sequence[float], seed: int, *, noise: float = 0.1) -> Iterator[Sighting]:
    """First token and decode of call after call on a machine with these figures."""
    call_s, prefill_token_s, step_s, sequence_s = true
    chance = Random(seed)
    while True:
        tokens, beside = round(chance.lognormvariate(5.5, 1.0)) + 1, chance.randint(0, 4)
        steps = math.ceil(tokens / 512)
        first_s = call_s + tokens * prefill_token_s + steps * (step_s + beside * sequence_s)
        yield Sighting(first_s * chance.lognormvariate(0, noise), 1, tokens, steps, steps * beside)
        made = chance.randint(20, 150)
        decode_s = made * (step_s + (beside + 1) * sequence_s)
        yield Sighting(decode_s * chance.lognormvariate(0, noise / 2), 0, 0, made, made * (beside + 1), 0.1)


def true_s(true: Sequence[float], seen: Sighting) -> float:
    return sum(figure * count for figure, count in zip(true, seen[1:5], strict=True))


def off_by(found: PaceFilter, true: Sequence[float], seed: int = 99) -> float:
    """Largest share, of a dozen calls, by which a predicted time misses."""
    some = answers(true, seed)
    seen = [next(some) for _ in range(24)]
    return max(abs(math.log(found.expected_s(each) / true_s(true, each))) for each in seen)


@pytest.mark.parametrize("speed", [0.05, 0.3, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("seed", range(5))
def test_ten_calls_are_enough_for_any_machine(speed: float, seed: int) -> None:
    true = (0.004, 1 / 1_500 / speed, 0.030 / speed, 0.004 / speed)
    found, some = PaceFilter(GUESS), answers(true, seed)
    for _ in range(20):
        found.learn(next(some))
    assert off_by(found, true) < 0.5
    for _ in range(60):
        found.learn(next(some))
    assert off_by(found, true) < 0.25


@pytest.mark.parametrize("change", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_machine_of_another_speed_is_found_within_ten_calls(change: float, seed: int) -> None:
    before = (0.004, 1 / 1_500, 0.030, 0.004)
    after = tuple(figure / change for figure in before)
    found, some = PaceFilter(before), answers(before, seed)
    for _ in range(100):
        found.learn(next(some))
    some = answers(after, seed + 100)
    for _ in range(20):
        found.learn(next(some))
    assert off_by(found, after) < 0.45


@pytest.mark.parametrize("far", [0.001, 0.1, 10.0, 1000.0])
@pytest.mark.parametrize("seed", range(5))
def test_one_call_in_twenty_may_be_far_off(far: float, seed: int) -> None:
    true = (0.004, 1 / 1_500, 0.030, 0.004)
    found, some, chance = PaceFilter(GUESS), answers(true, seed), Random(seed)
    for _ in range(200):
        seen = next(some)
        found.learn(seen._replace(seconds=seen.seconds * far) if chance.random() < 0.05 else seen)
    assert off_by(found, true) < 0.5


@pytest.mark.parametrize("seed", range(5))
def test_a_first_call_that_took_a_thousand_times_as_long_is_forgotten_within_twenty(seed: int) -> None:
    """A server compiles its kernels when the first call comes."""
    true = (0.004, 1 / 1_500, 0.030, 0.004)
    found, some = PaceFilter(GUESS), answers(true, seed)
    for _ in range(2):
        seen = next(some)
        found.learn(seen._replace(seconds=seen.seconds * 1000))
    for _ in range(40):
        found.learn(next(some))
    assert off_by(found, true) < 0.5


def test_what_cannot_be_a_time_is_not_learned() -> None:
    found = PaceFilter(GUESS)
    for seconds in (0.0, -1.0, math.inf, math.nan):
        found.learn(Sighting(seconds, 1, 100, 1, 0))
    found.learn(Sighting(1.0))
    assert found.seen == 0
    assert tuple(found.figures) == GUESS


def test_each_time_of_a_steady_machine_makes_it_surer() -> None:
    found, some = PaceFilter(GUESS), answers(GUESS, 1, noise=0.01)
    for _ in range(100):
        found.learn(next(some))
    before = found.expected_s(Sighting(1.0, 1, 500, 1, 0))
    found.learn(Sighting(before * 3, 1, 500, 1, 0))
    assert found.expected_s(Sighting(1.0, 1, 500, 1, 0)) < 1.3 * before


times = st.builds(
    Sighting,
    st.floats(1e-9, 1e9),
    st.floats(0, 1),
    st.floats(0, 1e6),
    st.floats(0, 1e5),
    st.floats(0, 1e7),
    st.floats(0.01, 2.0),
)


@given(st.lists(times, max_size=60))
def test_figures_stay_positive_and_bounded_whatever_is_seen(seen: list[Sighting]) -> None:
    found = PaceFilter(GUESS)
    for each in seen:
        found.learn(each)
        assert all(0.0 < figure <= 10.0 for figure in found.figures)
        diagonal = found.variances
        assert all(-1e-9 <= variance < 10.0 for variance in diagonal)

"""How far predictions are off is what the last answers showed, no more and no less."""

from __future__ import annotations

import math
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from router.fleet.pace_errors import Spread


def test_before_anything_was_seen_the_guess_is_said() -> None:
    assert Spread(2.0).value == 2.0
    little = Spread(2.0)
    little.take(1.0, 1.1)
    assert little.value == 2.0
    little.take(1.0, 3.0)
    assert little.value == 3.0


def test_nine_in_ten_of_the_answers_to_come_stay_below() -> None:
    chance, spread, kept = Random(1), Spread(2.0), 0
    for number in range(2_000):
        ratio = chance.lognormvariate(0.0, 0.3)
        if number >= 100:
            kept += ratio <= spread.value
        spread.take(1.0, ratio)
    assert 0.87 < kept / 1_900 < 0.93


def test_what_was_long_ago_does_not_count() -> None:
    spread = Spread(2.0)
    for _ in range(60):
        spread.take(1.0, 10.0)
    for _ in range(60):
        spread.take(1.0, 1.0)
    assert spread.value == 1.05
    assert len(spread) == 60


def test_what_is_no_time_is_not_taken() -> None:
    spread = Spread(2.0)
    for predicted_s, seen_s in ((0.0, 1.0), (1.0, 0.0), (1.0, -1.0), (1.0, math.inf), (1.0, math.nan)):
        spread.take(predicted_s, seen_s)
    assert len(spread) == 0


@given(st.lists(st.tuples(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6)), max_size=150))
def test_it_is_bounded_whatever_was_seen(pairs: list[tuple[float, float]]) -> None:
    spread = Spread(2.0)
    for predicted_s, seen_s in pairs:
        spread.take(predicted_s, seen_s)
        assert 1.05 <= spread.value <= 20.0
    assert len(spread) <= 60

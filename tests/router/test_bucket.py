"""A token bucket, with time as an argument."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.bucket import Bucket


def test_it_begins_full_and_fills_evenly() -> None:
    bucket = Bucket(60, now_s=100.0)
    bucket.take(60, 100.0)
    assert bucket.level(100.0) == 0
    assert bucket.level(110.0) == pytest.approx(10)
    assert bucket.level(1000.0) == 60


def test_it_holds_no_more_than_a_burst_may_have() -> None:
    bucket = Bucket(60, now_s=0.0, holds_s=2.0)
    assert bucket.level(0.0) == bucket.capacity == 2
    bucket.take(2, 0.0)
    assert bucket.level(1.0) == pytest.approx(1)
    assert bucket.level(60.0) == 2


def test_it_says_how_long_until_one_is_there_and_until_it_is_full() -> None:
    bucket = Bucket(60, now_s=0.0)
    bucket.take(60, 0.0)
    assert bucket.wait_s(0.0) == pytest.approx(1.0)
    assert bucket.wait_s(0.5) == pytest.approx(0.5)
    assert bucket.wait_s(1.0) == pytest.approx(0.0)
    assert bucket.full_in_s(1.0) == pytest.approx(59.0)


def test_a_debt_has_to_be_paid_first() -> None:
    bucket = Bucket(60, now_s=0.0)
    bucket.take(180, 0.0)
    assert bucket.level(0.0) == -120
    assert bucket.wait_s(0.0) == pytest.approx(121.0)


def test_what_is_given_back_does_not_make_it_overflow() -> None:
    bucket = Bucket(60, now_s=0.0)
    bucket.take(10, 0.0)
    bucket.take(-50, 0.0)
    assert bucket.level(0.0) == 60


def test_a_new_size_keeps_what_is_used_up() -> None:
    bucket = Bucket(60, now_s=0.0)
    bucket.take(50, 0.0)
    bucket.resize(100, 0.0)
    assert (bucket.level(0.0), bucket.capacity) == (50, 100)
    bucket.resize(40, 0.0)
    assert bucket.level(0.0) == -10


def test_a_clock_that_goes_back_changes_nothing() -> None:
    bucket = Bucket(60, now_s=10.0)
    bucket.take(60, 10.0)
    assert bucket.level(5.0) == 0
    assert bucket.level(11.0) == pytest.approx(1)


@given(st.integers(1, 600), st.lists(st.tuples(st.floats(0, 5), st.integers(0, 50)), max_size=40))
def test_no_more_passes_than_a_burst_and_the_rate_together(per_minute: int, asks: list[tuple[float, int]]) -> None:
    bucket, now_s, passed = Bucket(per_minute, now_s=0.0), 0.0, 0
    for pause_s, count in asks:
        now_s += pause_s
        for _ in range(count):
            if bucket.wait_s(now_s) == 0:
                bucket.take(1, now_s)
                passed += 1
    assert passed <= per_minute + now_s * per_minute / 60 + 1e-6

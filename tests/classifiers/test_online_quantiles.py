"""Quantiles of recent lengths: exact within a step, of the newest alone, in a size that does not grow."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.online_quantiles import KEPT, NOTHING, RecentLengths

STEP = 1 / 12


def of(*tokens: int) -> RecentLengths:
    lengths = RecentLengths()
    for each in tokens:
        lengths.take(each)
    return lengths


def test_nothing_seen_says_so() -> None:
    assert of().seen() == NOTHING


def test_one_length_is_both_quantiles() -> None:
    answers, p50, p90 = of(100).seen()
    assert answers == 1
    assert p50 == p90 == pytest.approx(math.log2(100), abs=STEP)


@given(st.lists(st.integers(1, 100_000), min_size=2, max_size=KEPT))
def test_quantiles_are_right_within_a_step(tokens: list[int]) -> None:
    _, p50, p90 = of(*tokens).seen()
    logs = [math.log2(each) for each in tokens]
    assert p50 == pytest.approx(statistics.median(logs), abs=STEP)
    assert p90 == pytest.approx(statistics.quantiles(logs, n=10, method="inclusive")[-1], abs=STEP)


@given(st.lists(st.integers(1, 2**20), min_size=KEPT, max_size=5 * KEPT))
def test_only_the_newest_count(tokens: list[int]) -> None:
    assert of(*tokens).seen() == of(*tokens[-KEPT:]).seen()
    assert len(of(*tokens)) == KEPT


def test_odd_lengths_are_kept_at_the_borders() -> None:
    assert of(0).seen() == of(1).seen()
    assert of(2**40).seen() == of(2**30).seen()

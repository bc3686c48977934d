"""Counts that engines report make the figures of their models better, and odd ones do no harm."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.api import Features
from classifiers.shape import shape_of
from router.fleet.token_rate import TokenRates


def call(estimate: int, **more: Any) -> Features:
    fields = {"surface": "openai_chat", "model": "m", "last_role": "user", **more}
    return Features(prompt_tokens=estimate, estimated_tokens=estimate, **fields)


def corrected(rates: TokenRates, estimate: int, **more: Any) -> int:
    features = call(estimate, **more)
    rates.correct(features)
    assert features.estimated_tokens == estimate
    return features.prompt_tokens


def told(rates: TokenRates, calls: int, *, offset: float = 40.0, slope: float = 1.3, **more: Any) -> None:
    """Calls of many sizes, whose counts scatter by a twentieth."""
    chance = random.Random(calls)
    for _ in range(calls):
        estimate = int(10 ** chance.uniform(1, 4))
        rates.learn(call(estimate, **more), round((offset + slope * estimate) * chance.gauss(1, 0.05)))


def test_nothing_changes_before_anything_is_known() -> None:
    rates = TokenRates()
    told(rates, 4)
    assert corrected(rates, 1000) == 1000
    assert corrected(rates, 0) == 0


@pytest.mark.parametrize("estimate", [20, 200, 5000])
def test_both_the_sentences_of_a_template_and_a_finer_vocabulary_are_learned(estimate: int) -> None:
    rates = TokenRates()
    told(rates, 60)
    assert corrected(rates, estimate) == pytest.approx(40 + 1.3 * estimate, rel=0.1)


def test_each_model_and_kind_of_call_has_its_own_line() -> None:
    rates = TokenRates()
    told(rates, 60)
    assert corrected(rates, 1000, model="other") == 1000
    assert corrected(rates, 1000, tools=2) == 1000
    assert corrected(rates, 1000, last_role="") == 1000
    chinese = shape_of({}, system=[], last=["请将下面的文章翻译成英文"])
    assert corrected(rates, 1000, last_tokens=9, shape=chinese) == 1000


def test_few_counts_that_are_far_off_do_not_bend_the_line() -> None:
    rates = TokenRates()
    chance = random.Random(1)
    for number in range(100):
        estimate = int(10 ** chance.uniform(1, 4))
        rates.learn(call(estimate), round(estimate * (3.5 if number % 10 == 9 else chance.gauss(1, 0.03))))
    assert corrected(rates, 1000) == pytest.approx(1000, rel=0.1)


def test_counts_of_something_else_are_not_looked_at() -> None:
    rates = TokenRates()
    for _ in range(50):
        rates.learn(call(4000), 12)  # what an engine computed beside its cache
        rates.learn(call(20), 3000)  # images, or a history that the server has
        rates.learn(call(1000, media=1), 1800)
        rates.learn(call(1000, previous_response_id="resp_1"), 1800)
        rates.learn(call(1000, prompts=3), 1800)
        rates.learn(call(1000), None)
        rates.learn(call(1000), 0)
    assert len(rates) == 0


def test_a_model_that_is_replaced_is_learned_anew() -> None:
    rates = TokenRates()
    told(rates, 500, slope=1.3)
    told(rates, 300, slope=0.8, offset=0)
    assert corrected(rates, 2000) == pytest.approx(1600, rel=0.1)


def test_one_size_over_and_over_teaches_that_size() -> None:
    rates = TokenRates()
    for _ in range(10_000):
        rates.learn(call(700), 910)
    assert corrected(rates, 700) == pytest.approx(910, rel=0.02)
    assert 5000 < corrected(rates, 7000) < 14_000


def test_no_count_makes_a_figure_that_cannot_be() -> None:
    rates = TokenRates()
    told(rates, 100, offset=-30, slope=0.5)
    assert corrected(rates, 8) >= 2
    told(rates, 100, offset=900, slope=3.9, model="wordy")
    assert corrected(rates, 100_000, model="wordy") <= 400_000 + 1000


@given(st.lists(st.tuples(st.integers(1, 10**7), st.floats(0.25, 4.0)), min_size=5, max_size=200))
def test_whatever_is_told_figures_stay_within_bounds(counts: list[tuple[int, float]]) -> None:
    rates = TokenRates()
    for estimate, share in counts:
        rates.learn(call(estimate), round(share * estimate))
    for estimate in (1, 100, 10**5, 10**7):
        assert estimate / 4 - 1 <= corrected(rates, estimate) <= 4 * estimate + 1000


def test_the_least_recently_told_is_forgotten_first() -> None:
    rates = TokenRates(capacity=3)
    told(rates, 30, model="kept")
    for number in range(10):
        rates.learn(call(100, model=f"made up {number}"), 130)
        told(rates, 1, model="kept")
    assert len(rates) == 3
    assert corrected(rates, 1000, model="kept") == pytest.approx(1340, rel=0.1)

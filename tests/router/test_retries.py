"""The retry budget: a share of the calls, and a few a second."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.retries import WINDOW_S, RetryBudget


@dataclass(frozen=True, kw_only=True)
class Allowed:
    share: float = 0.2
    per_second: float = 0.0


def taken(budget: RetryBudget, limits: Allowed, now_s: float, asked: int) -> int:
    return sum(budget.take(limits, now_s) for _ in range(asked))


def test_a_fifth_of_the_calls_may_be_tried_again() -> None:
    budget = RetryBudget()
    for _ in range(100):
        budget.called(1.0)
    assert taken(budget, Allowed(), 1.0, asked=100) == 20


def test_a_few_a_second_are_always_allowed() -> None:
    budget = RetryBudget()
    floor = Allowed(per_second=2.0)
    assert taken(budget, floor, 5.0, asked=100) == 2 * WINDOW_S
    assert taken(budget, floor, 5.0, asked=10) == 0
    assert taken(budget, floor, 5.0 + 10 * WINDOW_S, asked=100) >= 2 * WINDOW_S - 1


@pytest.mark.parametrize("calls", [0, 1000])
def test_nothing_is_tried_again_where_both_limits_are_zero(calls: int) -> None:
    budget = RetryBudget()
    for _ in range(calls):
        budget.called(0.0)
    assert not budget.take(Allowed(share=0.0), 0.0)


def test_calls_of_a_minute_ago_allow_nothing() -> None:
    budget = RetryBudget()
    for _ in range(100):
        budget.called(0.0)
    assert taken(budget, Allowed(), 60.0, asked=10) == 0


@given(
    calls_per_s=st.integers(1, 200),
    failing=st.floats(0.0, 1.0),
    share=st.floats(0.0, 1.0),
    per_second=st.integers(0, 20),
)
def test_over_a_long_time_no_more_than_share_and_floor(
    calls_per_s: int, failing: float, share: float, per_second: int
) -> None:
    budget, limits = RetryBudget(), Allowed(share=share, per_second=per_second)
    retried = owed = 0.0
    seconds = 60
    for number in range(seconds * calls_per_s):
        now_s = number / calls_per_s
        budget.called(now_s)
        owed += failing
        if owed >= 1.0:
            owed -= 1.0
            retried += budget.take(limits, now_s)
    at_rest = per_second * WINDOW_S
    assert retried <= share * seconds * calls_per_s + per_second * seconds + at_rest + 1

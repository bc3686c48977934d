"""What running calls still need is worked out when somebody looks, and is as the plain formulas have it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.api import Pace
from router.fleet.glance import Glance, Later
from router.fleet.running import Mark, Running
from tests.policies.test_outlook import wants

PACE = Pace(step_s=0.010, sequence_s=0.001, prefill_token_s=1 / 1_000, step_tokens=1_000)


def running(tokens: int = 101, *, began_s: float | None = 0.0, count: int | None = None, **known: Any) -> Running:
    made = Running(wants(1_000, (tokens, 2 * tokens), **known), "it", Mark(0.0, 0.0, 0.0, 0.0))
    if began_s is not None:
        made.begins(Mark(began_s, 0.0, 0.0, 0.0))
    if count is not None:
        made.count = lambda: count
    return made


def test_a_list_is_made_once_and_when_somebody_looks() -> None:
    made: list[int] = []

    def make() -> list[int]:
        made.append(1)
        return [3, 4, 5]

    later = Later(make)
    assert not made
    assert (len(later), list(later), later[0], later[1:], repr(later)) == (3, [3, 4, 5], 3, [4, 5], "[3, 4, 5]")
    assert made == [1]


def test_what_was_counted_stands_in_place_of_steps_unless_events_have_several_tokens() -> None:
    rules = {"slo_tpot_s": 0.05}
    assert running(rules=rules, count=41).got(60.0) == 40.0
    assert running(rules=rules, count=41).left(40.0) == 60.0
    assert running(rules=rules, count=10).got(60.0) == 60.0
    assert running(count=41).got(60.0) == 60.0, "nothing depends on it"


one = st.tuples(
    st.integers(1, 400),
    st.one_of(st.none(), st.integers(1, 500)),
    st.sampled_from((None, 0.02, 0.05)),
    st.sampled_from((None, 5.0, 30.0)),
    st.booleans(),
)


@given(st.lists(one, max_size=8), st.lists(one, max_size=3), st.floats(0, 600))
def test_the_short_way_gives_what_the_formulas_give(
    begun: list[tuple[Any, ...]], before: list[tuple[Any, ...]], steps: float
) -> None:
    def calls(of: list[tuple[Any, ...]], began_s: float | None) -> list[Running]:
        return [
            running(
                tokens, began_s=began_s, count=count, stream=stream, rules={"slo_tpot_s": tpot_s, "slo_complete_s": s}
            )
            for tokens, count, tpot_s, s, stream in of
        ]

    now_s, decoding, waiting = 6.0, calls(begun, 0.5), [(each, 500.0) for each in calls(before, None)]
    glance = Glance(now_s, steps, PACE, float(len(decoding)), 500.0 * len(waiting), decoding, waiting)
    ends_s, promises = glance.ends_s(), glance.promises()
    token_s = 0.010 + 0.001 * (len(decoding) + len(waiting))
    from_s = now_s + 0.5 * len(waiting)
    expected_ends_s = []
    for each in decoding:
        got = each.got(steps)
        left = each.left(got)
        expected_ends_s.append(from_s + left * token_s)
        if each.promised:
            slack_s, tokens, sure_s, call_class = promises.pop(0)
            by_pace_s = each.first_s + each.tpot_slo_s * (got + left)
            assert (tokens, call_class) == (left, each.ask.verdict.call_class)
            assert slack_s == pytest.approx(min(by_pace_s, each.due_s) - expected_ends_s[-1])
            assert sure_s == pytest.approx(each.sure_s(got, left, from_s, token_s))
    assert len(promises) == sum(each.promised for each, _ in waiting)
    assert all(sure_s <= slack_s for slack_s, _, sure_s, _ in promises)
    assert ends_s == sorted(ends_s)
    assert all(any(math.isclose(end_s, found) for found in ends_s) for end_s in expected_ends_s)
    assert len(ends_s) == len(decoding) + len(waiting)


def test_a_glance_is_of_its_instant_however_late_it_is_looked_at() -> None:
    first = running(rules={"slo_tpot_s": 0.05})
    glance = Glance(1.0, 20.0, PACE, 1.0, 300.0, [first], [(running(began_s=None), 300.0)])
    other = Glance(1.0, 20.0, PACE, 1.0, 300.0, [first], [(running(began_s=None), 300.0)])
    seen = other.promises()
    first.got(35.0)
    assert glance.promises() == seen

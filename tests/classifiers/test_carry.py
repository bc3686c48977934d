"""What was said of earlier calls, and what of it goes into the next verdict."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.carry import bounded, carried, centred, taken_in
from classifiers.learned import AS_BEFORE, Learned, ModelError
from tests.classifiers.models import NAMES, document, linear_stage

STREAMED = [1.0, 0.0, 40.0, 2.0]

odds = st.floats(-50, 50)
three = st.tuples(odds, odds, odds)


def model(carry: Any = 0.3) -> Learned:
    return Learned.parse(document(arrival={**linear_stage(), "carry": carry}), NAMES)


@given(three, st.floats(0.1, 10))
def test_centred_log_odds_have_no_mean_and_keep_their_order(scores: tuple[float, float, float], by: float) -> None:
    found = centred(scores, by)
    assert sum(found) == pytest.approx(0, abs=1e-6)
    assert [a - b for a, b in pairwise(found)] == pytest.approx([(a - b) / by for a, b in pairwise(scores)], abs=1e-6)


def test_a_call_that_is_very_sure_counts_for_no_more_than_the_bound() -> None:
    assert taken_in(None, (40.0, -20.0, 1.0)) == (3.0, -3.0, 1.0)


@given(three, st.lists(three, max_size=30))
def test_what_was_said_lately_stays_within_what_was_said(first: Any, others: list[Any]) -> None:
    lately = taken_in(None, first)
    for said in others:
        lately = taken_in(lately, said)
    every = [bounded(said) for said in (first, *others)]
    for place in range(3):
        column = [said[place] for said in every]
        assert min(column) - 1e-9 <= lately[place] <= max(column) + 1e-9


@given(three, three)
def test_nothing_is_carried_over_with_a_share_of_0(said: Any, lately: Any) -> None:
    assert carried(said, lately, 0.0) == pytest.approx(said)


def test_calls_before_decide_where_one_says_little() -> None:
    sure, torn = (0.0, 3.0, -3.0), (0.2, 0.0, -0.2)
    assert carried(torn, sure, 0.3)[1] > carried(torn, sure, 0.3)[0]
    assert carried((3.0, 0.0, -3.0), sure, 0.3)[0] > carried((3.0, 0.0, -3.0), sure, 0.3)[1]


def test_a_stage_judges_the_same_where_nothing_was_said_before() -> None:
    plain = Learned.parse(document(arrival=linear_stage()), NAMES)
    assert model().judge(STREAMED, True) == pytest.approx(plain.judge(STREAMED, True))
    assert plain.look(STREAMED, True, (0.0, 3.0, -3.0)).probabilities == plain.judge(STREAMED, True)
    assert plain.look(STREAMED, True).alone is None


def test_the_stage_for_single_calls_carries_nothing_over() -> None:
    assert model().look(STREAMED, False, (0.0, 3.0, -3.0)).probabilities == model().judge(STREAMED)


def test_a_verdict_that_earlier_calls_turned_says_so_and_explains_it() -> None:
    judgement = model(0.9).look(STREAMED, True, (-3.0, 3.0, 0.0))
    assert judgement.place == 1
    assert judgement.alone is not None
    assert judgement.alone[0] == max(judgement.alone)
    assert judgement.reasons(1)[0] == AS_BEFORE
    words, effect = judgement.effects(1)[0]
    assert words == "what was said of earlier calls"
    assert effect == pytest.approx(2.7)


def test_a_verdict_that_earlier_calls_agree_with_has_the_reasons_of_the_call() -> None:
    judgement = model().look(STREAMED, True, (3.0, -3.0, 0.0))
    assert judgement.place == 0
    assert AS_BEFORE not in judgement.reasons(0)


@pytest.mark.parametrize("wrong", [-0.1, 1.0, 2, "much"])
def test_a_share_that_leaves_nothing_of_the_call_is_refused(wrong: Any) -> None:
    with pytest.raises(ModelError, match="carry"):
        model(wrong)

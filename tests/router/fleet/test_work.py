"""What running calls still need is followed from their few events."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.api import NO_WORK, Pace
from router.fleet.work import WorkBook
from tests.policies.test_outlook import wants

PACE = Pace(step_s=0.010, sequence_s=0.0, prefill_token_s=1 / 1_000, step_tokens=1_000)
"""A token of a prompt takes 1.01 ms in all, one of an answer 10 ms."""


def book() -> WorkBook:
    made = WorkBook()
    made.pace = PACE
    return made


def call(prompt_tokens: int = 1_000, tokens: int = 101, *, stream: bool = True, **known: Any) -> Any:
    return wants(prompt_tokens, (tokens, tokens), stream=stream, **known)


def test_an_idle_backend_has_no_work() -> None:
    assert book().work(5.0) == NO_WORK._replace(at_s=5.0)


def test_a_prompt_is_worked_off_as_time_goes_by_but_for_a_rest_until_its_first_token() -> None:
    made = book()
    running = made.sent(call(), "it", 0.0)
    assert made.work(0.0).prefill_tokens == 1_000
    assert made.work(0.505).prefill_tokens == pytest.approx(500)
    assert made.work(9.0).prefill_tokens == pytest.approx(100)
    made.first_token(running, 9.1)
    work = made.work(9.1)
    assert (work.prefilling, work.prefill_tokens, work.decoding) == (0, 0.0, 1.0)
    assert made.mark().prefilled_tokens == pytest.approx(1_000)


def test_who_decodes_gets_a_token_with_each_step_and_ends_when_it_has_them_all() -> None:
    made = book()
    made.first_token(made.sent(call(), "it", 0.0), 1.0)
    assert made.work(1.0).ends_s == pytest.approx([2.0])
    assert made.work(1.4).ends_s == pytest.approx([2.0])


def test_a_prompt_behind_holds_up_those_that_decode_and_begins_when_it_is_prefilled() -> None:
    made = book()
    made.first_token(made.sent(call(), "it", 0.0), 1.0)
    made.sent(call(), "it", 1.4)
    ends_s = made.work(1.4).ends_s
    assert ends_s == pytest.approx([3.0, 1.4 + 1.01 + 1.01], abs=0.02)


def test_answers_in_one_piece_begin_when_their_prompt_must_be_done() -> None:
    made = book()
    made.sent(call(stream=False), "it", 0.0)
    assert made.work(0.5).decoding == 0
    assert made.work(1.1).decoding == 1
    assert made.work(1.1).ends_s == pytest.approx([2.01], abs=0.02)


def test_who_came_before_a_call_that_has_its_first_token_has_begun_too() -> None:
    made = book()
    made.sent(call(50_000, stream=False), "it", 0.0)
    later = made.sent(call(), "it", 0.1)
    made.first_token(later, 0.5)
    assert made.work(0.5).decoding == 2


def test_an_answer_that_is_longer_than_expected_is_taken_to_go_on_for_a_while() -> None:
    made = book()
    made.first_token(made.sent(wants(10, (101, 202)), "it", 0.0), 0.0)
    (late_s,) = made.work(3.0).ends_s
    (later_s,) = made.work(6.0).ends_s
    assert 3.5 < late_s < 5.0
    assert later_s - 6.0 > late_s - 3.0
    limited = wants(10, (101, 202))
    limited.features.max_tokens = 120
    made = book()
    made.first_token(made.sent(limited, "it", 0.0), 0.0)
    assert made.work(3.0).ends_s == pytest.approx([3.005])


def test_slack_is_what_a_promise_leaves() -> None:
    made = book()
    made.first_token(made.sent(call(rules={"slo_tpot_s": 0.020}), "it", 0.0), 1.0)
    made.first_token(made.sent(call(1, rules={"slo_complete_s": 10.0}), "it", 1.0), 1.0)
    made.first_token(made.sent(call(1), "it", 1.0), 1.0)
    by_tokens, by_end = made.work(1.0).protected
    assert by_tokens.slack_s == pytest.approx(100 * 0.020 - 1.0)
    assert by_end.slack_s == pytest.approx(8.0, abs=0.02)
    assert made.work(1.5).protected[0].slack_s == pytest.approx(by_tokens.slack_s), "time itself costs nothing"
    made.sent(call(500), "it", 1.5)
    assert made.work(1.5).protected[0].slack_s == pytest.approx(by_tokens.slack_s - 0.5)


def test_a_promise_of_who_has_not_begun_is_kept_in_mind() -> None:
    made = book()
    made.sent(call(rules={"slo_tpot_s": 0.020}), "it", 0.0)
    made.sent(call(stream=False, rules={"slo_tpot_s": 0.020}), "it", 0.0)
    (protected,) = made.work(0.0).protected
    assert protected.slack_s == pytest.approx(0.010 * 101)


def test_sequences_of_others_slow_the_clock() -> None:
    made = book()
    made.pace = Pace(step_s=0.010, sequence_s=0.010, prefill_token_s=1 / 1_000, step_tokens=1_000)
    running = made.sent(call(1), "it", 0.0)
    made.first_token(running, 0.0)
    made.beside = 2.0
    made.work(0.4)
    assert made.mark().steps == pytest.approx(10.0)
    assert made.mark().row_steps == pytest.approx(30.0)


def test_prompts_of_late_fade() -> None:
    made = book()
    made.ended(made.sent(call(2_000, stream=False), "it", 0.0), 2.02)
    assert made.work(2.02).prefill_0_1 == pytest.approx(0.4, abs=0.1)
    assert made.work(22.0).prefill_0_1 < 0.01


def test_an_event_that_comes_twice_or_too_late_changes_nothing() -> None:
    made = book()
    running = made.sent(call(), "it", 0.0)
    made.first_token(running, 1.0)
    made.first_token(running, 1.1)
    assert made.work(1.1).decoding == 1
    made.ended(running, 1.2)
    made.ended(running, 1.2)
    made.first_token(running, 1.3)
    assert (len(made), made.work(1.3).decoding) == (0, 0)


events = st.lists(
    st.tuples(
        st.sampled_from(("sent", "first", "end")),
        st.integers(0, 5),
        st.floats(0, 3),
        st.booleans(),
        st.integers(1, 5_000),
    ),
    max_size=60,
)


@given(events)
def test_whatever_happens_the_books_balance(happened: list[tuple[str, int, float, bool, int]]) -> None:
    made, now_s, open_ = book(), 0.0, []
    for what, which, later_s, stream, tokens in happened:
        now_s += later_s
        if what == "sent":
            open_.append(made.sent(call(tokens, 1 + tokens % 300, stream=stream), "it", now_s))
        elif open_ and what == "first":
            made.first_token(open_[which % len(open_)], now_s)
        elif open_:
            made.ended(open_.pop(which % len(open_)), now_s)
        work = made.work(now_s)
        assert len(made) == len(open_) == work.decoding + work.prefilling == len(work.ends_s)
        assert list(work.ends_s) == sorted(work.ends_s)
        assert all(now_s <= end_s < math.inf for end_s in work.ends_s)
        assert 0.0 <= work.prefill_tokens <= sum(one.uncached_tokens for one in open_)
        assert 0.0 <= work.prefill_0_1 <= 1.0
    for one in open_:
        made.ended(one, now_s)
    assert made.work(now_s)[1:4] == (0.0, 0, 0.0)

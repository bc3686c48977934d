"""What an answer teaches of the pace: of each time what happened in it, and no more than was counted."""

from __future__ import annotations

import pytest

from router.fleet.evidence import Answered, seen_of, sightings
from router.fleet.running import Mark, Running
from tests.policies.test_outlook import wants

BEGAN = Mark(10.0, 100.0, 200.0, 1_000.0)
FIRST = Mark(10.5, 110.0, 225.0, 1_400.0)
END = Mark(12.5, 210.0, 525.0, 2_000.0)
STEP_TOKENS = 512


def running(*, stream: bool = True, first: bool = True, cached: int = 0) -> Running:
    one = Running(wants(600, stream=stream, cached_tokens={"it": cached}), "it", BEGAN)
    one.decoding_beside = 2.0
    if first:
        one.begins(FIRST)
    return one


def taught(one: Running, answered: Answered, first_s: float | None = None) -> list[tuple[float, ...]]:
    seen = seen_of(one, END, first_s, answered)
    found = sightings(one, END, seen, answered, STEP_TOKENS)
    return [(each.seconds, each.calls, each.tokens, each.steps, each.row_steps) for each in found]


def test_a_stream_teaches_its_first_token_and_its_decode() -> None:
    first, decode = taught(running(), Answered(12.5, 600, 0, 101), 10.5)
    assert first == pytest.approx((0.5, 1.0, 600.0, 2.5, 5.0))
    assert decode == pytest.approx((2.0, 0.0, 600.0, 100.0, 300.0)), "600 tokens of others came in between"


def test_what_the_engine_had_in_its_cache_was_not_prefilled() -> None:
    first, _ = taught(running(cached=100), Answered(12.5, 640, 512, 101), 10.5)
    assert first[2] == 128.0
    unsaid, _ = taught(running(cached=100), Answered(12.5, 640, None, 101), 10.5)
    assert unsaid[2] == 540.0


def test_times_that_the_engine_has_measured_tell_of_an_answer_in_one_piece() -> None:
    answered = Answered(None, 600, 0, 101, prompt_s=0.4, decode_s=2.0)
    first, timed, decode = taught(running(stream=False), answered)
    assert first[:3] == pytest.approx((0.5, 1.0, 600.0))
    assert timed == pytest.approx((0.4, 0.0, 600.0, 2.0, 4.0))
    assert decode[0] == pytest.approx(2.0)


def test_without_these_the_whole_is_all_there_is() -> None:
    (whole,) = taught(running(stream=False), Answered(None, 600, 0, 101))
    assert whole == pytest.approx((2.5, 1.0, 1_000.0, 102.5, 102.5 * 325 / 110))
    assert taught(running(stream=False), Answered(None, 600, 0, None)) == [], "nobody counted the answer"


def test_a_call_that_found_no_place_says_nothing_of_prompts() -> None:
    late = running()
    late.had_place = False
    (decode,) = taught(late, Answered(12.5, 600, 0, 101), 10.5)
    assert decode[1] == 0.0
    late = running(stream=False)
    late.had_place = False
    assert taught(late, Answered(None, 600, 0, 101)) == []


def test_short_answers_say_nothing_of_steps() -> None:
    assert len(taught(running(), Answered(10.6, 600, 0, 3), 10.5)) == 1
    assert seen_of(running(), END, 10.5, Answered(10.5, 600, 0, 1)).tpot_s is None


def test_counts_that_are_only_estimated_and_clients_that_are_not_ours_make_it_less_sure() -> None:
    answered, one = Answered(12.5, 600, 0, 101), running()
    sure = sightings(one, END, seen_of(one, END, 10.5, answered), answered, STEP_TOKENS)
    one.others = 1.0
    shared = sightings(one, END, seen_of(one, END, 10.5, answered), answered, STEP_TOKENS)
    one.others = 0.0
    uncounted = sightings(one, END, seen_of(one, END, 10.5, answered), Answered(12.5, None, None, 101), STEP_TOKENS)
    assert sure[0].noise < uncounted[0].noise
    assert [each.noise for each in sure] < [each.noise for each in shared]


def test_answers_side_by_side_have_their_tokens_together() -> None:
    ask = wants(600)
    ask.features.choices = 2
    pair = Running(ask, "it", BEGAN)
    pair.begins(FIRST)
    assert seen_of(pair, END, 10.5, Answered(12.5, 600, 0, 202)).tpot_s == pytest.approx(0.02)

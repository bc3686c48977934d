"""Room, load, reserves and ties."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.api import Lane, Wait
from policies.scoring import NOMINAL_CAP, draw, least_loaded, load, open_in_lane, stay_or_least_loaded, wait
from tests.policies.makers import ask, batch, chances, desk, rack


def test_load_is_relative_to_cap_and_weight() -> None:
    assert load(desk()) == 0
    assert load(desk(own=1)) == 0.5
    assert load(desk(own=1, foreign=0.9)) == 1
    assert load(desk(own=2, queued=1.2)) == 1.5
    assert load(desk(own=1, weight=2.0)) == 0.25
    assert load(rack(own=NOMINAL_CAP)) == 1


def test_the_least_full_is_chosen_not_the_one_with_fewest_calls() -> None:
    small, large = desk("small", cap=2, own=1), desk("large", cap=8, own=2)

    assert least_loaded([small, large], 0.0) is large


@given(st.lists(st.sampled_from([0.1, 1.0, 2.5]), min_size=1, max_size=6), chances)
def test_a_draw_always_gives_one_of_the_choices(weights: list[float], chance: float) -> None:
    choices = [desk(f"b{index}", weight=weight) for index, weight in enumerate(weights)]

    assert draw(choices, chance) in choices


def test_a_draw_survives_the_rounding_of_sums() -> None:
    choices = [desk(f"b{index}", weight=0.1) for index in range(3)]

    assert draw(choices, 1.0) is choices[-1]


def test_a_conversation_stays_where_it_was_while_the_gap_allows() -> None:
    home, other = desk("home", cap=4, own=2), desk("other", cap=4)

    assert stay_or_least_loaded(ask(home="home"), [home, other], 0.0, max_load_gap=0.5) is home
    assert stay_or_least_loaded(ask(home="home"), [home, other], 0.0, max_load_gap=0.4) is other


def test_the_reserve_is_one_of_the_lane_not_of_each_backend() -> None:
    both = [desk("a", cap=1), desk("b", cap=1)]

    assert open_in_lane(batch(), [*both, rack()], Lane.LATENCY) == both
    assert open_in_lane(batch(), [desk("a", cap=1, own=1), both[1], rack()], Lane.LATENCY) == []


def test_an_overfull_backend_does_not_eat_the_free_slots_of_others() -> None:
    overfull, free = desk("a", own=5), desk("b")

    assert open_in_lane(batch(), [overfull, free, rack()], Lane.LATENCY) == [free]


def test_a_lane_with_a_backend_without_cap_has_always_enough_left() -> None:
    full, boundless = desk("a", own=2), desk("b", cap=None, own=50)

    assert open_in_lane(batch(), [full, boundless], Lane.LATENCY) == [boundless]


@pytest.mark.parametrize("keep_free", [1, 5])
def test_a_reserve_as_large_as_the_lane_closes_it_to_a_class_that_has_another(keep_free: int) -> None:
    assert open_in_lane(batch(keep_free), [desk(cap=1), rack()], Lane.LATENCY) == []


@pytest.mark.parametrize("keep_free", [1, 5])
def test_a_reserve_as_large_as_the_only_lane_lets_one_call_run_when_nothing_else_does(keep_free: int) -> None:
    idle = desk(cap=1)

    assert open_in_lane(batch(keep_free), [idle], Lane.LATENCY) == [idle]
    assert open_in_lane(batch(keep_free), [desk(cap=1, own=1)], Lane.LATENCY) == []
    assert open_in_lane(batch(keep_free), [desk(cap=1, foreign=1.0)], Lane.LATENCY) == []
    assert open_in_lane(batch(keep_free=5), [desk(cap=4, own=1)], Lane.LATENCY) == []


def test_a_lane_that_the_class_excludes_is_no_other_lane() -> None:
    idle = desk(cap=1)
    asked = ask(lanes=(Lane.LATENCY,), keep_free={Lane.LATENCY: 1})

    assert open_in_lane(asked, [idle, rack()], Lane.LATENCY) == [idle]


def test_less_than_half_a_foreign_call_takes_no_slot() -> None:
    assert open_in_lane(ask(), [desk(own=1, foreign=0.4)], Lane.LATENCY) != []
    assert open_in_lane(ask(), [desk(own=1, foreign=0.6)], Lane.LATENCY) == []


def test_ties_are_drawn() -> None:
    views = [desk("a"), desk("b"), desk("c", own=1)]

    assert Counter(least_loaded(views, step / 10).name for step in range(10)) == {"a": 5, "b": 5}


def test_the_reason_to_wait_tells_full_from_reserved_from_absent() -> None:
    assert wait(ask(), []) == Wait("no_backend_in_lanes")
    assert wait(ask(), [desk(own=2)]) == Wait("no_room")
    assert wait(batch(), [desk(own=1)]) == Wait("slots_reserved")

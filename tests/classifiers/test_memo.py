"""What was found in texts that come again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from classifiers.estimate import estimate_repeated, estimate_tokens
from classifiers.memo import MOST, Memo
from classifiers.shape import shape_of


def test_what_is_new_is_not_known() -> None:
    assert Memo[str]().get(1) is None


def test_what_was_found_is_known_again() -> None:
    memo = Memo[str]()
    memo.keep(1, "one")
    assert memo.get(1) == "one"


def test_it_does_not_grow() -> None:
    memo = Memo[int]()
    for number in range(3 * MOST + 7):
        memo.keep(number, number)
        assert len(memo) <= MOST
    assert memo.get(3 * MOST + 6) == 3 * MOST + 6


@given(st.text(max_size=2000))
def test_a_text_that_comes_again_has_the_tokens_of_its_first_time(text: str) -> None:
    assert estimate_repeated(text) == estimate_repeated(text) == estimate_tokens(text)


@given(st.text(max_size=2000), st.text(max_size=200))
def test_a_system_text_that_comes_again_is_seen_as_the_first_time(system: str, last: str) -> None:
    first = shape_of({}, system=[system], last=[last])
    assert shape_of({}, system=[system], last=[last]) == first
    assert shape_of({}, system=["", system], last=[last]).system_chars == len(system) + 1

"""The conditions of rules: what holds, what does not, and how mistakes are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.api import Features
from classifiers.arrival import Arrival
from classifiers.conditions import (
    CLIENT_FLAGS,
    CLIENT_NUMBERS,
    COUNTS,
    FLAGS,
    KEYS,
    NUMBERS,
    WORDS,
    ConditionError,
    compile_condition,
)


def holds(conditions: Mapping[str, object], **call: Any) -> bool:
    return compile_condition(conditions)(Features(**{"surface": "openai_chat", **call}))


def error_of(conditions: Mapping[str, object]) -> ConditionError:
    with pytest.raises(ConditionError) as caught:
        compile_condition(conditions)
    return caught.value


@pytest.mark.parametrize(
    ("comparison", "matching", "other"),
    [
        (">6000", 6001, 6000),
        (">=2", 2, 1),
        ("<100", 99, 100),
        ("<=5", 5, 6),
        ("==1", 1, 2),
        ("!=1", 2, 1),
        ("100..500", 100, 99),
        ("100..500", 500, 501),
        ("100 .. 500", 300, 0),
        (" > 7 ", 8, 7),
        ("7", 7, 8),
        (7, 7, 8),
        ("-5..5", -5, -6),
        ("<0", -1, 0),
    ],
)
@pytest.mark.parametrize("key", NUMBERS)
def test_numbers_are_compared(key: str, comparison: object, matching: int, other: int) -> None:
    assert holds({key: comparison}, **{key: matching})
    assert not holds({key: comparison}, **{key: other})


@given(value=st.integers(-1000, 1000), bound=st.integers(-1000, 1000))
def test_a_comparison_and_its_opposite_never_agree(value: int, bound: int) -> None:
    for one, opposite in ((">", "<="), (">=", "<"), ("==", "!=")):
        assert holds({"priority": f"{one}{bound}"}, priority=value) != holds(
            {"priority": f"{opposite}{bound}"}, priority=value
        )


@pytest.mark.parametrize("key", COUNTS)
def test_true_means_any_of_a_count_and_false_none(key: str) -> None:
    assert holds({key: True}, **{key: 3})
    assert not holds({key: True}, **{key: 0})
    assert holds({key: False}, **{key: 0})
    assert not holds({key: False}, **{key: 3})


@pytest.mark.parametrize(("key", "name"), CLIENT_NUMBERS.items())
def test_what_the_client_did_before_is_compared(key: str, name: str) -> None:
    def came(value: int) -> Arrival:
        values: dict[str, Any] = {name: value}
        return replace(Arrival(), **values)

    assert holds({key: ">50"}, arrival=came(51))
    assert not holds({key: ">50"}, arrival=came(50))
    assert holds({key: "2..4"}, arrival=came(4))
    assert not holds({key: "2..4"}, arrival=Arrival())


@pytest.mark.parametrize("key", CLIENT_FLAGS)
def test_what_the_client_did_before_is_true_or_false(key: str) -> None:
    values: dict[str, Any] = {key: True}
    assert holds({key: True}, arrival=replace(Arrival(), **values))
    assert not holds({key: True}, arrival=Arrival())
    assert holds({key: False}, arrival=Arrival())
    assert not holds({key: False}, arrival=replace(Arrival(), **values))
    assert "expected true or false" in error_of({key: 1}).message


@pytest.mark.parametrize("key", [*CLIENT_NUMBERS, *CLIENT_FLAGS])
@pytest.mark.parametrize("wanted", [True, False, ">=0", "<9", 0])
def test_where_nobody_keeps_count_nothing_is_matched(key: str, wanted: object) -> None:
    if isinstance(wanted, bool) == (key in CLIENT_FLAGS):
        assert not holds({key: wanted})


@pytest.mark.parametrize("key", ["max_tokens", "priority"])
@pytest.mark.parametrize("comparison", [">0", "<=0", "!=7", "0..9", 0])
def test_a_number_that_was_not_given_matches_no_comparison(key: str, comparison: object) -> None:
    assert not holds({key: comparison})


@pytest.mark.parametrize("key", FLAGS)
def test_flags_are_true_or_false(key: str) -> None:
    assert holds({key: True}, **{key: True})
    assert not holds({key: True}, **{key: False})
    assert holds({key: False}, **{key: False})
    assert not holds({key: False}, **{key: True})


WORDS_OF_FEATURES = [word for word in WORDS if word != "user_agent"]


@pytest.mark.parametrize("key", WORDS_OF_FEATURES)
def test_words_are_matched_by_patterns_that_ignore_case(key: str) -> None:
    call = {key: "Qwen/Qwen3-4B"}

    assert holds({key: "qwen/qwen3-4b"}, **call)
    assert holds({key: "qwen*"}, **call)
    assert holds({key: "*4?"}, **call)
    assert holds({key: ["llama*", "*qwen3*"]}, **call)
    assert not holds({key: "qwen"}, **call)
    assert not holds({key: "*4"}, **call)
    assert not holds({key: ["llama*", "mistral*"]}, **call)


@pytest.mark.parametrize("key", WORDS_OF_FEATURES)
def test_a_word_that_is_empty_matches_not_even_a_star(key: str) -> None:
    assert not holds({key: "*"}, **{key: ""})


def test_a_call_without_a_model_matches_no_pattern() -> None:
    assert not holds({"model": "*"}, model=None)


def test_brackets_in_a_pattern_are_ordinary_characters() -> None:
    assert holds({"model": "chat[1]"}, model="chat[1]")
    assert not holds({"model": "chat[1]"}, model="chat1")
    assert holds({"model": "a.b"}, model="a.b")
    assert not holds({"model": "a.b"}, model="axb")


def test_the_user_agent_is_that_header() -> None:
    assert holds({"user_agent": ["curl*", "openai/*"]}, headers={"user-agent": "OpenAI/Python 1.55"})
    assert not holds({"user_agent": "curl*"}, headers={"user-agent": "OpenAI/Python 1.55"})
    assert not holds({"user_agent": "*"})


def test_headers_are_matched_whatever_the_case_of_name_and_value() -> None:
    assert holds({"header": {"X-Team": "nightly*"}}, headers={"x-team": "Nightly-7"})
    assert not holds({"header": {"X-Team": "nightly*"}}, headers={"x-team": "daily"})
    assert not holds({"header": {"X-Team": "*"}}, headers={})
    assert holds({"header": {"x-shard": 7}}, headers={"x-shard": "7"})


def test_a_header_can_be_asked_to_be_there_or_not() -> None:
    assert holds({"header": {"x-debug": True}}, headers={"x-debug": ""})
    assert not holds({"header": {"x-debug": True}})
    assert holds({"header": {"x-debug": False}})
    assert not holds({"header": {"x-debug": False}}, headers={"x-debug": "1"})


def test_all_conditions_must_hold() -> None:
    conditions = {"header": {"x-team": "nightly", "x-debug": False}, "prompt_tokens": ">6000", "stream": False}
    call: dict[str, Any] = {"headers": {"x-team": "nightly"}, "prompt_tokens": 7000}

    assert holds(conditions, **call)
    assert not holds(conditions, **{**call, "stream": True})
    assert not holds(conditions, **{**call, "prompt_tokens": 10})
    assert not holds(conditions, **{**call, "headers": {"x-team": "nightly", "x-debug": "1"}})


def test_no_condition_always_holds_and_says_so() -> None:
    assert holds({})
    assert str(compile_condition({})) == "always"


def test_a_condition_reads_like_its_yaml() -> None:
    condition = compile_condition(
        {"header": {"x-team": "nightly", "x-debug": False}, "model": ["qwen*", "llama"], "prompt_tokens": ">6000"}
    )

    assert (
        str(condition) == "header.x-team: nightly, header.x-debug: false, model: [qwen*, llama], prompt_tokens: >6000"
    )


def test_the_first_part_that_does_not_hold_is_named() -> None:
    condition = compile_condition({"stream": True, "tools": ">=1", "turns": 1})

    assert condition.unmet(Features(surface="openai_chat", stream=True)) == "tools: >=1"
    assert condition.unmet(Features(surface="openai_chat", stream=True, tools=1, turns=1)) == ""


def test_an_unknown_key_is_refused_with_a_suggestion() -> None:
    error = error_of({"promt_tokens": ">6000"})

    assert error.key == "promt_tokens"
    assert "did you mean prompt_tokens?" in error.message
    assert all(key in error.message for key in KEYS)
    assert str(error) == f"promt_tokens: {error.message}"
    assert isinstance(error, ValueError)


def test_a_key_that_resembles_nothing_is_refused_with_the_list() -> None:
    error = error_of({"zzzzzz": 1})

    assert "did you mean" not in error.message
    assert "known: header, model" in error.message


@pytest.mark.parametrize(
    ("conditions", "key", "words"),
    [
        ({"prompt_tokens": "lots"}, "prompt_tokens", 'such as ">6000"'),
        ({"prompt_tokens": "> 6k"}, "prompt_tokens", "got > 6k"),
        ({"prompt_tokens": ">" + "9" * 5000}, "prompt_tokens", "expected a number"),
        ({"prompt_tokens": True}, "prompt_tokens", "got true"),
        ({"prompt_tokens": 6.5}, "prompt_tokens", "got 6.5"),
        ({"prompt_tokens": None}, "prompt_tokens", "got null"),
        ({"tools": [1]}, "tools", "true (any); got [1]"),
        ({"turns": "5..2"}, "turns", "write the smaller one first"),
        ({"stream": "yes"}, "stream", "expected true or false, got yes"),
        ({"model": 4.5}, "model", "expected a pattern"),
        ({"model": True}, "model", "got true"),
        ({"model": ""}, "model", "expected a pattern"),
        ({"model": []}, "model", "empty list"),
        ({"model": ["a", None]}, "model", "got null"),
        ({"user_agent": {"a": "b"}}, "user_agent", "expected a pattern"),
        ({"header": "x-team"}, "header", "expected names and patterns"),
        ({"header": {}}, "header", "expected names and patterns"),
        ({"header": {7: "x"}}, "header.7", "expected the name of a header"),
        ({"header": {"x-team": 1.5}}, "header.x-team", "expected a pattern"),
        ({"header": {"Authorization": True}}, "header.Authorization", "secret"),
        ({"header": {"api-key": "*"}}, "header.api-key", "secret"),
    ],
)
def test_a_value_that_means_nothing_is_refused_with_its_path(
    conditions: Mapping[str, object], key: str, words: str
) -> None:
    error = error_of(conditions)

    assert error.key == key
    assert words in error.message


def test_a_pattern_with_many_stars_stays_quick_on_a_long_value() -> None:
    assert not holds({"model": "*a" * 20 + "b"}, model="a" * 60_000)

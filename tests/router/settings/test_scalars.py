"""Bare words and variables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.settings.scalars import Substituted, VariableError, bare, settled, substitute


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("0", 0), ("-12", -12), ("+3", 3)],
)
def test_words_of_yaml_1_2_have_their_meaning(text: str, value: object) -> None:
    assert bare(text) is value or bare(text) == value


@pytest.mark.parametrize(("text", "value"), [("1.5", 1.5), ("-0.25", -0.25), ("1e3", 1000.0)])
def test_decimal_numbers_are_numbers(text: str, value: float) -> None:
    assert bare(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "no",
        "on",
        "off",
        "y",
        "n",
        "tRUE",
        "0123",
        "0o17",
        "0x1F",
        "0b1",
        "1_0",
        "22:22",
        "1:30:00",
        "2024-01-31",
        ".inf",
        ".nan",
        ".5",
        "5.",
        "1.2.3",
        "<<",
        "=",
        "9" * 19,
        "9" * 10_000,
        "٣",
        "1e9999",
        "1e999",
    ],
)
def test_what_other_readers_of_yaml_twist_stays_text(text: str) -> None:
    assert bare(text) == text


def test_variables_are_replaced_anywhere_in_a_text() -> None:
    assert substitute("http://${HOST}:${PORT}/v1", {"HOST": "h", "PORT": "1"}) == "http://h:1/v1"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${X:-d}", "d"),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY}", ""),
        ("${SET:-d}", "s"),
        ("${X:-}", ""),
        ("${X:-a:-b}", "a:-b"),
    ],
)
def test_a_default_holds_where_the_variable_is_missing_or_empty(text: str, value: str) -> None:
    assert substitute(text, {"EMPTY": "", "SET": "s"}) == value


@pytest.mark.parametrize(
    ("text", "value"), [("$${X}", "${X}"), ("$5", "$5"), ("$X", "$X"), ("a$", "a$"), ("$$", "$$"), ("{X}", "{X}")]
)
def test_a_dollar_without_braces_or_doubled_is_a_dollar(text: str, value: str) -> None:
    assert substitute(text, {}) == value


def test_a_missing_variable_is_named() -> None:
    with pytest.raises(VariableError, match=r"LLM_KEY is not set; set it, or write \$\{LLM_KEY:-default\}"):
        substitute("${LLM_KEY}", {})


@pytest.mark.parametrize("text", ["${", "${}", "${1X}", "${A-B}", "${A:+b}", "${A", "${ A }"])
def test_other_shell_forms_are_refused(text: str) -> None:
    with pytest.raises(VariableError, match="expected"):
        substitute(text, {"A": "1"})


def test_a_value_from_outside_is_not_searched_for_more_variables() -> None:
    assert substitute("${A}", {"A": "${B} $${C}", "B": "no"}) == "${B} $${C}"


def test_replaced_text_becomes_a_number_where_text_is_not_wanted() -> None:
    found = settled({"a": [Substituted("5"), Substituted("true"), Substituted("x"), "5"], "b": 1})
    assert found == {"a": [5, True, "x", "5"], "b": 1}


@given(st.text(), st.dictionaries(st.sampled_from(["A", "B", "C_1"]), st.text()))
def test_substitution_either_works_or_says_why(text: str, env: dict[str, str]) -> None:
    said = ""
    try:
        substitute(text, env)
    except VariableError as error:
        said = str(error)
    assert not said or "expected ${" in said or "is not set" in said

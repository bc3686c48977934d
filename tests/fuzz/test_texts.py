"""Texts: settings, conditions of rules, metrics of servers."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.api import Features
from classifiers.conditions import KEYS, compile_condition
from router.engines.prometheus_text import samples
from router.settings.document import MOST_CHARACTERS
from router.settings.load import SettingsError, parse
from router.settings.scalars import VariableError, substitute
from tests.fuzz.budget import fuzzed
from tests.fuzz.cost import is_linear, peak_bytes
from tests.fuzz.pieces import documents, mutated
from tests.fuzz.seeds import (
    CONDITION_FRAGMENTS,
    CONDITIONS,
    SCRAPE_FRAGMENTS,
    SCRAPES,
    SETTINGS,
    SETTINGS_FRAGMENTS,
)
from tests.fuzz.texts import check_condition, check_scalars, check_settings, fuzz_conditions, fuzz_scrapes

KIB: Final = 2**10
BACKENDS: Final = "\nbackends: [{name: a, url: http://127.0.0.1:1}]\n"


def text_of(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


@fuzzed(60)
@given(mutated(SETTINGS, SETTINGS_FRAGMENTS).map(text_of))
def test_a_file_that_is_nearly_right_gives_settings_or_problems(text: str) -> None:
    check_settings(text)


@fuzzed(100)
@given(st.lists(st.sampled_from(SETTINGS_FRAGMENTS) | st.binary(max_size=4), max_size=30).map(b"".join).map(text_of))
def test_any_text_gives_settings_or_problems(text: str) -> None:
    check_settings(text)
    check_settings(f"{BACKENDS}classify:\n  rules:\n    - if: {text}\n      then: ttft\n")


@fuzzed(150)
@given(st.lists(st.sampled_from(["${", "$", "{", "}", ":-", "A", "B", "_", "1", "ms", "MiB", "-", "."])).map("".join))
def test_any_word_is_read_or_refused(text: str) -> None:
    check_scalars(text)


PATTERNS: Final = st.text("*?[]!ab-\n\\.é", max_size=12) | st.sampled_from([">5", "1..2", "2..1", "==x", "٣", ">=-0"])
WANTED: Final = st.recursive(
    PATTERNS | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PATTERNS, inner, max_size=3),
    max_leaves=5,
)


@fuzzed(150)
@given(st.dictionaries(st.sampled_from(KEYS) | PATTERNS, WANTED, max_size=4))
def test_any_condition_is_compiled_or_refused(wanted: dict[str, Any]) -> None:
    check_condition(wanted)


@fuzzed(100)
@given(mutated(CONDITIONS, CONDITION_FRAGMENTS))
def test_a_condition_that_is_nearly_right_is_compiled_or_refused(raw: bytes) -> None:
    fuzz_conditions(raw)


@fuzzed(150)
@given(st.sampled_from([b"\0", b"\1"]), mutated(SCRAPES, SCRAPE_FRAGMENTS))
def test_any_scrape_is_read_as_far_as_it_can_be(which: bytes, text: bytes) -> None:
    fuzz_scrapes(which + text)


@fuzzed(60)
@given(documents(["backends", "classify", "rules", "if", "then", "keys", "cors", "name", "url"], [[], {}, "ttft"]))
def test_any_tree_gives_settings_or_problems(tree: Any) -> None:
    check_settings(f"{BACKENDS}classify: {tree!r}")
    check_settings(f"{BACKENDS}keys: {tree!r}")


# --- cost

UNITS: Final = [
    "a: 1\n",
    "- a\n",
    "[",
    "{",
    "'",
    '"',
    "&a ",
    "*a ",
    "${A}",
    "${A:-",
    "${",
    "$${",
    ": ",
    "? ",
    "- ",
    "#",
    "\n",
    "\\",
    "a, ",
    "a: {b: c}\n",
    "<<: *a\n",
    "!!x ",
    "|\n",
    "\t",
    "- [a, b]\n",
    "x",
    "é",
    '"a" ',
    "backends: []\n",
    "- {a: 1}\n",
]


@pytest.mark.parametrize("start", ["", "a: ", "backends:\n", 'a: "', "a: &a {b: c}\n"])
@pytest.mark.parametrize("unit", UNITS)
def test_settings_are_read_in_linear_time(start: str, unit: str) -> None:
    def make(size: int) -> bytes:
        return (start + unit * (size // len(unit))).encode()

    def work(data: bytes) -> None:
        try:
            parse(data.decode(), "f.yaml", {"A": "b"})
        except SettingsError as error:
            assert error.problems

    assert is_linear(make, work, largest_bytes=2**13)


@pytest.mark.parametrize("unit", ["${A}", "${A:-", "${A:-b}", "${", "$${", "$", "${_"])
def test_variables_are_replaced_in_linear_time(unit: str) -> None:
    def work(data: bytes) -> None:
        try:
            substitute(data.decode(), {"A": "b"})
        except VariableError as error:
            assert str(error)

    assert is_linear(lambda size: (unit * (size // len(unit))).encode(), work)


def test_aliases_of_aliases_take_no_memory() -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    text = "\n".join(["a0: &a0 [x]", *levels])
    assert peak_bytes(lambda: check_settings(text)) < 32 * KIB * KIB


def test_a_file_that_is_too_large_takes_memory_by_its_size() -> None:
    text = "a: " * MOST_CHARACTERS
    assert peak_bytes(lambda: check_settings(text)) < 10 * len(text)


@pytest.mark.parametrize(
    "pattern", ["*a*a*a*a*a*b", "*?*?*?*?b", "**********b", "a*" * 30, "*[a-z]*[a-z]*", "?*" * 20 + "b"]
)
@pytest.mark.parametrize("unit", ["a", "ab", "\n", "*", "[a-z]"])
def test_patterns_are_matched_in_linear_time(pattern: str, unit: str) -> None:
    conditions = [compile_condition({"header": {"x-team": pattern}}), compile_condition({"model": [pattern, pattern]})]

    def work(data: bytes) -> None:
        text = data.decode()
        for condition in conditions:
            condition(Features(surface="openai_chat", model=text, headers={"x-team": text}))

    assert is_linear(lambda size: (unit * (size // len(unit))).encode(), work, largest_bytes=2**17)


@pytest.mark.parametrize("start", [b"", b"a{", b'a{b="'])
@pytest.mark.parametrize(
    "unit", [b"a", b"a ", b" ", b"a{", b'a{b="', b'a{b="c",', b"\n", b'b="c",', b"\\", b"a 1\n", b"a{} 1\n", b",", b'"']
)
def test_scrapes_are_read_in_linear_time(start: bytes, unit: bytes) -> None:
    assert is_linear(
        lambda size: start + unit * (size // len(unit)), lambda text: samples(text, "a"), largest_bytes=2**18
    )

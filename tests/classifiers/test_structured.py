"""Dictionaries of structured header fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.structured import LONGEST_CHARS, read_dictionary


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("", {}),
        ("   ", {}),
        ("u=5, i", {"u": "5", "i": "?1"}),
        ("u=5,i", {"u": "5", "i": "?1"}),
        ("  u=5 \t,\t i  ", {"u": "5", "i": "?1"}),
        ("i=?0", {"i": "?0"}),
        ("i;a;b=2, u=1;q=0.5", {"i": "?1", "u": "1"}),
        ("u=1, u=2", {"u": "2"}),
        ("a=-1.25, *b.c-d_e=tok/en:x", {"a": "-1.25", "*b.c-d_e": "tok/en:x"}),
        ('a="x, \\"y\\" \\\\"', {"a": '"x, \\"y\\" \\\\"'}),
        ("a=:aGk=:, b=@1700000000", {"a": ":aGk=:", "b": "@1700000000"}),
        ('a=%"f%c3%bc"', {"a": '%"f%c3%bc"'}),
        ("a=(1 2;x  three), b=(), c", {"a": "(1 2;x  three)", "b": "()", "c": "?1"}),
    ],
)
def test_a_dictionary_is_read(text: str, members: dict[str, str]) -> None:
    assert read_dictionary(text) == members


@pytest.mark.parametrize(
    "text",
    [
        "u=",
        "=5",
        "U=5",
        "u=5,",
        "u=5,,i",
        "u=5 i",
        "u=5;",
        "u =5",
        "i=?2",
        "u=1.",
        "u=1.2345",
        "u=1234567890123456",
        'a="x',
        'a="\\x"',
        "a=(1",
        "a=(1 ,2)",
        "ü=1",
        'a="ü"',
        "u=5\n",
        "a=" + "b" * LONGEST_CHARS,
    ],
)
def test_one_malformed_member_makes_the_whole_void(text: str) -> None:
    assert read_dictionary(text) is None


@given(st.text(alphabet='ui=?01,; ()"\\:@%.-', max_size=40))
def test_reading_never_fails(text: str) -> None:
    read_dictionary(text)


@pytest.mark.parametrize("piece", ["(", "( ", "a ", ";a", '"', "a=(a ", ", ", "a=1;a=1 "])
def test_a_hostile_field_is_read_in_no_time(piece: str) -> None:
    read_dictionary(("a=(" + piece * LONGEST_CHARS)[:LONGEST_CHARS])

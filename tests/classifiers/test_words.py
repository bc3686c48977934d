"""Words in groups: whole words, once each, in any case and script."""

from __future__ import annotations

import pytest

from classifiers.words import GROUP, NAMES, count, first_word, words_of


@pytest.mark.parametrize(
    ("text", "group", "found"),
    [
        ("Please help me with my tax return", "person", 2),  # me, my
        ("Please help me", "courtesy", 1),
        ("Return JSON only.", "demand", 3),
        ("PLEASE, please: please!", "courtesy", 1),
        ("Ich möchte bitte ein Bier", "person", 1),
        ("Ich MÖCHTE bitte ein Bier", "wish", 1),
        ("Спасибо, как дела?", "courtesy", 1),
        ("Use the tools step by step", "agent", 2),
        ("", "agent", 0),
    ],
)
def test_words_of_a_group_are_counted_once_each(text: str, group: str, found: int) -> None:
    assert count(text)[GROUP[group]] == found


def test_parts_of_words_do_not_count() -> None:
    assert sum(count("toolsmith stepson jsonify")) == 0


def test_a_megabyte_of_words_is_counted_within_a_byte() -> None:
    everything = " ".join(f"{name} label tool json" for name in NAMES)
    assert max(count(everything * 50_000)) < 256


def test_the_first_word_is_freed_from_marks() -> None:
    assert first_word("  **Classify** the ticket") == "classify"
    assert first_word("") == ""


def test_a_group_has_words() -> None:
    assert "classify" in words_of("label")
    assert "weather" not in words_of("label")

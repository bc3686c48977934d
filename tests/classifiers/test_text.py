"""The newest text, measured at its borders."""

from __future__ import annotations

import pytest

from classifiers.text import EMPTY, WINDOW_CHARS, marks_in, text_of


def test_empty_text_is_nothing() -> None:
    assert text_of("") == EMPTY


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("How do I boil an egg?", "opens_question"),
        ("How do I boil an egg?", "ends_question"),
        ("鸡蛋要煮多久？", "ends_question"),
        ("Classify the ticket.\n\nMy card is lost.", "opens_task"),
        ("Classify the ticket.\n\nMy card is lost.", "opening_task"),
        ("My card is lost.\n\nClassify the ticket.", "closing_task"),
        ("My card is lost.\n\nIs it urgent?", "closing_question"),
        ("play some jazz", "opens_small"),
        ('{"id": 7}', "opens_mark"),
        ("Fill in the following:", "ends_colon"),
        ("Q: What is seven times six?\nA:", "ends_label"),
        ("def add(a, b):\n", "ends_line"),
        ("return a +<CURSOR>", "infill"),
        ("the answer is in the car", "ends_word"),
        ("[1, 2, 3]", "ends_bracket"),
    ],
)
def test_how_a_text_opens_and_ends(text: str, field: str) -> None:
    assert getattr(text_of(text), field) is True
    assert getattr(text_of("The weather was fine, and so were we."), field) is False


@pytest.mark.parametrize(
    "token",
    [
        "<fim_prefix>",
        "<fim-middle>",
        "<|fim_suffix|>",
        "<｜fim▁hole｜>",
        "fim_prefix:",
        "<infill>",
        "[infill]",
        "<MID>",
    ],
)
def test_a_token_that_fills_in_the_middle_is_the_mark_of_a_cursor(token: str) -> None:
    assert text_of(f"def add(a, b):\n    return {token}\n").infill is True


@pytest.mark.parametrize(
    "text",
    [
        "Resuma a seguinte notícia em uma frase, a fim de publicar no site.",
        "O filme é ótimo do começo ao fim.",
        "com.acme.wifimanager.ScanError at boot",
        "|fim|início|",
        "What does infill mean for 3D prints?",
        "Describe the infilling of lakes.",
    ],
)
def test_a_word_that_looks_like_such_a_token_is_none(text: str) -> None:
    assert text_of(text).infill is False


def test_lines_are_told_apart() -> None:
    lines = text_of(
        "Thought 1: look\nAction 1: open\nThought 2: read\n- one\n1. two\n(A) three\n    four\nNOTE: five"
    ).lines
    assert (lines.lines, lines.bullets, lines.numbered, lines.lettered, lines.indented) == (8, 1, 1, 1, 1)
    assert (lines.labelled, lines.labels, lines.repeated, lines.agent_labels, lines.shouted) == (4, 3, 2, 2, 1)


def test_a_sentence_with_a_colon_is_no_label() -> None:
    assert text_of("There are a good many of them here: three").lines.labelled == 0


def test_the_middle_of_a_long_text_is_not_looked_at() -> None:
    border = "plain words " * WINDOW_CHARS
    assert text_of(border + "{[<CURSOR>]}" * 50 + border).infill is False
    assert text_of(border + "{[<CURSOR>]}" * 50 + border).marks.code == 0


def test_marks_are_shares_of_characters_in_any_script() -> None:
    assert marks_in("ab12").digits == 0.5
    assert marks_in("字字1").digits == pytest.approx(1 / 3)
    assert marks_in("x={};").code == 0.8
    assert marks_in("").code == 0


def test_half_a_surrogate_pair_is_no_reason_to_fail() -> None:
    assert text_of("cut in an emoji \ud83d").chars == 17

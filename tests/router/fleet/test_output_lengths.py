"""What clients got before changes what is expected of their next answers, and of nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from classifiers.api import Features
from classifiers.lengths import Lengths
from classifiers.marks import Marks
from router.fleet.output_lengths import OutputLengths, shipped


def call(head: int = 1, **fields: Any) -> Features:
    marks = Marks(system=7, head=head, tail=head + 1000)
    return Features(**{"surface": "openai_chat", "prompt_tokens": 50, "last_tokens": 40, "marks": marks, **fields})


def expected(lengths: OutputLengths, client: str = "desk", **fields: Any) -> Lengths:
    said = lengths.predict(client, call(**fields))
    assert said is not None
    return said


@pytest.fixture
def lengths() -> OutputLengths:
    return OutputLengths(shipped())


def test_answers_of_a_template_are_expected_again(lengths: OutputLengths) -> None:
    before = expected(lengths)
    assert before.seen == 0
    for _ in range(20):
        lengths.learn("desk", call(), 900)
    after = expected(lengths)
    assert after.p50_tokens == pytest.approx(900, rel=0.15)
    assert after.seen == 20
    assert expected(lengths, client="another") == before


def test_two_templates_of_one_client_are_told_apart(lengths: OutputLengths) -> None:
    for _ in range(20):
        lengths.learn("desk", call(head=1), 2)
        lengths.learn("desk", call(head=2), 1200)
    assert expected(lengths, head=1).p50_tokens < 6
    assert expected(lengths, head=2).p50_tokens > 600


def test_a_new_template_begins_with_what_the_client_got(lengths: OutputLengths) -> None:
    before = expected(lengths, head=99)
    for number in range(20):
        lengths.learn("desk", call(head=number), 1500)
    assert expected(lengths, head=99).p50_tokens > 4 * before.p50_tokens


def test_tokens_of_several_answers_are_shared_out(lengths: OutputLengths) -> None:
    for _ in range(20):
        lengths.learn("desk", call(choices=4), 400)
    assert expected(lengths, choices=4).p50_tokens == pytest.approx(100, rel=0.15)


def test_what_was_not_counted_teaches_nothing(lengths: OutputLengths) -> None:
    lengths.learn("desk", call(), None)
    lengths.learn("desk", call(), 0)
    lengths.learn("desk", call(surface="openai_embeddings"), 90)
    assert len(lengths) == 0


def test_an_embedding_has_no_length(lengths: OutputLengths) -> None:
    assert lengths.predict("desk", call(surface="openai_embeddings")) is None


def test_a_call_without_marks_is_one_of_its_client(lengths: OutputLengths) -> None:
    for _ in range(10):
        lengths.learn("desk", call(marks=None), 700)
    assert expected(lengths, marks=None).seen == 10


def test_the_size_is_bounded_and_the_least_recently_used_go_first() -> None:
    lengths = OutputLengths(shipped(), capacity=50)
    for number in range(500):
        lengths.learn("kept", call(head=5), 900)
        lengths.learn(f"client {number}", call(head=number), 10)
        assert len(lengths) <= 50
    assert expected(lengths, client="kept", head=5).seen == 32
    assert expected(lengths, client="client 3", head=3).seen == 0

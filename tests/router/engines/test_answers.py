"""The small readers that all kinds share."""

from __future__ import annotations

import pytest

from router.engines.answers import amount, count, error_words, json_at, largest, object_at, objects, text_at, words
from router.engines.api import Answer
from tests.router.engines.fixtures import told


def test_only_an_answer_with_status_200_is_read() -> None:
    answers = {"/ok": told({"a": 1}), "/off": told({"a": 1}, 501)}
    assert object_at(answers, "/ok") == {"a": 1}
    assert object_at(answers, "/off") == {}
    assert text_at(answers, "/missing") == b""


@pytest.mark.parametrize("body", [b"", b"{", b"<html>", b"\xff", b"[" * 5000, b"NaN"])
def test_what_is_no_json_reads_as_nothing(body: bytes) -> None:
    assert json_at({"/x": Answer(200, body)}, "/x") is None


def test_wrong_types_read_as_nothing() -> None:
    assert objects({"a": 1}) == []
    assert objects([{"a": 1}, 2, None]) == [{"a": 1}]
    assert words(["a", None, "", 3, "b", "a"]) == ("a", "b")
    assert [count(value) for value in (3, 0, -1, True, "3", 2.0, None)] == [3, None, None, None, None, None, None]
    assert [amount(value) for value in (3, 0, 0.5, -1, True, "3")] == [3.0, 0.0, 0.5, None, None, None]
    assert largest([None, 0, 4096, 2048]) == 4096
    assert largest([]) is None


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Too LONG", "type": "t", "code": 400}},
        {"type": "error", "error": {"type": "invalid_request_error", "message": "too long"}},
        {"error": "too long"},
        {"object": "error", "message": "too long"},
        {"detail": "too long"},
    ],
)
def test_error_words_are_found_in_the_shapes_of_all_apis(body: object) -> None:
    assert "too long" in error_words(told(body, 400))


def test_error_words_do_not_contain_the_call() -> None:
    body = {"detail": [{"msg": "wrong type", "input": "the secret prompt"}], "prompt": "the secret prompt"}
    assert "secret" not in error_words(told(body, 422))

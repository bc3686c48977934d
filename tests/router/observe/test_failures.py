"""What of an exception may be written down."""

from __future__ import annotations

import json
import logging
from typing import Literal

import pytest
import structlog

from router.errors import BadRequest
from router.observe import logs
from router.observe.failures import told

PROMPT = "the prompt of somebody"


def failure(error: BaseException, cause: BaseException | None = None) -> BaseException:
    """The error as it is when it was raised while `PROMPT` was in a variable of the frame."""
    prompt = PROMPT
    try:
        raise error from cause
    except type(error) as raised:
        assert prompt
        return raised


@pytest.mark.parametrize(
    "error",
    [
        KeyError(PROMPT),
        ValueError(f"invalid literal: {PROMPT}"),
        UnicodeDecodeError("utf-8", PROMPT.encode(), 0, 1, PROMPT),
        AssertionError(PROMPT),
        Exception(PROMPT),
    ],
)
def test_a_text_that_may_quote_a_call_is_left_out(error: BaseException) -> None:
    text = told(failure(error))
    assert PROMPT not in text
    assert type(error).__name__ in text
    assert "test_failures.py" in text
    assert "in failure" in text


@pytest.mark.parametrize(
    "error",
    [
        TypeError("int() argument"),
        AttributeError("no attribute 'x'"),
        OSError(2, "No such file"),
        BadRequest("say more"),
    ],
)
def test_a_text_that_speaks_of_the_program_is_kept(error: BaseException) -> None:
    assert str(error) in told(failure(error))


def test_causes_come_first_and_are_held_to_the_same() -> None:
    text = told(failure(TypeError("outer"), failure(ValueError(PROMPT))))
    assert text.index("ValueError") < text.index("and then:") < text.index("TypeError: outer")
    assert PROMPT not in text


def test_a_circle_of_causes_ends() -> None:
    one, other = KeyError("a"), KeyError("b")
    one.__context__, other.__context__ = other, one
    assert told(one).count("KeyError") == 2


@pytest.mark.parametrize("form", ["console", "json"])
def test_neither_form_of_the_log_shows_words_or_variables(
    form: Literal["console", "json"], capfd: pytest.CaptureFixture[str], logs_again: None
) -> None:
    logs.configure("debug", form)
    structlog.get_logger("twolane.test").error("failed", exc_info=failure(KeyError(PROMPT)))
    logging.getLogger("some.library").error("failed", exc_info=failure(KeyError(PROMPT)))
    try:
        raise failure(LookupError(PROMPT))
    except LookupError:
        structlog.get_logger("twolane.test").error("failed", exc_info=True)
    said = capfd.readouterr().err
    assert said.count("builtins.KeyError") == 2
    assert said.count("builtins.LookupError") == 1
    assert "test_failures.py" in said
    assert PROMPT not in said
    if form == "json":
        assert json.loads(said.splitlines()[0])["event"] == "failed"

"""Errors in the shape of each API, whole and inside a stream."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from router.errors import (
    BackendBroke,
    BackendTimeout,
    BadRequest,
    MethodNotAllowed,
    NoBackend,
    Overloaded,
    RouterError,
    TooLarge,
    Unauthorized,
    UnknownModel,
)
from router.surfaces import SURFACES
from router.surfaces.api import Progress
from router.surfaces.counts import take_error
from router.wire.events import ndjson_reader, sse_reader

ERROR = BadRequest("model: expected a string", param="model")


def body(surface: str, error: RouterError = ERROR) -> Any:
    return orjson.loads(SURFACES[surface].error_body(error))


OPENAI = {"message": ERROR.message, "type": "invalid_request_error", "param": "model", "code": "invalid_request"}
ANTHROPIC = {"type": "error", "error": {"type": "invalid_request_error", "message": ERROR.message}}
LLAMACPP = {"error": {"code": 400, "message": ERROR.message, "type": "invalid_request_error"}}


@pytest.mark.parametrize(
    ("surface", "expected"),
    [
        ("openai_chat", {"error": OPENAI}),
        ("openai_responses", {"error": OPENAI}),
        ("rerank", {"error": OPENAI}),
        ("openai_models", {"error": OPENAI}),
        ("anthropic_messages", ANTHROPIC),
        ("anthropic_count_tokens", ANTHROPIC),
        ("ollama_chat", {"error": ERROR.message}),
        ("ollama_tags", {"error": ERROR.message}),
        ("llamacpp_completion", LLAMACPP),
        ("llamacpp_apply_template", LLAMACPP),
    ],
)
def test_each_api_has_its_own_shape(surface: str, expected: object) -> None:
    assert body(surface) == expected


def test_a_field_is_null_where_no_field_is_at_fault() -> None:
    assert body("openai_chat", NoBackend("none is up"))["error"]["param"] is None


@pytest.mark.parametrize(
    ("error", "openai", "anthropic", "llamacpp"),
    [
        (Unauthorized("x"), "authentication_error", "authentication_error", "authentication_error"),
        (UnknownModel("x"), "invalid_request_error", "not_found_error", "not_found_error"),
        (MethodNotAllowed("x", allow=("GET",)), *["invalid_request_error"] * 3),
        (TooLarge("x"), "invalid_request_error", "request_too_large", "invalid_request_error"),
        (Overloaded("x"), "rate_limit_error", "rate_limit_error", "invalid_request_error"),
        (NoBackend("x"), "server_error", "overloaded_error", "unavailable_error"),
        (BackendBroke("x"), "server_error", "api_error", "server_error"),
        (BackendTimeout("x"), "server_error", "timeout_error", "server_error"),
    ],
)
def test_each_status_has_the_word_of_the_api(error: RouterError, openai: str, anthropic: str, llamacpp: str) -> None:
    assert body("openai_chat", error)["error"]["type"] == openai
    assert body("anthropic_messages", error)["error"]["type"] == anthropic
    assert body("llamacpp_completion", error)["error"]["type"] == llamacpp


@pytest.mark.parametrize(
    ("surface", "name"),
    [("openai_chat", ""), ("llamacpp_completion", ""), ("anthropic_messages", "error"), ("openai_responses", "error")],
)
def test_an_error_inside_a_stream_is_one_event_that_the_reader_knows(surface: str, name: str) -> None:
    ((seen_name, data),) = sse_reader().feed(SURFACES[surface].error_event(ERROR))
    assert seen_name == name
    assert ERROR.message in data.decode()
    reader = SURFACES[surface].reader()
    reader.event(seen_name, data)
    assert reader.progress.failed


def test_an_error_inside_a_stream_of_lines_is_a_line() -> None:
    ((_, data),) = ndjson_reader().feed(SURFACES["ollama_chat"].error_event(ERROR))
    assert orjson.loads(data) == {"error": ERROR.message}


def test_an_error_event_of_the_responses_api_has_its_fields_at_the_top() -> None:
    ((_, data),) = sse_reader().feed(SURFACES["openai_responses"].error_event(ERROR))
    event = orjson.loads(data)
    assert (event["type"], event["code"], event["message"]) == ("error", "invalid_request", ERROR.message)


@pytest.mark.parametrize(
    ("error", "at_fault"),
    [
        ({"code": 500, "type": "server_error"}, True),
        ({"code": 500, "type": "InternalServerError"}, True),
        ({"code": 400, "type": "BadRequestError"}, False),
        ({"code": 503, "type": "unavailable_error"}, False),
        ({"code": 429, "type": "server_error"}, False),
        ({"code": "server_error"}, True),
        ({"type": "api_error"}, True),
        ({"type": "overloaded_error"}, False),
        ({"type": "invalid_request_error"}, False),
        ({}, False),
        ("words", False),
        (None, False),
    ],
)
def test_whose_fault_an_error_in_a_stream_was_by_its_own_words(error: object, at_fault: bool) -> None:
    progress = Progress()
    take_error(progress, error)
    assert (progress.failed, progress.at_fault) == (True, at_fault)

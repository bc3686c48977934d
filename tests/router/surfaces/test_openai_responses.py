"""The Responses API: input in all its shapes, and events with types."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.estimate import estimate_tokens
from router.errors import BadRequest
from router.surfaces import SURFACES
from tests.router.surfaces.streams import play, play_named, read

SURFACE = SURFACES["openai_responses"]
TEXT = "Write a haiku about a router that waits."


def test_a_string_is_a_conversation_of_one() -> None:
    features = read("/v1/responses", {"model": "m", "input": TEXT, "stream": True, "max_output_tokens": 50})
    assert (features.surface, features.model, features.stream) == ("openai_responses", "m", True)
    assert (features.turns, features.last_role, features.max_tokens) == (1, "user", 50)
    assert features.last_tokens == estimate_tokens(TEXT)


def test_instructions_are_the_system_text() -> None:
    features = read("/v1/responses", {"input": "hi", "instructions": TEXT})
    assert (features.system_tokens, features.turns) == (estimate_tokens(TEXT), 2)


def test_items_are_read_as_the_messages_that_they_stand_for() -> None:
    items = [
        {"role": "developer", "content": TEXT},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": TEXT}, {"type": "input_image"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": TEXT}], "encrypted_content": "x" * 9000},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "1", "output": "42"},
    ]
    features = read("/v1/responses", {"input": items, "tools": [{"type": "function", "name": "f"}]})
    assert (features.turns, features.last_role, features.tool_results, features.media) == (5, "tool", 1, 1)
    assert (features.tools, features.system_tokens) == (1, estimate_tokens(TEXT))
    assert 3 * estimate_tokens(TEXT) < features.prompt_tokens < 200


def test_input_may_be_missing_or_empty() -> None:
    assert read("/v1/responses", {"previous_response_id": "resp_1"}).previous_response_id == "resp_1"
    assert read("/v1/responses", {"input": []}).turns == 0
    assert read("/v1/responses", {"input": "a", "background": True}).background


@pytest.mark.parametrize(("given", "param"), [(5, "input"), ({}, "input"), (["a"], "input[0]")])
def test_input_of_another_type_is_refused(given: object, param: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read("/v1/responses", {"input": given})
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("text", "expected"),
    [({"format": {"type": "json_schema"}}, "json_schema"), ({"format": {"type": "text"}}, ""), ({}, ""), (5, "")],
)
def test_the_form_of_the_answer_is_read(text: object, expected: str) -> None:
    assert read("/v1/responses", {"input": "a", "text": text}).response_format == expected


CREATED = ("response.created", {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}})
ADDED = ("response.output_item.added", {"type": "response.output_item.added", "item": {"type": "message"}})
PART = ("response.content_part.added", {"type": "response.content_part.added", "part": {"text": ""}})
DONE = ("response.output_text.done", {"type": "response.output_text.done", "text": "ab"})


def delta(kind: str, text: str = "a") -> tuple[str, dict[str, object]]:
    return f"response.{kind}.delta", {"type": f"response.{kind}.delta", "sequence_number": 4, "delta": text}


def end(kind: str, **fields: object) -> tuple[str, dict[str, object]]:
    return f"response.{kind}", {"type": f"response.{kind}", "response": {"id": "resp_1", **fields}}


USAGE = {"input_tokens": 13, "output_tokens": 12, "input_tokens_details": {"cached_tokens": 3}}


@pytest.mark.parametrize("named", [True, False])
def test_a_stream_is_read_with_and_without_names(named: bool) -> None:
    reader = SURFACE.reader()
    text = delta("output_text")
    events = [CREATED, ADDED, PART, text, text, delta("output_text", ""), DONE, end("completed", usage=USAGE)]
    carried = play_named(reader, *(event if named else ("", event[1]) for event in events))
    assert carried == [False, False, False, True, True, False, False, False]
    progress = reader.progress
    assert (progress.response_id, progress.ended, progress.failed) == ("resp_1", True, False)
    assert (progress.prompt_tokens, progress.cached_tokens, progress.output_tokens) == (13, 3, 12)


@pytest.mark.parametrize(
    "kind", ["reasoning_text", "reasoning_summary_text", "refusal", "function_call_arguments", "custom_tool_call_input"]
)
def test_every_kind_of_delta_is_output(kind: str) -> None:
    reader = SURFACE.reader()
    assert play_named(reader, CREATED, delta(kind), delta(kind), delta("output_text")) == [False, True, True, True]
    assert reader.progress.tokens == 3


def test_the_start_of_a_tool_call_is_output() -> None:
    call = ("response.output_item.added", {"type": "response.output_item.added", "item": {"type": "function_call"}})
    assert play_named(SURFACE.reader(), CREATED, call) == [False, True]


def test_a_response_that_was_cut_short_has_ended() -> None:
    reader = SURFACE.reader()
    play_named(reader, end("incomplete", usage=USAGE))
    assert (reader.progress.ended, reader.progress.failed, reader.progress.output_tokens) == (True, False, 12)


@pytest.mark.parametrize("event", [end("failed", error={"code": "x"}), ("error", {"type": "error", "message": "x"})])
def test_a_failure_is_told(event: tuple[str, object]) -> None:
    reader = SURFACE.reader()
    assert play_named(reader, CREATED, event) == [False, False]
    assert reader.progress.failed


def test_a_whole_response_gives_its_counts_and_its_id() -> None:
    progress = SURFACE.read_whole(orjson.dumps({"id": "resp_1", "error": None, "usage": USAGE}))
    assert (progress.response_id, progress.prompt_tokens, progress.output_tokens) == ("resp_1", 13, 12)
    assert progress.ended


@given(
    st.dictionaries(
        st.sampled_from(["type", "response", "item", "delta", "error", "usage"]),
        st.sampled_from([None, 5, [], {}, "x", "response.completed", {"type": []}, {"id": 5, "usage": [1]}]),
    ),
    st.sampled_from(["", "error", "response.completed", "response.output_text.delta", "response.output_item.added"]),
)
def test_no_event_makes_a_reader_raise(event: dict[str, Any], name: str) -> None:
    play(SURFACE.reader(), event, name=name)

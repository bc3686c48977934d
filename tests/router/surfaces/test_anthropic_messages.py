"""Anthropic's messages: blocks of every kind, and events with names."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.estimate import estimate_tokens
from router.surfaces import SURFACES, Kind, find
from tests.router.surfaces.streams import play, play_named, read

SURFACE = SURFACES["anthropic_messages"]
TEXT = "How many lanes must a router walk down?"
BASE64 = "iVBORw0KGgo" * 20_000


def messages(*contents: object, **fields: object) -> dict[str, object]:
    roles = ("user", "assistant")
    return {
        "model": "m",
        "max_tokens": 64,
        "messages": [{"role": roles[n % 2], "content": content} for n, content in enumerate(contents)],
        **fields,
    }


@pytest.mark.parametrize("system", [TEXT, [{"type": "text", "text": TEXT, "cache_control": {"type": "ephemeral"}}]])
def test_the_system_text_is_a_string_or_blocks(system: object) -> None:
    features = read("/v1/messages", messages("hi", system=system))
    assert (features.system_tokens, features.turns) == (estimate_tokens(TEXT), 2)
    assert (features.max_tokens, features.last_role, features.stream) == (64, "user", False)


def test_blocks_of_every_kind_are_read() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": TEXT}}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": TEXT}, image]}
    thinking = {"type": "thinking", "thinking": TEXT, "signature": BASE64}
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": TEXT}}
    body = messages("hi", [thinking, use], [result, document], tools=[{"name": "weather", "input_schema": {}}])
    features = read("/v1/messages", body)
    assert (features.turns, features.tool_results, features.media, features.tools) == (3, 1, 2, 1)
    assert 4 * estimate_tokens(TEXT) < features.prompt_tokens < 4 * estimate_tokens(TEXT) + 60
    assert features.last_tokens == pytest.approx(2 * estimate_tokens(TEXT), abs=3)


def test_a_result_may_be_a_string() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": TEXT}
    features = read("/v1/messages", messages("hi", "wait", [result]))
    assert (features.tool_results, features.last_tokens) == (1, estimate_tokens(TEXT))


def test_results_that_were_answered_do_not_count() -> None:
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "a"}]
    assert read("/v1/messages", messages("hi", "wait", result, "done", "thanks")).tool_results == 0


def test_the_form_of_the_answer_is_read() -> None:
    asked = {"format": {"type": "json_schema", "schema": {}}}
    assert read("/v1/messages", messages("hi", output_config=asked)).response_format == "json_schema"
    assert read("/v1/messages", messages("hi", output_format={"type": "json_schema"})).response_format == "json_schema"


def test_counting_tokens_takes_no_slot() -> None:
    features = read("/v1/messages/count_tokens", messages(TEXT))
    assert (features.surface, features.stream) == ("anthropic_count_tokens", False)
    assert find("POST", "/v1/messages/count_tokens").kind is Kind.UTILITY


def named(**event: object) -> tuple[str, dict[str, object]]:
    return str(event["type"]), event


def text(piece: str) -> tuple[str, dict[str, object]]:
    return named(type="content_block_delta", index=0, delta={"type": "text_delta", "text": piece})


def begins(block: dict[str, object]) -> tuple[str, dict[str, object]]:
    return named(type="content_block_start", index=0, content_block=block)


STARTED = {"cache_read_input_tokens": 20, "input_tokens": 1, "output_tokens": 1}
START = named(type="message_start", message={"id": "msg_1", "content": [], "usage": STARTED})
PING = named(type="ping")
STOP = named(type="message_stop")


@pytest.mark.parametrize("with_names", [True, False])
def test_a_stream_is_read_with_and_without_names(with_names: bool) -> None:
    reader = SURFACE.reader()
    usage = named(type="message_delta", delta={"stop_reason": "max_tokens"}, usage={"output_tokens": 12})
    block_ends = named(type="content_block_stop", index=0)
    empty = begins({"type": "text", "text": ""})
    events = [START, empty, PING, text("a"), text("b"), text(""), block_ends, usage, STOP]
    carried = play_named(reader, *(event if with_names else ("", event[1]) for event in events))
    assert carried == [False, False, False, True, True, False, False, False, False]
    progress = reader.progress
    assert (progress.response_id, progress.ended, progress.failed) == ("msg_1", True, False)
    assert (progress.prompt_tokens, progress.cached_tokens) == (21, 20)
    assert (progress.output_tokens, progress.tokens) == (12, 12)


def test_the_placeholder_at_the_start_is_no_output() -> None:
    reader = SURFACE.reader()
    play_named(reader, START)
    assert (reader.progress.tokens, reader.progress.output_tokens) == (0, None)


@pytest.mark.parametrize(
    ("delta", "is_output"),
    [
        ({"type": "thinking_delta", "thinking": "Hm"}, True),
        ({"type": "input_json_delta", "partial_json": '{"a'}, True),
        ({"type": "input_json_delta", "partial_json": ""}, False),
        ({"type": "signature_delta", "signature": "EqQB"}, False),
        ({"type": "citations_delta", "citation": {"cited_text": "x"}}, False),
    ],
)
def test_deltas_of_every_kind_are_judged_at_any_place_in_the_stream(delta: dict[str, object], is_output: bool) -> None:
    event = named(type="content_block_delta", index=0, delta=delta)
    assert play_named(SURFACE.reader(), START, event, text("a"), event, event) == [
        False,
        is_output,
        True,
        *[is_output] * 2,
    ]


@pytest.mark.parametrize("kind", ["tool_use", "server_tool_use"])
def test_the_start_of_a_tool_call_is_output(kind: str) -> None:
    assert play_named(SURFACE.reader(), START, begins({"type": kind, "name": "f", "input": {}})) == [False, True]


def test_counts_at_the_end_that_repeat_the_prompt_are_taken() -> None:
    reader = SURFACE.reader()
    play_named(reader, named(type="message_delta", usage={"input_tokens": 21, "output_tokens": 12}))
    assert (reader.progress.prompt_tokens, reader.progress.output_tokens) == (21, 12)


def test_an_error_is_a_failure() -> None:
    reader = SURFACE.reader()
    play_named(reader, START, named(type="error", error={"type": "overloaded_error", "message": "x"}))
    assert (reader.progress.failed, reader.progress.ended) == (True, False)


def test_a_whole_message_gives_its_counts_and_its_id() -> None:
    usage = {"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 4, "output_tokens": 12}
    progress = SURFACE.read_whole(orjson.dumps({"id": "msg_1", "type": "message", "usage": usage}))
    assert (progress.prompt_tokens, progress.cached_tokens, progress.output_tokens) == (25, 20, 12)
    assert (progress.response_id, progress.ended) == ("msg_1", True)
    assert not SURFACE.read_whole(b'{"type":"error","error":{}}').ended


@given(
    st.dictionaries(
        st.sampled_from(["type", "message", "delta", "content_block", "usage"]),
        st.sampled_from(
            [
                None,
                5,
                [],
                {},
                "message_start",
                "message_delta",
                "content_block_start",
                {"usage": 5, "id": 1},
                {"type": {}},
            ]
        ),
    ),
    st.sampled_from(["", "message_start", "content_block_delta", "content_block_start", "message_delta"]),
)
def test_no_event_makes_a_reader_raise(event: dict[str, Any], name: str) -> None:
    play(SURFACE.reader(), event, name=name)

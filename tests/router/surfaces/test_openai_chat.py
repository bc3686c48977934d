"""Chunks of a chat: which of them carry output, and the counts at the end."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.surfaces import SURFACES
from router.surfaces.openai_chat import ChoicesReader
from tests.router.surfaces.streams import play

SURFACE = SURFACES["openai_chat"]


def chunk(delta: object, finish: str | None = None, **fields: object) -> dict[str, object]:
    return {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **fields}


ROLE = chunk({"role": "assistant", "content": ""})


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "a"},
        {"content": " "},
        {"content": '"'},
        {"content": None, "reasoning_content": "Hm"},
        {"reasoning_content": "Hm"},
        {"reasoning": "Hm"},
        {"content": "", "reasoning": "Hm"},
        {"refusal": "No."},
        {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
        {"content": None, "tool_calls": [{"index": 0, "custom": {"input": "x"}}]},
        {"function_call": {"name": "read", "arguments": ""}},
        {"function_call": {"arguments": "{"}},
        {"audio": {"transcript": "a"}},
        {"content": [{"type": "text", "text": "a"}]},
    ],
)
def test_output_of_every_kind_is_output_at_any_place_in_the_stream(delta: dict[str, object]) -> None:
    reader = SURFACE.reader()
    assert play(reader, ROLE, chunk(delta), chunk({"content": "b"}), chunk(delta), chunk(delta)) == [False, *[True] * 4]
    assert reader.progress.tokens == 4


@pytest.mark.parametrize(
    "event",
    [
        ROLE,
        chunk({"role": "assistant", "content": None}),
        chunk({"content": "", "reasoning_content": ""}),
        chunk({}),
        chunk({}, "stop"),
        chunk(None),
        chunk({"tool_calls": []}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}),
        {"choices": []},
        {"choices": None},
        {"usage": {"total_tokens": 3}},
        {"choices": [5, {"delta": 7}, {"delta": {"tool_calls": "x", "function_call": 5}}]},
        {},
        b"",
        b"{",
        b"[]",
        b"hello",
        b"\xff",
    ],
)
def test_everything_else_is_none_at_any_place_in_the_stream(event: object) -> None:
    reader = SURFACE.reader()
    assert play(reader, event, chunk({"content": "b"}), chunk({"content": "b"}), event) == [False, True, True, False]
    assert not reader.progress.failed


def test_text_that_looks_like_json_of_its_own_is_only_text() -> None:
    reader = SURFACE.reader()
    odd = '{"usage":{"completion_tokens":99},"error":{"message":"x"},"content":""}'
    assert play(reader, *[chunk({"content": odd})] * 3) == [True] * 3
    assert (reader.progress.tokens, reader.progress.output_tokens, reader.progress.failed) == (3, None, False)


def test_json_with_spaces_is_read_the_same() -> None:
    reader = SURFACE.reader()
    text = b'{"choices": [{"index": 0, "delta": {"content": "a"}}], "usage": null}'
    usage = b'{"choices": [{"index": 0, "delta": {"content": "a"}}], "usage": {"completion_tokens": 7}}'
    assert play(reader, text, text, text, usage) == [True] * 4
    assert reader.progress.output_tokens == 7


def test_usage_in_a_chunk_of_its_own_replaces_the_count() -> None:
    reader = SURFACE.reader()
    usage = {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}
    play(reader, ROLE, chunk({"content": "a"}), chunk({"content": "b"}), {"choices": [], "usage": usage}, b"[DONE]")
    progress = reader.progress
    assert (progress.prompt_tokens, progress.output_tokens, progress.tokens, progress.cached_tokens) == (5, 9, 9, None)
    assert progress.ended


def test_usage_on_every_chunk_is_followed() -> None:
    reader = SURFACE.reader()
    carried = play(reader, *(chunk({"content": "a"}, usage={"completion_tokens": n}) for n in (1, 2, 4)))
    assert carried == [True] * 3
    assert reader.progress.output_tokens == 4


def test_usage_without_the_key_for_choices_is_read() -> None:
    reader = SURFACE.reader()
    play(reader, {"usage": {"prompt_tokens": 5, "completion_tokens": 1}})
    assert (reader.progress.prompt_tokens, reader.progress.output_tokens) == (5, 1)


def test_timings_of_llama_cpp_stand_in_for_usage() -> None:
    reader = SURFACE.reader()
    timings = {"cache_n": 20, "prompt_n": 1, "predicted_n": 24}
    play(reader, chunk({"content": "a"}), chunk({}, "length", timings=timings))
    progress = reader.progress
    assert (progress.prompt_tokens, progress.cached_tokens, progress.output_tokens) == (21, 20, 24)


@pytest.mark.parametrize(
    "end",
    [
        chunk({}, "stop", timings={"cache_n": 0, "prompt_n": 9, "predicted_n": 5}),
        {
            "choices": [],
            "usage": {"completion_tokens": 5, "prompt_tokens": 9},
            "timings": {"cache_n": 0, "prompt_n": 9, "predicted_n": 5},
        },
    ],
)
def test_counts_of_several_choices_of_llama_cpp_add_up(end: dict[str, object]) -> None:
    reader = SURFACE.reader()
    play(reader, chunk({"content": "a"}), end, chunk({"content": "b"}), end)
    assert (reader.progress.output_tokens, reader.progress.tokens, reader.progress.prompt_tokens) == (10, 10, 9)


def test_timings_per_token_are_not_added_up() -> None:
    reader = SURFACE.reader()
    play(reader, *(chunk({"content": "a"}, timings={"prompt_n": 9, "predicted_n": n}) for n in (1, 2, 3)))
    assert (reader.progress.tokens, reader.progress.output_tokens) == (3, None)


def test_several_choices_are_counted_each() -> None:
    reader = SURFACE.reader()
    both = {"choices": [{"index": n, "delta": {"content": "a"}} for n in (0, 1)]}
    assert play(reader, both) == [True]
    assert play(reader, *({"choices": [{"index": n, "delta": {"content": "a"}}]} for n in (0, 1, 0, 1))) == [True] * 4
    assert reader.progress.tokens == 6


@pytest.mark.parametrize(
    "event", [{"error": {"message": "x", "code": 500}}, {"error": "x"}, {"object": "error", "message": "x"}]
)
def test_an_error_inside_the_stream_is_a_failure(event: dict[str, object]) -> None:
    reader = SURFACE.reader()
    assert play(reader, chunk({"content": "a"}), event) == [True, False]
    assert reader.progress.failed
    assert not reader.progress.ended


def test_a_whole_answer_gives_its_counts_and_its_id() -> None:
    usage = {"prompt_tokens": 21, "completion_tokens": 24, "prompt_tokens_details": {"cached_tokens": 0}}
    progress = SURFACE.read_whole(orjson.dumps({"id": "c1", "choices": [], "usage": usage}))
    assert (progress.prompt_tokens, progress.output_tokens, progress.cached_tokens) == (21, 24, 0)
    assert (progress.response_id, progress.ended) == ("c1", True)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"usage":5}', b'{"usage":{"prompt_tokens":"x"}}', b"<html>"])
def test_a_whole_answer_that_cannot_be_read_gives_nothing(body: bytes) -> None:
    progress = SURFACE.read_whole(body)
    assert (progress.prompt_tokens, progress.output_tokens, progress.failed) == (None, None, False)


def test_an_error_in_place_of_an_answer_is_no_failure_inside_a_stream() -> None:
    progress = SURFACE.read_whole(b'{"error":{"code":400,"message":"x"}}')
    assert (progress.failed, progress.ended) == (False, False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", "a", '"', "content"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "content", "text", "tool_calls", "function", "usage", "error", "timings"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
TEXTS = st.sampled_from(["", "a", '"', "\\", '"content":"', "é", "[DONE]"])
DELTAS = st.fixed_dictionaries(
    {},
    optional={"role": TEXTS, "content": st.none() | TEXTS, "reasoning": TEXTS, "reasoning_content": st.none() | TEXTS},
)


def test_two_texts_in_one_event_do_not_hide_an_event_without_text() -> None:
    one, two = ({"index": index, "delta": {"content": "a"}} for index in (0, 1))
    reader = SURFACE.reader()
    play(reader, {"choices": [one]})
    both = b"data: %b\n\n" % orjson.dumps({"choices": [one, two]})
    assert not reader.only_output(both + b"data: [DONE]\n\n", 2)
    assert not reader.only_output(both + both, 2)
    assert reader.progress.tokens == 1


def test_events_of_several_choices_are_read_at_once() -> None:
    reader = SURFACE.reader()
    run = [orjson.dumps({"choices": [{"index": index, "delta": {"content": "a"}}]}) for index in (0, 1, 2)]
    play(reader, run[0])
    assert reader.only_output(b"".join(b"data: %b\n\n" % data for data in run), 3)
    assert reader.progress.tokens == 4


@given(st.lists(JSON, max_size=6))
def test_no_event_makes_a_reader_raise(events: list[Any]) -> None:
    play(SURFACE.reader(), *events)


@given(st.lists(DELTAS, max_size=12), st.booleans())
def test_the_quick_look_sees_what_parsing_sees(deltas: list[dict[str, object]], spaced: bool) -> None:
    quick, slow = ChoicesReader(), ChoicesReader()
    for delta in deltas:
        data = orjson.dumps(chunk(delta))
        data = data.replace(b'":', b'": ') if spaced and b"\\" not in data else data
        assert quick.event("", data) == slow.look("", data)
    assert quick.progress == slow.progress

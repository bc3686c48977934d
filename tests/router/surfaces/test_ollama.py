"""Ollama's own API: streaming unless told not to, options in an object, counts on the last line."""

from __future__ import annotations

import orjson
import pytest

from classifiers.estimate import estimate_tokens
from router.errors import BadRequest
from router.surfaces import SURFACES
from router.surfaces.api import Framing
from tests.router.surfaces.streams import play, read

CHAT, GENERATE, EMBED = SURFACES["ollama_chat"], SURFACES["ollama_generate"], SURFACES["ollama_embed"]
TEXT = "Why is the sky blue over the throughput lane?"


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
@pytest.mark.parametrize(("fields", "stream"), [({}, True), ({"stream": True}, True), ({"stream": False}, False)])
def test_a_call_streams_unless_told_not_to(path: str, fields: dict[str, object], stream: bool) -> None:
    assert read(path, {"model": "m", **fields}).stream is stream


def test_a_chat_is_read() -> None:
    body = {
        "model": "qwen3",
        "messages": [
            {"role": "system", "content": TEXT},
            {"role": "user", "content": TEXT, "images": ["aGk=" * 5000]},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": TEXT}}}]},
            {"role": "tool", "content": "42", "tool_name": "f"},
        ],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "options": {"num_predict": 40},
        "format": "json",
    }
    features = read("/api/chat", body)
    assert (features.surface, features.model, features.turns, features.media) == ("ollama_chat", "qwen3", 4, 1)
    assert (features.tools, features.tool_results, features.last_role) == (1, 1, "tool")
    assert (features.max_tokens, features.response_format) == (40, "json_object")
    assert 3 * estimate_tokens(TEXT) < features.prompt_tokens < 3 * estimate_tokens(TEXT) + 60


@pytest.mark.parametrize("fields", [{}, {"messages": []}, {"messages": None}])
def test_a_chat_without_messages_loads_the_model(fields: dict[str, object]) -> None:
    assert read("/api/chat", {"model": "m", **fields}).turns == 0


def test_messages_of_another_type_are_refused() -> None:
    with pytest.raises(BadRequest) as caught:
        read("/api/chat", {"messages": "hi"})
    assert caught.value.param == "messages"


def test_a_prompt_is_read_with_its_system_text_and_images() -> None:
    body = {
        "model": "m",
        "prompt": TEXT,
        "system": TEXT,
        "suffix": "}",
        "images": ["aGk="],
        "format": {"type": "object"},
    }
    features = read("/api/generate", body)
    assert (features.turns, features.media, features.response_format) == (2, 1, "json_schema")
    assert features.system_tokens == estimate_tokens(TEXT)


def test_a_prompt_of_another_type_is_refused() -> None:
    with pytest.raises(BadRequest) as caught:
        read("/api/generate", {"prompt": ["a"]})
    assert caught.value.param == "prompt"


@pytest.mark.parametrize("limit", [-1, -2, "many", None])
def test_no_limit_on_output_has_several_spellings(limit: object) -> None:
    assert read("/api/generate", {"options": {"num_predict": limit}}).max_tokens is None


@pytest.mark.parametrize(("body", "prompts"), [({"input": ["a", "b"]}, 2), ({"input": "a"}, 1), ({"prompt": "a"}, 1)])
def test_texts_to_embed_are_counted_and_nothing_streams(body: dict[str, object], prompts: int) -> None:
    features = read("/api/embed", body)
    assert (features.surface, features.prompts, features.stream) == ("ollama_embed", prompts, False)


@pytest.mark.parametrize("body", [{"model": "m"}, {"name": "m"}])
def test_the_model_to_show_has_two_names(body: dict[str, object]) -> None:
    assert read("/api/show", body).model == "m"


def line(content: str, **fields: object) -> dict[str, object]:
    return {
        "model": "m",
        "created_at": "x",
        "message": {"role": "assistant", "content": content, **fields},
        "done": False,
    }


DONE = {"message": {"role": "assistant", "content": ""}, "done": True, "prompt_eval_count": 7, "eval_count": 3}


def test_a_stream_is_lines() -> None:
    reader = CHAT.reader()
    assert play(reader, line(""), line("a"), line("b"), line("c"), DONE) == [False, True, True, True, False]
    progress = reader.progress
    assert (progress.prompt_tokens, progress.output_tokens, progress.tokens, progress.ended) == (7, 3, 3, True)
    assert CHAT.framing is Framing.NDJSON


@pytest.mark.parametrize("fields", [{"thinking": "Hm"}, {"tool_calls": [{"function": {"name": "f", "arguments": {}}}]}])
def test_thinking_and_tool_calls_are_output_at_any_place_in_the_stream(fields: dict[str, object]) -> None:
    reader = CHAT.reader()
    odd = line("", **fields)
    assert play(reader, odd, line("a"), odd, line("b")) == [True] * 4
    assert reader.progress.tokens == 4


def test_a_last_line_may_carry_output_too() -> None:
    reader = GENERATE.reader()
    last = {"response": "c", "done": True, "eval_count": 3}
    assert play(reader, *({"response": piece, "done": False} for piece in ("a", "b")), last) == [True] * 3
    assert (reader.progress.ended, reader.progress.output_tokens) == (True, 3)


def test_an_error_is_a_failure() -> None:
    reader = CHAT.reader()
    play(reader, line("a"), {"error": "model runner stopped"})
    assert (reader.progress.failed, reader.progress.ended) == (True, False)


@pytest.mark.parametrize("event", [b"", b"{", b"[]", {}, {"message": 5}, {"message": {"content": 5}, "done": 1}])
def test_no_line_makes_a_reader_raise(event: object) -> None:
    play(CHAT.reader(), event, line("a"), event)


def test_a_whole_answer_gives_its_counts() -> None:
    progress = CHAT.read_whole(orjson.dumps(DONE))
    assert (progress.prompt_tokens, progress.output_tokens, progress.ended) == (7, 3, True)
    assert EMBED.read_whole(b'{"embeddings":[[0.1]],"prompt_eval_count":8}').prompt_tokens == 8
    assert not CHAT.read_whole(b'{"error":"x"}').ended

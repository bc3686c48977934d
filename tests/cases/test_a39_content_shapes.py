"""A39: content comes as text, parts, null or not at all, and holds much that is no text. All of it is read."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.cases.apis import CHAT, MESSAGES, OLLAMA_CHAT, RESPONSES, Api
from tests.router.running import Running, router_for
from tests.scripted import ScriptedBackend

DATA = "data:image/png;base64," + "iVBORw0KGgo" * 20_000
"""Hundreds of thousands of tokens, if it were text."""
ARGUMENTS = orjson.dumps({"path": "a/b/c.py", "lines": list(range(300))}).decode()
CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": ARGUMENTS}}


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


def parts(*given: object) -> list[dict[str, Any]]:
    return [part if isinstance(part, dict) else {"type": "text", "text": part} for part in given]


FIELD = [
    {"role": "system", "content": parts("s")},
    user(parts("hi", {"type": "image_url", "image_url": {"url": DATA}})),
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "..."},
    {"role": "user"},
]
ODD_PARTS = [
    {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
    {"type": "tool_result", "tool_use_id": "c1", "content": parts("done")},
    {"type": "tool_result", "tool_use_id": "c1", "content": "done", "is_error": False},
    {"type": "file", "file": {"filename": "a.pdf", "file_data": DATA}},
    {"type": "video_url", "video_url": {"url": DATA}},
    {"type": "refusal", "refusal": "no"},
    {"type": "thinking", "thinking": "hm", "signature": DATA},
    {"type": "redacted_thinking", "data": DATA},
    {"type": "something_new", "payload": {"deep": [DATA]}},
    {"type": None},
    {"type": 5, "text": 7},
    {},
    {"type": "text"},
    {"type": "text", "text": None},
    {"type": "text", "text": {"value": "x"}},
    {"type": "image_url", "image_url": DATA},
]


async def features(router: Running, api: Api, body: object) -> dict[str, Any]:
    asked = orjson.dumps({"path": api.path, "headers": {}, "body": body})
    answer = await router.admin("POST", "/explain", asked)
    assert answer.status == 200, answer.body
    document: Any = answer.json()
    found: dict[str, Any] = document["features"]
    return found


async def passes(router: Running, backend: ScriptedBackend, api: Api, body: object) -> None:
    raw = orjson.dumps(body)
    answer = await router.post(api.path, raw)
    assert answer.status == 200, answer.body[:300]
    assert backend.received[-1].body == raw


async def test_the_whole_of_the_case() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router:
        body = CHAT.body(stream=True, messages=FIELD)
        await passes(router, backend, CHAT, body)
        found = await features(router, CHAT, body)
        assert found["media"] == 1
        assert found["turns"] == 5
        assert found["tool_results"] == 1
        # The arguments of the tool's call are read by the engine, so they count; the image is no text.
        assert len(ARGUMENTS) / 8 < found["prompt_tokens"] < 1.25 * len(ARGUMENTS)
        without = [message for message in FIELD if "tool_calls" not in message]
        assert (await features(router, CHAT, CHAT.body(stream=True, messages=without)))["prompt_tokens"] < 60


@pytest.mark.parametrize("api", [CHAT, MESSAGES, OLLAMA_CHAT], ids=str)
async def test_parts_of_every_kind(api: Api) -> None:
    async with api.backend() as backend, router_for((backend, api.settings)) as router:
        for part in ODD_PARTS:
            body = api.body(stream=True, messages=[user([part, *parts("hi")]), user("go on")])
            await passes(router, backend, api, body)
            assert (await features(router, api, body))["prompt_tokens"] < 40, part


async def test_items_of_responses() -> None:
    items = [
        user([{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": DATA}]),
        {"type": "reasoning", "summary": [], "encrypted_content": DATA},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": ARGUMENTS},
        {"type": "function_call_output", "call_id": "c1", "output": "..."},
        {"type": "item_reference", "id": "i1"},
        {"type": "something_new", "payload": DATA},
        {"role": "user"},
    ]
    async with RESPONSES.backend() as backend, router_for(backend) as router:
        body = RESPONSES.body(stream=True, input=items)
        await passes(router, backend, RESPONSES, body)
        found = await features(router, RESPONSES, body)
        assert found["media"] == 1
        assert found["tool_results"] == 1
        assert len(ARGUMENTS) / 8 < found["prompt_tokens"] < 1.25 * len(ARGUMENTS)


CONTENTS: list[object] = [None, "", "x", [], [None], ["x", "y"], [[]], 5, True, {"type": "text", "text": "x"}, {}]


@pytest.mark.parametrize("api", [CHAT, MESSAGES, OLLAMA_CHAT], ids=str)
@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool", "critic", None])
async def test_content_of_every_type_in_every_role(api: Api, role: str | None) -> None:
    async with api.backend() as backend, router_for((backend, api.settings)) as router:
        for content in CONTENTS:
            message = {"role": role, "content": content}
            await passes(router, backend, api, api.body(stream=False, messages=[message]))
            await passes(router, backend, api, api.body(stream=False, messages=[message, user("hi"), message]))


@pytest.mark.parametrize(
    "more",
    [
        {"tool_calls": None},
        {"tool_calls": {}},
        {"tool_calls": [None, 5, {}, {"function": None}, {"function": {"name": None, "arguments": {"a": 1}}}]},
        {"function_call": "auto"},
        {"function_call": {"name": "f", "arguments": None}},
        {"reasoning_content": None},
        {"reasoning_content": ["x"]},
        {"audio": {"id": "a1"}},
        {"images": None},
        {"images": [DATA]},
        {"images": "x"},
        {"name": 5},
    ],
)
async def test_other_fields_of_a_message(more: dict[str, Any]) -> None:
    async with CHAT.backend() as backend, router_for(backend) as router:
        messages = [user("hi"), {"role": "assistant", "content": None, **more}, user("go on")]
        body = CHAT.body(stream=False, messages=messages)
        await passes(router, backend, CHAT, body)
        assert (await features(router, CHAT, body))["prompt_tokens"] < 60


FIELDS: list[dict[str, Any]] = [
    {"tools": None},
    {"tools": {}},
    {"tools": [None, 5, "x", {}]},
    {"functions": [{}]},
    {"tool_choice": "none"},
    {"response_format": None},
    {"response_format": "json"},
    {"response_format": {"type": None}},
    {"stream": None},
    {"stream": "yes"},
    {"stream_options": None},
    {"max_tokens": None},
    {"max_tokens": -1},
    {"max_tokens": "100"},
    {"max_tokens": 1e9},
    {"n": None},
    {"service_tier": None},
    {"metadata": {"user_id": None}},
    {"stop": [1]},
    {"logit_bias": {"5": -100}},
    {"prompt_cache_key": 5},
    {"system": 5},
    {"options": []},
    {"format": {"type": "object"}},
    {"think": True},
    {"keep_alive": -1},
]


@pytest.mark.parametrize("api", [CHAT, MESSAGES, OLLAMA_CHAT, RESPONSES], ids=str)
async def test_other_fields_of_a_call(api: Api) -> None:
    async with api.backend() as backend, router_for((backend, api.settings)) as router:
        for more in FIELDS:
            await passes(router, backend, api, {**api.call, **more})

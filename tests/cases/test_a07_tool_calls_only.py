"""A07: a stream that only calls a tool has a first token as well: the name of the tool, or its first argument."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.apis import CHAT, DONE, MESSAGES, OLLAMA_CHAT, RESPONSES, Api, delta, line, typed
from tests.cases.staged import staged


def call(**function: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "function": function}]}


async def test_the_stream_of_the_report() -> None:
    stages = (
        CHAT.opening,
        delta(
            {
                "tool_calls": [
                    {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": ""}}
                ]
            }
        ),
        delta(call(arguments='{"path"')),
        delta(call(arguments=':"a"}')),
        delta({}, "tool_calls") + DONE,
    )
    async with staged(CHAT, *stages) as (script, router, _):
        script.assert_first_token_in(1, router)
        assert router.metric("twolane_tokens_total", direction="out") == 3


CALLS = [
    (CHAT, delta(call(name="read", arguments=""))),
    (CHAT, delta(call(arguments="{"))),
    (CHAT, delta({"content": None, **call(name="read")})),
    (CHAT, delta({"content": "", **call(name="read", arguments="{}")})),
    (CHAT, delta({"function_call": {"name": "read", "arguments": ""}})),
    (CHAT, delta({"tool_calls": [{"index": 0, "type": "custom", "custom": {"name": "sh", "input": ""}}]})),
    (RESPONSES, typed("response.output_item.added", item={"type": "function_call", "name": "read", "arguments": ""})),
    (RESPONSES, typed("response.function_call_arguments.delta", delta="{")),
    (RESPONSES, typed("response.custom_tool_call_input.delta", delta="ls")),
    (RESPONSES, typed("response.output_item.added", item={"type": "mcp_call", "name": "read", "arguments": ""})),
    (MESSAGES, typed("content_block_start", index=0, content_block={"type": "tool_use", "name": "read", "input": {}})),
    (MESSAGES, typed("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": "{"})),
    (OLLAMA_CHAT, line({"message": {"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}})),
]


@pytest.mark.parametrize(("api", "event"), CALLS)
async def test_a_call_of_a_tool_is_a_token_in_every_api(api: Api, event: bytes) -> None:
    async with staged(api, api.opening, event, api.ending, gap_s=0.02) as (script, router, _):
        script.assert_first_token_in(1, router)


@pytest.mark.parametrize(
    ("api", "event"),
    [
        (CHAT, delta({"tool_calls": []})),
        (
            CHAT,
            delta(
                {
                    "tool_calls": [
                        {"index": 0, "id": "c1", "type": "function", "function": {"name": "", "arguments": ""}}
                    ]
                }
            ),
        ),
        (CHAT, delta({"tool_calls": None, "content": ""})),
        (MESSAGES, typed("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": ""})),
        (RESPONSES, typed("response.function_call_arguments.delta", delta="")),
        (OLLAMA_CHAT, line({"message": {"content": "", "tool_calls": []}, "done": False})),
    ],
)
async def test_an_empty_call_is_no_token(api: Api, event: bytes) -> None:
    async with staged(api, event, api.token("a"), gap_s=0.02) as (script, router, _):
        script.assert_first_token_in(1, router)

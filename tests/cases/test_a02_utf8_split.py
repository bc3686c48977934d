"""A02: characters that straddle two network chunks become U+FFFD, also inside the arguments of tools."""

from __future__ import annotations

import json

import pytest

from tests.cases.apis import CHAT, MESSAGES, OLLAMA_CHAT, Api, delta, each_api, line, typed
from tests.cases.staged import staged
from tests.router.running import router_for
from tests.scripted import Peer, Received

TEXT = "渐😀é—"
AS_IN_THE_REPORT = f'data: {{"choices":[{{"index":0,"delta":{{"content":"{TEXT}"}}}}]}}\n\n'.encode()

TOOL_CALLS = [
    (CHAT, delta({"tool_calls": [{"index": 0, "function": {"arguments": TEXT}}]})),
    (MESSAGES, typed("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": TEXT})),
    (
        OLLAMA_CHAT,
        line({"message": {"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": TEXT}}}]}}),
    ),
]


async def assert_whole(api: Api, event: bytes, *, bytes_each: int = 3) -> None:
    """A few bytes a write; the token is there when its event is complete, which is with its last byte."""
    assert TEXT.encode() in event
    async with staged(api, event[:-1], event[-1:], pieces=bytes_each) as (script, router, answer):
        assert answer.body == event
        assert b"\xef\xbf\xbd" not in answer.body
        script.assert_first_token_in(1, router)


async def test_the_event_of_the_report_arrives_as_it_was_sent() -> None:
    await assert_whole(CHAT, AS_IN_THE_REPORT, bytes_each=1)


@each_api
async def test_text_of_every_api_arrives_as_it_was_sent(api: Api) -> None:
    await assert_whole(api, api.token(TEXT))


@pytest.mark.parametrize(("api", "event"), TOOL_CALLS, ids=lambda value: str(value) if isinstance(value, Api) else "")
async def test_arguments_of_tools_arrive_as_they_were_sent(api: Api, event: bytes) -> None:
    await assert_whole(api, event)


async def test_a_token_behind_the_first_is_counted_once_however_it_is_cut() -> None:
    tokens = b"".join(CHAT.token(TEXT) for _ in range(3))
    async with staged(CHAT, CHAT.token("a"), tokens, pieces=2) as (script, router, _):
        script.assert_first_token_in(0, router)
        assert router.metric("twolane_tokens_total", direction="out") == 4


async def test_an_answer_in_one_piece_is_whole_as_well() -> None:
    body = json.dumps({"choices": [{"message": {"content": TEXT}}]}, ensure_ascii=False).encode()

    async def byte_by_byte(request: Received, peer: Peer) -> None:
        await peer.head("200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}")
        for byte in body:
            await peer.send(bytes([byte]))

    async with CHAT.backend(byte_by_byte) as backend, router_for(backend) as router:
        answer = await router.post(CHAT.path, CHAT.body(stream=False))
        assert answer.complete
        assert answer.body == body


async def test_text_of_the_question_reaches_the_backend_as_it_was_sent_also_where_the_model_is_renamed() -> None:
    async with CHAT.backend() as backend, router_for(backend, models={"fast": {"b0": "m"}}) as router:
        for body in (
            json.dumps({"model": "fast", "messages": [{"role": "user", "content": TEXT}]}, ensure_ascii=False),
            json.dumps({"messages": [{"role": "user", "content": TEXT}], "model": "fast"}),
        ):
            assert (await router.post(CHAT.path, body.encode())).status == 200
            assert backend.received[-1].body == body.replace('"fast"', '"m"').encode()

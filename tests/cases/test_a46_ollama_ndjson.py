"""A46: Ollama streams lines of JSON, and streams unless it is told not to."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tests.cases.apis import OLLAMA_CHAT, OLLAMA_GENERATE, Api, line
from tests.cases.staged import staged
from tests.router.running import router_for
from tests.scripted import Peer, Received

GAP_S = 0.04
TYPES = ["application/x-ndjson", "application/x-ndjson; charset=utf-8", "application/ndjson", "APPLICATION/X-NDJSON"]


def message(fields: dict[str, Any], **more: Any) -> bytes:
    return line({"message": {"role": "assistant", **fields}, "done": False, **more})


OPENING = message({"content": ""})
END = orjson.dumps({"done": True, "prompt_eval_count": 7, "eval_count": 1})


async def test_lines_cut_and_joined_and_the_last_one_without_its_end() -> None:
    """Called without `stream`."""
    pieces = (OPENING[:9], OPENING[9:], message({"content": "a"}) + END[:4], END[4:])
    go_on = asyncio.Event()
    began_s: list[float] = []

    async def script(request: Received, peer: Peer) -> None:
        assert b"stream" not in request.body
        await peer.stream_head(content_type="application/x-ndjson")
        for number, piece in enumerate(pieces):
            if number == 2:
                await asyncio.sleep(GAP_S)
                began_s.append(asyncio.get_running_loop().time())
            await peer.chunk(piece)
            await go_on.wait()
            go_on.clear()
        await peer.last_chunk()

    async with OLLAMA_CHAT.backend(script) as backend, router_for((backend, {"engine": "ollama"})) as router:
        async with await router.client() as client:
            await client.post(OLLAMA_CHAT.path, OLLAMA_CHAT.call)
            answer = await client.answer(head_only=True)
            assert answer.header("transfer-encoding") == "chunked"
            assert answer.header("x-accel-buffering") == "no"
            for piece in pieces:  # each arrives before the next is written
                assert await asyncio.wait_for(client.piece(answer), 5.0) == piece
                go_on.set()
            await client.rest(answer)
        assert (answer.complete, answer.body) == (True, b"".join(pieces))
        async with asyncio.timeout(5):
            while not router.metric("twolane_calls_total", outcome="completed"):
                await asyncio.sleep(0.002)
        assert router.metric("twolane_ttft_seconds_count") == 1
        assert router.metric("twolane_ttft_seconds_sum") >= GAP_S
        assert router.metric("twolane_tokens_total", direction="in") == 7
        assert router.metric("twolane_tokens_total", direction="out") == 1


TOOL = {"function": {"name": "read", "arguments": {"path": "a"}}}
FIRST: list[tuple[Api, bytes, bytes]] = [
    (OLLAMA_CHAT, OPENING, message({"content": "a"})),
    (OLLAMA_CHAT, OPENING, message({"content": "", "thinking": "Hm"})),
    (OLLAMA_CHAT, OPENING, message({"content": "", "tool_calls": [TOOL]})),
    (OLLAMA_CHAT, message({"content": "", "thinking": ""}), message({"thinking": "Hm"})),
    (OLLAMA_CHAT, message({"content": "", "tool_calls": []}), message({"content": "a"})),
    (OLLAMA_CHAT, b"\n", message({"content": "渐😀"})),
    (OLLAMA_CHAT, OPENING, message({"content": "a"}).replace(b":", b" : ").replace(b",", b" ,\t")),
    (OLLAMA_GENERATE, OLLAMA_GENERATE.opening, OLLAMA_GENERATE.token("a")),
    (OLLAMA_GENERATE, OLLAMA_GENERATE.opening, line({"response": "", "thinking": "Hm", "done": False})),
]


@pytest.mark.parametrize(("api", "opening", "first"), FIRST, ids=range(len(FIRST)))
async def test_what_counts_as_the_first_token(api: Api, opening: bytes, first: bytes) -> None:
    async with staged(api, opening, first, END + b"\n") as (script, router, _):
        script.assert_first_token_in(1, router)
        assert router.metric("twolane_tokens_total", direction="in") == 7


@pytest.mark.parametrize("content_type", TYPES)
async def test_the_type_is_recognised_however_it_is_written(content_type: str) -> None:
    stages = (OPENING, message({"content": "a"}), END + b"\n")
    async with staged(OLLAMA_CHAT, *stages, content_type=content_type) as (script, router, answer):
        script.assert_first_token_in(1, router)
        assert answer.header("content-type") == content_type


@pytest.mark.parametrize("separator", [b"\r\n", b"\n\n", b"\r\n\r\n"])
async def test_other_line_ends(separator: bytes) -> None:
    stages = tuple(part.rstrip(b"\n") + separator for part in (OPENING, message({"content": "a"}), END))
    async with staged(OLLAMA_CHAT, *stages) as (script, router, _):
        script.assert_first_token_in(1, router)
        assert router.metric("twolane_tokens_total", direction="out") == 1


async def explained(router: Any, path: str, body: object) -> dict[str, Any]:
    answer = await router.admin("POST", "/explain", orjson.dumps({"path": path, "headers": {}, "body": body}))
    document: dict[str, Any] = answer.json()
    return document


@pytest.mark.parametrize("api", [OLLAMA_CHAT, OLLAMA_GENERATE], ids=str)
async def test_it_streams_unless_it_is_told_not_to(api: Api) -> None:
    # By the table of shapes: a model may know better what a call without a stream waits for.
    by_shape = {"model": "off"}
    async with api.backend() as backend, router_for((backend, {"engine": "ollama"}), classify=by_shape) as router:
        for more, streams in (
            ({}, True),
            ({"stream": True}, True),
            ({"stream": None}, True),
            ({"stream": False}, False),
        ):
            found = await explained(router, api.path, {**api.call, **more})
            assert found["features"]["stream"] is streams
            assert (found["class"] == "ttft") is streams


@pytest.mark.parametrize("api", [OLLAMA_CHAT, OLLAMA_GENERATE], ids=str)
async def test_a_whole_answer_is_counted_and_no_first_token_is_made_up(api: Api) -> None:
    async with api.backend(_whole(api)) as backend, router_for((backend, {"engine": "ollama"})) as router:
        answer = await router.post(api.path, api.body(stream=False))
        assert answer.json() == api.whole
        async with asyncio.timeout(5):
            while not router.metric("twolane_calls_total"):
                await asyncio.sleep(0.002)
        assert router.metric("twolane_ttft_seconds_count") == 0
        assert router.metric("twolane_tokens_total", direction="in") == 5


def _whole(api: Api) -> Any:
    async def script(request: Received, peer: Peer) -> None:
        await peer.json(api.whole)

    return script


async def test_a_model_that_is_loaded_on_demand_makes_no_token() -> None:
    """Ollama answers a call without messages, which loads a model, with a single line."""
    loaded = line({"model": "m", "message": {"role": "assistant", "content": ""}, "done_reason": "load", "done": True})
    async with staged(OLLAMA_CHAT, loaded) as (_, router, _):
        assert router.metric("twolane_ttft_seconds_count") == 0
        assert router.metric("twolane_calls_total", outcome="completed") == 1

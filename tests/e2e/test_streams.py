"""Many streams from real llama.cpp, in a row and at once, and what it does that makes life hard for a proxy.

It promises to keep a connection after a stream and closes it at once. With few HTTP threads its /health can hang while
all of them are busy with streams. It answers 200 long before the first token.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import orjson
import pytest

from bench.model_maker import ModelFiles
from bench.random_llama.recipe import follows_circle
from bench.servers.engines import LlamaCppServer
from bench.servers.router import RouterProcess
from tests.e2e.calls import QUESTION, chat, gather_posts, post, running_streams
from tests.e2e.conftest import StartRouter

pytestmark = pytest.mark.llamacpp

TTFT = {"x-twolane-class": "ttft"}


def text_of(body: bytes) -> str:
    lines = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: {")]
    choices = [choice for line in lines for choice in orjson.loads(line)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


async def test_forty_streams_in_a_row_all_arrive(two_lanes: RouterProcess, http: aiohttp.ClientSession) -> None:
    for _ in range(40):
        reply = await post(http, two_lanes.url, chat(QUESTION, max_tokens=5, stream=True), headers=TTFT)
        assert reply.status == 200
        assert len(text_of(reply.body).split()) == 5
        assert reply.body.endswith(b"data: [DONE]\n\n")


async def test_streams_and_whole_answers_take_turns_on_kept_connections(
    two_lanes: RouterProcess, http: aiohttp.ClientSession
) -> None:
    for number in range(30):
        reply = await post(http, two_lanes.url, chat(QUESTION, max_tokens=3, stream=number % 3 == 0), headers=TTFT)
        assert reply.status == 200


async def test_streams_at_once_are_not_mixed_up(two_lanes: RouterProcess, http: aiohttp.ClientSession) -> None:
    prompts = [f"Tell me of number {number}" for number in range(32)]
    replies = await asyncio.gather(
        *(post(http, two_lanes.url, chat(prompt, max_tokens=40, stream=True)) for prompt in prompts)
    )
    texts = [text_of(reply.body) for reply in replies]
    assert all(follows_circle(text) and len(text.split()) == 40 for text in texts)
    assert {reply.lane for reply in replies} == {"desk", "rack"}


async def test_the_first_token_is_passed_on_while_the_rest_is_made(
    two_lanes: RouterProcess, desk: LlamaCppServer, http: aiohttp.ClientSession
) -> None:
    async with running_streams(http, two_lanes.url, 1, headers=TTFT) as (stream,):
        assert b'"content"' in await stream.content.readline() + await stream.content.readline()
        assert desk.busy_slots() == 1


async def test_a_server_with_too_few_threads_for_its_health_is_not_taken_for_dead(
    model: ModelFiles, start_router: StartRouter, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    with LlamaCppServer(model.gguf, slots=2, threads_http=1, log=tmp_path / "few.log") as server:
        health = {"interval": "100ms", "timeout": "150ms", "down_after": 2}
        # More calls than slots: each takes an HTTP thread there, whether it has a slot or waits for one. Probes then
        # go without an answer for seconds, or not, as its pool of threads grows; that tokens flow is health enough.
        router = start_router({"backends": [{"name": "box", "url": server.url, "max_inflight": 24}], "health": health})
        body = chat(QUESTION, max_tokens=300, stream=True, model=server.name)
        replies = await gather_posts(http, router.url, [body] * 24, headers=TTFT)
        assert [len(text_of(reply.body).split()) for reply in replies] == [300] * 24
        assert "backend_down" not in router.process.output()
        assert router.backends()["box"]["health"] == "up"

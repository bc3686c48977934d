"""A23: the process that answers health checks lives, the one that generates is dead; every call hangs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cases.apis import CHAT, Api, each_api, each_sse_api, sse, typed
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, Script, ScriptedBackend, eventually

INTERACTIVE = "X-Twolane-Class: interactive"
DIES_AFTER = 3
LIMITS: dict[str, Any] = {
    "timeouts": {"first_byte": "100ms", "idle": "100ms"},
    "health": {"interval": "50ms", "break_after": DIES_AFTER, "retry_after": "250ms"},
}
OTHER_LANE = {"lane": "throughput"}


async def head_then_silence(request: Received, peer: Peer) -> None:
    await peer.stream_head()
    await peer.until_closed()


async def silence(request: Received, peer: Peer) -> None:
    await peer.until_closed()


async def length_then_silence(request: Received, peer: Peer) -> None:
    await peer.head("200 OK", "Content-Type: application/json", "Content-Length: 100")
    await peer.until_closed()


async def closes(request: Received, peer: Peer) -> None:
    peer.writer.close()


async def says_500(request: Received, peer: Peer) -> None:
    await peer.json({"error": {"message": "EngineCore encountered an issue", "code": 500}}, "500 Internal Server Error")


async def says_so_in_the_stream(request: Received, peer: Peer) -> None:
    await peer.stream_head()
    await peer.chunk(
        sse({"error": {"message": "EngineCore encountered an issue", "type": "InternalServerError", "code": 500}})
    )
    await peer.chunk(b"data: [DONE]\n\n")
    await peer.last_chunk()


DEATHS = [head_then_silence, silence, length_then_silence, closes, says_500, says_so_in_the_stream]
each_death = pytest.mark.parametrize("death", DEATHS, ids=lambda death: death.__name__)


@dataclass
class Mortal:
    """Dead in one of these ways, until it is not."""

    death: Script
    alive: bool = False

    async def __call__(self, request: Received, peer: Peer) -> None:
        if self.alive:
            await peer.json(CHAT.whole)
        else:
            await self.death(request, peer)


def state(router: Running) -> str:
    return str(router.app.fleet.backends()[0].health.state)


@each_death
async def test_it_leaves_though_its_probe_is_green_and_one_trial_lets_it_back(death: Script) -> None:
    mortal = Mortal(death)
    async with ScriptedBackend(mortal) as first, ScriptedBackend() as second:
        async with router_for(first, (second, OTHER_LANE), **LIMITS) as router:
            for number in range(DIES_AFTER):
                assert state(router) == "up"
                answer = await asyncio.wait_for(router.post(CHAT.path, CHAT.body(stream=True), INTERACTIVE), 5.0)
                assert len(first.received) == number + 1
                assert answer.status >= 500 or not answer.complete or b'"error"' in answer.body
                await eventually(lambda: router.idle)
            assert state(router) == "broken"
            probed = len(first.probed)
            await eventually(lambda: len(first.probed) > probed + 2)
            assert state(router) == "broken"

            answer = await router.post(CHAT.path, CHAT.body(stream=True), INTERACTIVE)
            assert answer.header("x-twolane-backend") == "b1"
            assert len(first.received) == DIES_AFTER

            mortal.alive = True
            while (await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)).header(
                "x-twolane-backend"
            ) != "b0":
                await asyncio.sleep(0.02)
            assert state(router) == "up"
            assert len(first.received) == DIES_AFTER + 1


@each_api
async def test_a_call_that_hangs_ends_with_an_error_in_every_api(api: Api) -> None:
    async def hangs(request: Received, peer: Peer) -> None:
        await peer.stream_head(content_type=api.content_type)
        await peer.chunk(api.opening)
        await peer.until_closed()

    async with api.backend(hangs) as backend, router_for((backend, api.settings), **LIMITS) as router:
        answer = await asyncio.wait_for(router.post(api.path, api.body(stream=True)), 5.0)
        assert not answer.complete
        assert b"timeouts.idle" in answer.body
        await eventually(lambda: backend.peers[0].closed_s is not None)
        assert router.metric("twolane_calls_total", outcome="backend_error") == 1


async def test_the_trial_is_one_call_however_many_wait() -> None:
    async with ScriptedBackend(silence) as backend, router_for(backend, **LIMITS) as router:
        for _ in range(DIES_AFTER):
            assert (await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)).status == 504
        assert state(router) == "broken"
        waiting = [
            asyncio.get_running_loop().create_task(router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE))
            for _ in range(10)
        ]
        await eventually(lambda: len(backend.received) == DIES_AFTER + 1)
        assert (await asyncio.wait(waiting, timeout=5.0, return_when=asyncio.FIRST_COMPLETED))[0]
        assert len(backend.received) == DIES_AFTER + 1
        backend.script = Mortal(silence, alive=True)
        answers = await asyncio.wait_for(asyncio.gather(*waiting), 10.0)
        assert sorted(answer.status for answer in answers) == [200] * 9 + [504]


async def test_a_trial_whose_client_leaves_decides_nothing_and_blocks_nobody() -> None:
    async with ScriptedBackend(silence) as backend, router_for(backend, **LIMITS) as router:
        for _ in range(DIES_AFTER):
            assert (await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)).status == 504
        client = await router.client()
        await client.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)
        await eventually(lambda: len(backend.received) == DIES_AFTER + 1)
        client.close()
        await eventually(lambda: router.idle)
        assert state(router) == "broken"
        backend.script = Mortal(silence, alive=True)
        assert (await asyncio.wait_for(router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE), 5.0)).status == 200
        assert state(router) == "up"


async def test_failures_count_in_a_row_only() -> None:
    mortal = Mortal(says_500)
    async with ScriptedBackend(mortal) as backend, router_for(backend, **LIMITS) as router:
        for _ in range(3):
            mortal.alive = False
            for _ in range(DIES_AFTER - 1):
                assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 500
            mortal.alive = True
            assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 200
        assert state(router) == "up"


NO_IMAGES = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
NO_VECTORS = "This server does not support embeddings. Start it with `--embeddings`"


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        ("500 Internal Server Error", NO_IMAGES, "up"),
        ("501 Not Implemented", NO_VECTORS, "up"),
        ("500 Internal Server Error", "Compute error.", "broken"),
        ("502 Bad Gateway", NO_IMAGES, "broken"),
    ],
)
@pytest.mark.parametrize("pings", [False, True])
async def test_a_call_that_a_server_cannot_do_takes_it_from_nobody_else(
    status: str, message: str, expected: str, pings: bool
) -> None:
    """llama.cpp says 500 to an image without a model for it, and 501 to what it was not started with."""
    document = {"error": {"code": int(status[:3]), "message": message, "type": "server_error"}}

    async def script(request: Received, peer: Peer) -> None:
        await asyncio.sleep(0.02)
        await peer.json(document, status)

    line = {"queue_pings": "10ms"} if pings else {}
    settings = {"engine": "llamacpp", "max_inflight": 1}
    async with ScriptedBackend(script) as backend, router_for((backend, settings), line=line, **LIMITS) as router:
        calls = [router.post(CHAT.path, CHAT.body(stream=True)) for _ in range(DIES_AFTER)]
        for answer in await asyncio.gather(*calls):
            assert message.encode() in answer.body
        await eventually(lambda: router.idle)
        assert state(router) == expected
        assert router.metric("twolane_calls_total", outcome="backend_error") == DIES_AFTER


OWN_FAULT = {"message": "engine is dead", "type": "server_error", "code": 500}
CALLS_FAULT = {"message": "unknown tool", "type": "invalid_request_error", "code": 400}


def told_in_the_stream(api: Api, error: dict[str, Any]) -> bytes:
    match api.name:
        case "messages":
            kind = "api_error" if error is OWN_FAULT else error["type"]
            return typed("error", error={"type": kind, "message": error["message"]})
        case "responses":
            return typed("response.failed", response={"id": "r1", "status": "failed", "error": {"code": error["type"]}})
        case _:
            return sse({"error": error})


@each_sse_api
@pytest.mark.parametrize(("error", "expected"), [(OWN_FAULT, "broken"), (CALLS_FAULT, "up")])
async def test_an_error_in_the_stream_counts_where_the_server_calls_it_its_own(
    api: Api, error: dict[str, Any], expected: str
) -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        await peer.chunk(api.opening + told_in_the_stream(api, error))
        await peer.last_chunk()

    async with api.backend(script) as backend, router_for((backend, api.settings), **LIMITS) as router:
        for _ in range(DIES_AFTER):
            assert (await router.post(api.path, api.body(stream=True))).status == 200
            await eventually(lambda: router.idle)
        assert state(router) == expected
        assert router.metric("twolane_calls_total", outcome="backend_error") == DIES_AFTER

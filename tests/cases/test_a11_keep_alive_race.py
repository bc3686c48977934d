"""A11: the backend closes an idle connection in the moment in which the next call is sent on it."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack

import pytest

from tests.cases.apis import CHAT
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, echo, eventually

INTERACTIVE = "X-Twolane-Class: interactive"
PAIRS = 50
CALLS_EACH = 4
IDLE_S = 0.4
JITTER_S = 0.004


async def test_two_hundred_calls_in_the_very_moment() -> None:
    chance = random.Random(11)
    async with AsyncExitStack() as stack:
        backends = [
            await stack.enter_async_context(ScriptedBackend(models=(f"m{number}",), keep_alive_s=IDLE_S))
            for number in range(PAIRS)
        ]
        router = await stack.enter_async_context(router_for(*backends))

        async def one_client(model: str) -> list[int]:
            statuses = []
            async with await router.client() as client:
                for _ in range(CALLS_EACH):
                    await client.post(CHAT.path, {**CHAT.body(stream=False), "model": model})
                    statuses.append((await client.answer()).status)
                    await asyncio.sleep(IDLE_S + chance.uniform(-JITTER_S, JITTER_S))
            return statuses

        statuses = await asyncio.gather(*(one_client(f"m{number}") for number in range(PAIRS)))
        assert statuses == [[200] * CALLS_EACH] * PAIRS
        assert [len(backend.received) for backend in backends] == [CALLS_EACH] * PAIRS


async def warm(router: Running) -> None:
    """Leave a connection to the backend that is idle."""
    assert (await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)).status == 200


@pytest.mark.parametrize("kept", [False, True], ids=["fresh", "kept"])
@pytest.mark.parametrize("stream", [False, True])
async def test_who_read_the_whole_call_and_then_closed_may_have_generated(kept: bool, stream: bool) -> None:
    async def closes(request: Received, peer: Peer) -> None:
        if kept and len(first.received) == 1:
            await echo(request, peer)
        else:
            peer.writer.close()

    async with ScriptedBackend(closes) as first, ScriptedBackend() as second:
        async with router_for(first, (second, {"lane": "throughput"})) as router:
            if kept:
                await warm(router)
            answer = await router.post(CHAT.path, CHAT.body(stream=stream), INTERACTIVE)
            assert answer.status == 502
            assert len(first.received) == 1 + kept
            assert second.received == []


async def test_who_read_the_whole_call_on_a_fresh_connection_and_reset_it_may_have_generated() -> None:
    async def resets(request: Received, peer: Peer) -> None:
        peer.reset()

    async with ScriptedBackend(resets) as first, ScriptedBackend() as second:
        async with router_for(first, (second, {"lane": "throughput"})) as router:
            answer = await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)
            assert answer.status == 502
            assert len(first.received) == 1
            assert second.received == []


async def test_a_backend_that_restarted_between_two_calls_gets_the_second_once() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        await warm(router)
        await backend.stop()
        await backend.__aenter__()
        await eventually(lambda: router.app.fleet.backends()[0].health.state == "up")
        assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 200
        assert len(backend.received) == 2


async def test_a_connection_that_the_backend_wants_closed_is_not_used_again() -> None:
    async def once(request: Received, peer: Peer) -> None:
        await peer.json(CHAT.whole, "200 OK", "Connection: close")

    async with ScriptedBackend(once) as backend, router_for(backend) as router, await router.client() as client:
        for _ in range(5):
            await client.post(CHAT.path, CHAT.body(stream=False))
            answer = await client.answer()
            assert answer.status == 200
            assert answer.header("connection") is None  # that was between the router and its backend
        assert len({id(peer) for peer in backend.peers}) == 5

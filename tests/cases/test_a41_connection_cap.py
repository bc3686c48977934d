"""A41: calls are counted by those who know the backends, not by a pool that silently lets a hundred through."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.cases.apis import CHAT
from tests.rawclient import Answer, RawClient
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

CALLS = 300
SOON_S = 10.0
"""The case says one second; here all three hundred, client, router and backend share one core with other work."""


class Held:
    """A backend that holds every stream open after its first token."""

    def __init__(self) -> None:
        self.open = 0
        self.most = 0
        self.go_on = asyncio.Event()

    async def __call__(self, request: Received, peer: Peer) -> None:
        self.open += 1
        self.most = max(self.most, self.open)
        await peer.stream_head()
        await peer.chunk(CHAT.token("a"))
        await self.go_on.wait()
        await peer.chunk(CHAT.token("b"))
        await peer.last_chunk()
        self.open -= 1


@asynccontextmanager
async def calls(router: Running) -> AsyncIterator[list[asyncio.Task[Answer]]]:
    """Three hundred streams, on their way when this is entered."""

    async def call() -> Answer:
        async with await RawClient.connect(router.port) as client:
            await client.post(CHAT.path, CHAT.body(stream=True), "X-Twolane-Class: interactive")
            return await client.answer()

    async with asyncio.TaskGroup() as group:
        yield [group.create_task(call()) for _ in range(CALLS)]


async def test_three_hundred_streams_at_once() -> None:
    held = Held()
    async with CHAT.backend(held) as backend, router_for(backend) as router:
        async with calls(router) as answers:
            await eventually(lambda: held.open == CALLS, within_s=SOON_S)
            assert router.metric("twolane_backend_inflight") == CALLS
            assert router.metric("twolane_line_waiting") == 0
            held.go_on.set()
        assert {(answer.status, answer.body) for answer in map(asyncio.Task.result, answers)} == {
            (200, CHAT.token("a") + CHAT.token("b"))
        }


@pytest.mark.parametrize("cap", [7, 50])
async def test_a_cap_is_kept_to_the_call_and_who_waits_is_seen(cap: int) -> None:
    held = Held()
    async with CHAT.backend(held) as backend, router_for((backend, {"max_inflight": cap})) as router:
        async with calls(router) as answers:
            await eventually(lambda: held.open == cap and len(router.app.line) == CALLS - cap, within_s=SOON_S)
            assert router.metric("twolane_backend_inflight") == cap
            assert router.metric("twolane_line_waiting", **{"class": "ttft"}) == CALLS - cap
            assert router.metric("twolane_open_calls") == CALLS
            held.go_on.set()
        assert {answer.status for answer in map(asyncio.Task.result, answers)} == {200}
        assert held.most == cap
        assert router.metric("twolane_queue_seconds_count") == CALLS


async def test_two_backends_share_them() -> None:
    one, two = Held(), Held()
    async with CHAT.backend(one) as first, ScriptedBackend(two) as second, router_for(first, second) as router:
        async with calls(router):
            await eventually(lambda: one.open + two.open == CALLS, within_s=SOON_S)
            assert abs(one.open - two.open) <= 20
            one.go_on.set()
            two.go_on.set()

"""A24: a busy server is late with its health check; marked dead, its load moves on and kills the next one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cases.apis import CHAT, MESSAGES, OLLAMA_CHAT, Api
from tests.rawclient import Answer, RawClient
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

DOWN_AFTER = 3
HASTY: dict[str, Any] = {"health": {"interval": "30ms", "timeout": "60ms", "down_after": DOWN_AFTER}}
LLAMACPP = {"engine": "llamacpp"}
MANY_MISSES = DOWN_AFTER + 2


@dataclass
class Busy:
    """Streams a token now and then, for as long as it should; late with its health check while it is busy."""

    api: Api = CHAT
    late: bool = False
    status: str = ""
    """Given at once in place of a late answer."""
    streams: bool = True
    over: asyncio.Event = field(default_factory=asyncio.Event)
    missed: int = 0

    async def call(self, request: Received, peer: Peer) -> None:
        if not self.streams:
            await self.over.wait()
            await peer.json(self.api.whole)
            return
        await peer.stream_head(content_type=self.api.content_type)
        while not self.over.is_set():
            await peer.chunk(self.api.token("a"))
            await asyncio.sleep(0.02)
        await peer.chunk(self.api.ending)
        await peer.last_chunk()

    async def health(self, request: Received, peer: Peer) -> None:
        if not self.late:
            await peer.json({"status": "ok", "version": "1"})
        elif self.status:
            self.missed += 1
            await peer.json({"error": {"message": "busy"}}, self.status)
        else:
            self.missed += 1
            await peer.until_closed()  # the prober gives up first

    def backend(self) -> ScriptedBackend:
        path = "/api/version" if self.api.engine == "ollama" else "/health"
        return ScriptedBackend(self.call, probes={**self.api.probes, path: self.health})


def state(router: Running, number: int = 0) -> str:
    return str(router.app.fleet.backends()[number].health.state)


async def begun(router: Running, api: Api = CHAT) -> tuple[RawClient, Answer]:
    """A stream that has had its first token."""
    client = await router.client()
    await client.post(api.path, api.body(stream=True), "X-Twolane-Class: interactive")
    answer = await client.answer(head_only=True)
    await client.piece(answer)
    return client, answer


@pytest.mark.parametrize(
    ("api", "status"),
    [
        (CHAT, ""),
        (CHAT, "503 Busy"),
        (CHAT, "500 Oh No"),
        (MESSAGES, ""),
        (OLLAMA_CHAT, ""),
        (OLLAMA_CHAT, "500 Oh No"),
    ],
    ids=str,
)
async def test_a_server_whose_streams_go_on_stays_whatever_its_probe_says(api: Api, status: str) -> None:
    busy = Busy(api, status=status)
    engine = "llamacpp" if api.engine == "openai" else api.engine  # one that has a health check
    async with busy.backend() as backend:
        async with router_for((backend, {"engine": engine, "max_inflight": 4}), **HASTY) as router:
            await assert_stays(busy, router)


async def assert_stays(busy: Busy, router: Running) -> None:
    client, answer = await begun(router, busy.api)
    busy.late = True
    await eventually(lambda: busy.missed >= MANY_MISSES)
    assert state(router) == "up"
    second, more = await begun(router, busy.api)  # and it gets new calls
    busy.over.set()
    for one, rest in ((client, answer), (second, more)):
        await one.rest(rest)
        assert rest.complete
        one.close()


async def test_the_load_does_not_move_to_the_next_one() -> None:
    first, second = Busy(), Busy()
    async with first.backend() as one, second.backend() as other:
        both = [(one, LLAMACPP), (other, LLAMACPP)]
        async with router_for(*both, policy="round_robin", **HASTY) as router:
            streams = [await begun(router) for _ in range(4)]
            first.late = second.late = True
            await eventually(lambda: min(first.missed, second.missed) >= MANY_MISSES)
            assert (state(router, 0), state(router, 1)) == ("up", "up")
            assert (len(one.received), len(other.received)) == (2, 2)
            first.over.set()
            second.over.set()
            for client, answer in streams:
                await client.rest(answer)
                assert answer.complete
                client.close()


async def test_short_calls_that_succeed_count_as_health() -> None:
    busy = Busy(streams=False)
    busy.over.set()
    async with busy.backend() as backend, router_for((backend, LLAMACPP), **HASTY) as router:
        busy.late = True
        while busy.missed < MANY_MISSES:
            assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 200
            assert state(router) == "up"


async def test_an_idle_server_leaves_after_several_misses_and_comes_back_with_one_answer() -> None:
    busy = Busy()
    async with busy.backend() as backend, router_for((backend, LLAMACPP), **HASTY) as router:
        busy.late = True
        await eventually(lambda: state(router) == "down")
        assert busy.missed >= DOWN_AFTER
        assert "3 probes in a row" in router.app.fleet.backends()[0].health.reason
        assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 503
        busy.late = False
        await eventually(lambda: state(router) == "up")


async def test_one_late_answer_between_good_ones_is_none() -> None:
    busy = Busy()
    async with busy.backend() as backend, router_for((backend, LLAMACPP), **HASTY) as router:
        for _ in range(DOWN_AFTER + 1):
            missed = busy.missed
            busy.late = True
            await eventually(lambda missed=missed: busy.missed > missed)  # type: ignore[misc]
            busy.late = False
            probed = len(backend.probed)
            await eventually(lambda probed=probed: len(backend.probed) > probed + 2)  # type: ignore[misc]
            assert state(router) == "up"


async def test_a_long_call_that_ends_well_brings_back_a_server_that_was_late_for_too_long() -> None:
    busy = Busy(streams=False)
    async with busy.backend() as backend, router_for((backend, LLAMACPP), **HASTY) as router:
        call = asyncio.get_running_loop().create_task(router.post(CHAT.path, CHAT.body(stream=False)))
        await eventually(lambda: len(backend.received) == 1)
        busy.late = True
        await eventually(lambda: state(router) == "down")
        assert not call.done()  # taken out, not cut off
        busy.over.set()
        assert (await asyncio.wait_for(call, 5.0)).status == 200
        await eventually(lambda: state(router) == "up")
        assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 200

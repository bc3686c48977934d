"""An ended call is freed by its last reference, however it ended: none waits for the collector of cycles.

A cycle would keep what the router knows of the call, its prompt's hashes among it, until Python next looks for cycles,
which stops all streams.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from router.fleet.health import State
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, echo, eventually

CHAT = "/v1/chat/completions"
OURS = {"router", "policies", "classifiers"}


def chat(**rest: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], **rest}


async def tokens(request: Received, peer: Peer) -> None:
    await peer.stream_head()
    for number in range(3):
        await peer.token(str(number))
    await peer.last_chunk()


async def endless(request: Received, peer: Peer) -> None:
    await peer.stream_head()
    await peer.token("a")
    await peer.until_closed()


async def silent(request: Received, peer: Peer) -> None:
    await peer.until_closed()


async def breaks(request: Received, peer: Peer) -> None:
    await peer.stream_head()
    await peer.token("a")
    peer.reset()


async def fails(request: Received, peer: Peer) -> None:
    await peer.json({"error": {"message": "out of memory"}}, "500 Internal Server Error")


async def whole(router: Running, backend: ScriptedBackend) -> None:
    await router.post(CHAT, chat())


async def stream(router: Running, backend: ScriptedBackend) -> None:
    await router.post(CHAT, chat(stream=True))


async def refused(router: Running, backend: ScriptedBackend) -> None:
    assert (await router.post(CHAT, b"{")).status == 400


async def broken(router: Running, backend: ScriptedBackend) -> None:
    async with await router.client() as client:
        await client.post(CHAT, chat(stream=True))
        answer = await client.answer(head_only=True)
        await client.rest(answer)


async def left_while_streaming(router: Running, backend: ScriptedBackend) -> None:
    async with await router.client() as client:
        await client.post(CHAT, chat(stream=True))
        await client.piece(await client.answer(head_only=True))
        client.reset()


async def left_before_the_answer(router: Running, backend: ScriptedBackend) -> None:
    before = len(backend.received)
    async with await router.client() as client:
        await client.post(CHAT, chat())
        await eventually(lambda: len(backend.received) > before)


@asynccontextmanager
async def one_in_line(router: Running) -> AsyncIterator[None]:
    """Behind one that has the only slot."""
    async with await router.client() as first, await router.client() as second:
        await first.post(CHAT, chat())
        await eventually(lambda: router.app.gateway.open_calls == 1)
        await second.post(CHAT, chat())
        await eventually(lambda: len(router.app.line) == 1)
        yield


async def left_in_line(router: Running, backend: ScriptedBackend) -> None:
    async with one_in_line(router):
        pass


async def waited_too_long(router: Running, backend: ScriptedBackend) -> None:
    async with await router.client() as first, await router.client() as second:
        await first.post(CHAT, chat(stream=True))
        await eventually(lambda: router.app.gateway.open_calls == 1)
        await second.post(CHAT, chat(stream=True))
        assert (await second.answer()).status == 503


async def found_the_line_full(router: Running, backend: ScriptedBackend) -> None:
    async with one_in_line(router):
        assert (await router.post(CHAT, chat())).status == 429


async def not_taken(router: Running, backend: ScriptedBackend) -> None:
    await backend.stop()
    assert (await router.post(CHAT, chat())).status == 503
    async with AsyncExitStack() as again:
        await again.enter_async_context(backend)
        again.pop_all()
    await eventually(lambda: router.app.fleet.states() == {"b0": State.UP})


ENDINGS: dict[str, tuple[Callable[[Received, Peer], Awaitable[None]], Any, dict[str, Any]]] = {
    "whole": (echo, whole, {}),
    "stream": (tokens, stream, {}),
    "stream, timed": (tokens, stream, {"timeouts": {"first_token": "30s"}}),
    "refused": (echo, refused, {}),
    "500": (fails, whole, {}),
    "broken": (breaks, broken, {}),
    "client left while streaming": (endless, left_while_streaming, {}),
    "client left before the answer": (silent, left_before_the_answer, {}),
    "client left in line": (silent, left_in_line, {}),
    "line full": (silent, found_the_line_full, {"line": {"max_waiting": 1}}),
    "no connection": (echo, not_taken, {"health": {"interval": "100ms"}}),
    "waited too long": (silent, waited_too_long, {"classes": {"ttft": {"max_wait": "50ms"}}}),
}


@asynccontextmanager
async def collecting() -> AsyncIterator[list[object]]:
    """What only the collector has freed meanwhile, as far as it is the router's."""
    found: list[object] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        await asyncio.sleep(0.05)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += [each for each in gc.garbage if type(each).__module__.partition(".")[0] in OURS]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("ending", ENDINGS)
async def test_nothing_of_an_ended_call_waits_for_the_collector(ending: str) -> None:
    script, happens, settings = ENDINGS[ending]
    async with (
        ScriptedBackend(script) as backend,
        router_for((backend, {"max_inflight": 1}), **settings) as router,
    ):
        await happens(router, backend)  # what is made once may be in cycles
        await eventually(lambda: router.idle)
        async with collecting() as found:
            for _ in range(3):
                await happens(router, backend)
                await eventually(lambda: router.idle)
        assert not found

"""A09: the client has left; whatever still works for it must stop, in every phase, and nobody else is to blame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import orjson
import pytest
import structlog.testing

from tests.cases.apis import CHAT, Api, each_api
from tests.rawclient import RawClient
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually, nobody_accepts

AT_ONCE_S = 1.0
Leave = Callable[[RawClient], None]

each_way = pytest.mark.parametrize("leave", [RawClient.close, RawClient.reset], ids=["close", "reset"])


async def silent(request: Received, peer: Peer) -> None:
    await peer.until_closed()


def three_tokens(api: Api) -> Callable[[Received, Peer], Awaitable[None]]:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head(content_type=api.content_type)
        await peer.chunk(api.opening)
        for text in "abc":
            await peer.chunk(api.token(text))
        await peer.until_closed()

    return script


@asynccontextmanager
async def nobody_else_is_blamed(
    backend: ScriptedBackend, api: Api, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[Running]:
    """A router that would take the backend out after one failed call. At the end it is up, idle and quiet."""
    with structlog.testing.capture_logs() as events:
        async with router_for((backend, api.settings), health={"break_after": 1}) as router:
            yield router
            await eventually(lambda: router.idle)
            assert router.metric("twolane_calls_total", outcome="client_gone") == 1
            assert router.metric("twolane_calls_total") == 1
            assert router.metric("twolane_backend_inflight") == 0
            assert router.metric("twolane_backend_up") == 1
    assert [event for event in events if event["log_level"] in ("warning", "error", "critical")] == []
    assert caplog.records == []


async def left(backend: ScriptedBackend, client: RawClient, leave: Leave) -> None:
    """The client leaves now; the backend's socket is closed at once."""
    left_s = asyncio.get_running_loop().time()
    leave(client)
    await eventually(lambda: backend.peers[0].closed_s is not None)
    assert (backend.peers[0].closed_s or 0.0) - left_s < AT_ONCE_S


@each_api
@each_way
@pytest.mark.parametrize("stream", [False, True])
async def test_before_the_head(api: Api, stream: bool, leave: Leave, caplog: pytest.LogCaptureFixture) -> None:
    async with api.backend(silent) as backend, nobody_else_is_blamed(backend, api, caplog) as router:
        client = await router.client()
        await client.post(api.path, api.body(stream=stream))
        await eventually(lambda: len(backend.peers) == 1)
        await left(backend, client, leave)


@each_api
@each_way
async def test_after_three_tokens(api: Api, leave: Leave, caplog: pytest.LogCaptureFixture) -> None:
    async with api.backend(three_tokens(api)) as backend, nobody_else_is_blamed(backend, api, caplog) as router:
        client = await router.client()
        await client.post(api.path, api.body(stream=True))
        answer = await client.answer(head_only=True)
        while not answer.body.endswith(api.token("c")):
            await client.piece(answer)
        await left(backend, client, leave)


@each_way
async def test_in_the_middle_of_an_answer_of_known_length(leave: Leave, caplog: pytest.LogCaptureFixture) -> None:
    async def half(request: Received, peer: Peer) -> None:
        await peer.head("200 OK", "Content-Type: application/json", "Content-Length: 1000")
        await peer.send(b'{"choices":')
        await peer.until_closed()

    async with CHAT.backend(half) as backend, nobody_else_is_blamed(backend, CHAT, caplog) as router:
        client = await router.client()
        await client.post(CHAT.path, CHAT.body(stream=False))
        await client.answer(head_only=True)
        await left(backend, client, leave)


@each_way
async def test_before_the_whole_body_was_sent(leave: Leave, caplog: pytest.LogCaptureFixture) -> None:
    async with CHAT.backend() as backend, nobody_else_is_blamed(backend, CHAT, caplog) as router:
        client = await router.client()
        body = orjson.dumps(CHAT.body(stream=False))
        await client.send(f"POST {CHAT.path} HTTP/1.1\r\nHost: r\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        await client.send(body[:10])
        await eventually(lambda: router.app.gateway.open_calls == 1)
        leave(client)
        await eventually(lambda: router.idle)
        assert backend.received == []


@each_way
async def test_while_no_connection_to_the_backend_stands(leave: Leave, caplog: pytest.LogCaptureFixture) -> None:
    async with CHAT.backend() as backend, nobody_else_is_blamed(backend, CHAT, caplog) as router:
        await backend.stop()
        with nobody_accepts(backend.port):
            client = await router.client()
            await client.post(CHAT.path, CHAT.body(stream=False))
            await eventually(lambda: len(router.app.fleet.ledger) == 1)
            leave(client)
            await eventually(lambda: router.idle)


@each_way
async def test_in_the_line(leave: Leave) -> None:
    async with CHAT.backend(silent) as backend, router_for((backend, {"max_inflight": 1})) as router:
        first, second = await router.client(), await router.client()
        await first.post(CHAT.path, CHAT.body(stream=False))
        await eventually(lambda: len(backend.received) == 1)
        await second.post(CHAT.path, CHAT.body(stream=True))
        await eventually(lambda: len(router.app.line) == 1)
        leave(second)
        await eventually(lambda: len(router.app.line) == 0)
        assert router.metric("twolane_backend_inflight") == 1
        leave(first)
        await eventually(lambda: router.idle)
        assert router.metric("twolane_calls_total", outcome="client_gone") == 2
        assert len(backend.received) == 1


async def test_one_who_leaves_does_not_disturb_the_others() -> None:
    release = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        await peer.chunk(CHAT.token("a"))
        await release.wait()
        await peer.chunk(CHAT.token("b"))
        await peer.last_chunk()

    async with CHAT.backend(script) as backend, router_for(backend) as router:
        clients = [await router.client() for _ in range(10)]
        answers = []
        for client in clients:
            await client.post(CHAT.path, CHAT.body(stream=True))
            answers.append(await client.answer(head_only=True))
        for client in clients[::2]:
            client.reset()
        await eventually(lambda: router.app.gateway.open_calls == 5)
        release.set()
        for client, answer in zip(clients[1::2], answers[1::2], strict=True):
            await client.rest(answer)
            assert answer.complete
            assert answer.body == CHAT.token("a") + CHAT.token("b")
            client.close()

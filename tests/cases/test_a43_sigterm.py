"""A43: told to end, the router takes no new calls, lets the running ones finish, and says so where they cannot."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.servers.process import ROOT, answers
from bench.servers.router import RouterProcess
from tests.cases.apis import APIS, CHAT, Api
from tests.cases.process import connect, router_process
from tests.rawclient import Answer, RawClient
from tests.scripted import Peer, Received, ScriptedBackend, echo, eventually

TEN = (*APIS, *APIS[:3])
"""Ten streams, of all APIs."""
QUICK_S = 10.0
"""Where nothing holds the process up: far less than the grace time of the test."""


class Held:
    """Streams a token, and the rest when told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def __call__(self, request: Received, peer: Peer) -> None:
        api = next(api for api in APIS if api.path == request.target)
        await peer.stream_head(content_type=api.content_type)
        await peer.chunk(api.token("a"))
        await self.go_on.wait()
        await peer.chunk(api.token("b") + api.ending)
        await peer.last_chunk()


def fleet(backend: ScriptedBackend) -> list[dict[str, Any]]:
    """One server that is two kinds at once, so that it serves all APIs."""
    return [
        {"name": "one", "url": backend.url, "engine": "llamacpp", "models": ["m"]},
        {"name": "two", "url": backend.url, "engine": "ollama", "models": ["m"], "max_inflight": 10},
    ]


@asynccontextmanager
async def ten_streams(router: RouterProcess) -> AsyncIterator[list[tuple[Api, RawClient, Answer]]]:
    """Each has had its first token."""
    streams = []
    for api in TEN:
        client = await connect(router)
        await client.post(api.path, api.body(stream=True), "X-Twolane-Class: interactive")
        answer = await client.answer(head_only=True)
        assert answer.status == 200
        while not answer.body:
            await client.piece(answer)
        streams.append((api, client, answer))
    try:
        yield streams
    finally:
        for _, client, _ in streams:
            client.close()


@asynccontextmanager
async def running(folder: Path, held: Held, **settings: Any) -> AsyncIterator[RouterProcess]:
    probes = {"/api/version": {"version": "0.9.0"}, "/api/tags": {"models": [{"name": "m"}]}}
    async with ScriptedBackend(held, probes=probes) as backend:
        async with router_process(folder, backends=fleet(backend), **settings) as router:
            await comes_true(lambda: router.metric("twolane_backend_up") == 2)
            yield router


async def comes_true(asked: Callable[[], bool]) -> None:
    """Ask the router until it says so; in a thread, since the backends answer its probes from this event loop."""
    async with asyncio.timeout(QUICK_S):
        while not await asyncio.to_thread(asked):
            await asyncio.sleep(0.01)


async def refused(router: RouterProcess) -> None:
    """Return when a new connection is refused."""
    async with asyncio.timeout(QUICK_S):
        while True:
            try:
                client = await connect(router)
            except ConnectionRefusedError:
                return
            client.close()
            await asyncio.sleep(0.01)


async def ended(router: RouterProcess) -> int:
    return await asyncio.to_thread(router.process.wait, QUICK_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_running_streams_finish_and_new_calls_are_refused(tmp_path: Path, number: int) -> None:
    held = Held()
    async with running(tmp_path, held, shutdown_grace="60s") as router, ten_streams(router) as streams:
        idle = await connect(router)
        await idle.request("GET", "/v1/models")
        assert (await idle.answer()).status == 200
        router.process.signal(number)
        await refused(router)
        assert await asyncio.to_thread(answers, f"{router.admin}/ready") == 503
        assert await asyncio.to_thread(answers, f"{router.admin}/health") == 200
        assert await asyncio.wait_for(idle.reader.read(), QUICK_S) == b""  # nothing more comes on a connection at rest
        idle.close()
        held.go_on.set()
        for api, client, answer in streams:
            await client.rest(answer)
            assert answer.complete, api
            assert answer.body == api.token("a") + api.token("b") + api.ending
        assert await ended(router) == 0


async def test_at_the_end_of_the_grace_time_the_rest_is_told_in_its_own_words(tmp_path: Path) -> None:
    async with running(tmp_path, Held(), shutdown_grace="300ms") as router, ten_streams(router) as streams:
        router.process.signal(signal.SIGTERM)
        for api, client, answer in streams:
            await client.rest(answer)
            assert not answer.complete, api
            told = answer.body.removeprefix(api.token("a"))
            assert b"shutting down" in told, api
            assert b'"error"' in told
        assert await ended(router) == 0


async def test_a_second_signal_ends_it_quickly(tmp_path: Path) -> None:
    async with running(tmp_path, Held(), shutdown_grace="10m") as router, ten_streams(router) as streams:
        router.process.signal(signal.SIGTERM)
        await refused(router)
        assert router.process.returncode is None
        router.process.signal(signal.SIGTERM)
        for _, client, answer in streams:
            await client.rest(answer)
            assert not answer.complete
            assert b"shutting down" in answer.body
        assert await ended(router) == 0


async def test_who_waits_is_sent_away_at_once(tmp_path: Path) -> None:
    held = Held()
    async with ScriptedBackend(held) as backend:
        entry = {"name": "one", "url": backend.url, "engine": "openai", "max_inflight": 1}
        async with router_process(tmp_path, backends=[entry], shutdown_grace="60s") as router:
            first, second = await connect(router), await connect(router)
            await first.post(CHAT.path, CHAT.body(stream=True), "X-Twolane-Class: interactive")
            answer = await first.answer(head_only=True)
            await second.post(CHAT.path, CHAT.body(stream=True), "X-Twolane-Class: interactive")
            await comes_true(lambda: router.metric("twolane_line_waiting") == 1)
            router.process.signal(signal.SIGTERM)
            sent_away = await asyncio.wait_for(second.answer(), QUICK_S)
            assert sent_away.status == 503
            assert sent_away.header("retry-after") is not None
            held.go_on.set()
            await first.rest(answer)
            assert answer.complete
            assert await ended(router) == 0
            first.close()
            second.close()


async def test_a_client_that_does_not_read_holds_it_up_no_longer_than_the_grace_time(tmp_path: Path) -> None:
    async def floods(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        while not peer.writer.is_closing():
            await peer.chunk(CHAT.token("x" * 60_000))

    async with ScriptedBackend(floods) as backend:
        entry = {"name": "one", "url": backend.url, "engine": "openai"}
        async with router_process(tmp_path, backends=[entry], shutdown_grace="200ms") as router:
            client = await connect(router)
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await client.post(CHAT.path, CHAT.body(stream=True))
            await eventually(lambda: len(backend.received) == 1)
            router.process.signal(signal.SIGTERM)
            assert await ended(router) == 0
            client.close()


async def test_idle_connections_and_calls_that_were_never_sent_do_not_hold_it_up(tmp_path: Path) -> None:
    async with ScriptedBackend(echo) as backend:
        entry = {"name": "one", "url": backend.url, "engine": "openai"}
        async with router_process(tmp_path, backends=[entry], shutdown_grace="10m") as router:
            clients = [await connect(router) for _ in range(3)]
            await clients[0].post(CHAT.path, CHAT.body(stream=False))
            assert (await clients[0].answer()).status == 200
            await clients[1].send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: r\r\nConte")
            router.process.signal(signal.SIGTERM)
            assert await ended(router) == 0
            for client in clients:
                client.close()


def test_the_image_starts_the_router_without_a_shell_that_would_eat_the_signal() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    starts = [line for line in lines if line.startswith(("ENTRYPOINT", "CMD"))]
    assert [line.split(maxsplit=1)[0] for line in starts] == ["ENTRYPOINT", "CMD"]
    assert all(line.split(maxsplit=1)[1].startswith("[") for line in starts)

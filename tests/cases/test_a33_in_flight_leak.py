"""A33: however a call ends, its place is given back exactly once."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Iterator

import orjson
import pytest
import structlog.testing

from router.surfaces.readers import MarkReader
from tests.cases.apis import CHAT, Api, each_api
from tests.rawclient import RawClient
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, echo, eventually

POISON = "this piece is too much for our reader"
KINDS = (
    "ok",
    "stream",
    "poisoned",
    "500",
    "400",
    "429",
    "silent",
    "closes",
    "resets",
    "dies",
    "bad",
    "unknown",
    "gone early",
    "gone late",
    "tokenize",
)


async def script(request: Received, peer: Peer) -> None:
    kind = orjson.loads(request.body).get("user", "ok")
    match kind:
        case "stream" | "gone late" | "poisoned":
            await peer.stream_head()
            for number in range(5):
                await peer.token(POISON if kind == "poisoned" and number == 2 else str(number))
            if kind == "gone late":
                await peer.until_closed()
            await peer.last_chunk()
        case "500" | "400" | "429":
            await peer.json({"error": {"message": kind}}, f"{kind} Whatever")
        case "silent" | "gone early":
            await peer.until_closed()
        case "closes":
            peer.writer.close()
        case "resets" | "dies":
            await peer.stream_head()
            await peer.token("a")
            if kind == "resets":
                linger = struct.pack("ii", 1, 0)
                peer.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            peer.writer.transport.abort() if kind == "resets" else peer.writer.close()
        case _:
            await echo(request, peer)


async def call(router: Running, kind: str) -> None:
    async with await router.client() as client:
        try:
            await _call(client, kind)
        except (ConnectionError, asyncio.IncompleteReadError):
            assert kind in ("resets", "dies")


async def _call(client: RawClient, kind: str) -> None:
    match kind:
        case "bad":
            await client.post(CHAT.path, b'{"model":"m"')
        case "unknown":
            await client.post(CHAT.path, {**CHAT.call, "model": "nope"})
        case "tokenize":
            await client.post("/tokenize", {"model": "m", "prompt": "x"})
        case _:
            stream = kind in ("stream", "poisoned", "resets", "dies", "gone late")
            await client.post(CHAT.path, CHAT.body(stream=stream, user=kind))
    if kind == "gone early":
        client.reset()
        return
    answer = await client.answer(head_only=True)
    if kind == "gone late" and answer.status == 200:
        await client.piece(answer)
        client.close()
        return
    await client.rest(answer)
    assert answer.status == {"bad": 400, "unknown": 404}.get(kind, answer.status)


@pytest.fixture
def poisoned_reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Our own reader of streams fails on one piece of text, and says so at length in a log that nobody reads."""
    read = MarkReader.event

    def event(self: MarkReader, name: str, data: bytes) -> bool:
        if POISON.encode() in data:
            raise ZeroDivisionError
        return read(self, name, data)

    monkeypatch.setattr(MarkReader, "event", event)
    with structlog.testing.capture_logs():
        yield


async def watched(router: Running, done: asyncio.Event) -> int:
    """Look at the gauges every ten milliseconds; returns how often."""
    looks = 0
    backends = router.app.fleet.backends()
    while not done.is_set():
        for backend in backends:
            account = backend.account
            assert account.own >= 0
            assert min(account.by_class.values()) >= 0
            assert sum(account.by_class.values()) == account.own
            assert backend.cap is None or account.own <= backend.cap
        looks += 1
        await asyncio.sleep(0.01)
    return looks


@pytest.mark.usefixtures("poisoned_reader")
async def test_a_thousand_mixed_calls() -> None:
    async with CHAT.backend(script) as one, CHAT.backend(script) as two, CHAT.backend(script) as gone:
        as_vllm = {"engine": "vllm"}
        fleet = (one, {**as_vllm, "max_inflight": 8}), (two, as_vllm), (gone, as_vllm)
        quick = {"interval": "50ms", "break_after": 8, "retry_after": "20ms"}
        async with router_for(*fleet, health=quick, timeouts={"first_byte": "200ms"}) as router:
            done = asyncio.Event()
            looks = asyncio.get_running_loop().create_task(watched(router, done))
            kinds = [KINDS[number % len(KINDS)] for number in range(1000)]
            random.Random(33).shuffle(kinds)
            room = asyncio.Semaphore(40)

            async def one_call(number: int, kind: str) -> None:
                async with room:
                    if number == 300:
                        await gone.stop()
                    await call(router, kind)

            await asyncio.gather(*(one_call(number, kind) for number, kind in enumerate(kinds)))
            await eventually(lambda: router.idle)
            done.set()
            assert await looks > 10
            assert router.metric("twolane_backend_inflight") == 0
            assert router.metric("twolane_open_calls") == 0
            assert router.metric("twolane_line_waiting") == 0
            assert router.metric("twolane_calls_total") == 1000
            assert router.metric("twolane_watch_failures_total") > 0
            assert [backend.account.own for backend in router.app.fleet.backends()] == [0, 0, 0]


# --- one at a time, in each API


@each_api
@pytest.mark.usefixtures("poisoned_reader")
async def test_a_reader_that_fails_and_then_the_backend_does(api: Api) -> None:
    """Two failures at once, one of them ours."""

    async def both(request: Received, peer: Peer) -> None:
        await peer.stream_head(content_type=api.content_type)
        await peer.chunk(api.token("a"))
        await peer.chunk(api.token(POISON))
        await asyncio.sleep(0.01)
        peer.writer.close()

    async with api.backend(both) as backend, router_for((backend, api.settings)) as router:
        answer = await router.post(api.path, api.body(stream=True))
        assert answer.body.startswith(api.token("a") + api.token(POISON))
        assert not answer.complete
        await eventually(lambda: router.idle)
        assert router.metric("twolane_calls_total", outcome="backend_error") == 1
        assert router.metric("twolane_backend_inflight") == 0


@pytest.mark.usefixtures("poisoned_reader")
async def test_a_reader_that_fails_when_it_looks_back() -> None:
    """After the first token pieces are kept and read later: at the end, or when somebody asks for the figures."""

    async def stream(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        for text in ("a", "b", POISON, "c"):
            await peer.token(text)
        if request.body.endswith(b'"dies"}'):
            await asyncio.sleep(0.01)
            peer.writer.close()
        else:
            await peer.last_chunk()

    async with CHAT.backend(stream) as backend, router_for(backend) as router:
        for user, complete in (("ends", True), ("dies", False)) * 2:
            answer = await router.post(CHAT.path, CHAT.body(stream=True, user=user))
            assert answer.complete is complete
            assert answer.body.count(b"data: ") >= 4
        await eventually(lambda: router.idle)
        assert router.metric("twolane_backend_inflight") == 0
        assert router.metric("twolane_calls_total", outcome="completed") == 2
        assert router.metric("twolane_calls_total", outcome="backend_error") == 2


@each_api
@pytest.mark.usefixtures("poisoned_reader")
async def test_a_reader_that_fails_does_not_make_an_answer_look_cut_off(api: Api) -> None:
    """An answer without framing is judged by its end mark, which a reader that failed has not seen."""
    sent = api.token("a") + api.token(POISON) + api.ending

    async def unframed(request: Received, peer: Peer) -> None:
        await peer.head("200 OK", f"Content-Type: {api.content_type}")
        await peer.send(sent)
        peer.writer.close()

    async with api.backend(unframed) as backend, router_for((backend, api.settings)) as router:
        answer = await router.post(api.path, api.body(stream=True))
        assert (answer.complete, answer.body) == (True, sent)
        await eventually(lambda: router.metric("twolane_calls_total", outcome="completed") == 1)
        assert router.metric("twolane_watch_failures_total") == 1

"""A04: comments and pings while the prompt is read. They keep a connection alive, and they are no tokens."""

from __future__ import annotations

import asyncio

import pytest

from tests.cases.apis import CHAT, LLAMACPP, MESSAGES, OLLAMA_CHAT, RESPONSES, Api, each_api, typed
from tests.cases.staged import staged
from tests.router.running import router_for
from tests.scripted import Peer, Received, eventually

COMMENT = b":\n\n"
PINGS = [
    (CHAT, COMMENT),
    (CHAT, b": keep-alive\n"),
    (CHAT, b"data: {}\n\n"),
    (CHAT, b'event: ping\ndata: {"type":"ping"}\n\n'),
    (CHAT, b"data:\n\n"),
    (RESPONSES, typed("keepalive", sequence_number=3)),
    (MESSAGES, typed("ping")),
    (MESSAGES, COMMENT),
    (LLAMACPP, COMMENT),
    (OLLAMA_CHAT, b"\n"),
]
each_ping = pytest.mark.parametrize(
    ("api", "ping"), PINGS, ids=lambda value: str(value) if isinstance(value, Api) else ""
)


@each_ping
async def test_each_ping_is_passed_on_at_once_and_none_is_a_token(api: Api, ping: bytes) -> None:
    stages = (*[ping] * 4, api.opening, api.token("a"), api.ending)
    async with staged(api, *stages, gap_s=0.003) as (script, router, _):
        script.assert_first_token_in(5, router)
        assert router.metric("twolane_tokens_total", direction="out") == 1


async def test_pings_keep_a_call_alive_beyond_the_idle_limit() -> None:
    async def slow_prefill(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        for _ in range(8):
            await asyncio.sleep(0.15)
            await peer.chunk(COMMENT)
        await peer.chunk(CHAT.token("a"))
        await peer.last_chunk()

    async with CHAT.backend(slow_prefill) as backend, router_for(backend, timeouts={"idle": "1s"}) as router:
        answer = await router.post(CHAT.path, CHAT.body(stream=True))
        assert answer.complete
        assert answer.body == COMMENT * 8 + CHAT.token("a")


@each_api
async def test_pings_and_roles_do_not_satisfy_the_limit_on_the_first_token(api: Api) -> None:
    async def only_pings(request: Received, peer: Peer) -> None:
        await peer.stream_head(content_type=api.content_type)
        await peer.chunk(api.opening)
        while not peer.writer.is_closing():
            await peer.chunk(COMMENT if api.content_type == CHAT.content_type else b"\n")
            await asyncio.sleep(0.02)

    async with api.backend(only_pings) as backend:
        limits = {"first_token": "100ms"}
        async with router_for((backend, api.settings), timeouts=limits) as router:
            answer = await router.post(api.path, api.body(stream=True))
            assert not answer.complete
            assert b"timeouts.first_token" in answer.body
            assert router.metric("twolane_ttft_seconds_count") == 0
            await eventually(lambda: router.metric("twolane_calls_total", outcome="backend_error") == 1)
            assert len(backend.received) == 1


async def test_a_backend_that_sends_no_head_misses_the_limit_on_the_first_token_as_well() -> None:
    async def silent(request: Received, peer: Peer) -> None:
        await peer.until_closed()

    async with CHAT.backend(silent) as backend, router_for(backend, timeouts={"first_token": "100ms"}) as router:
        answer = await router.post(CHAT.path, CHAT.body(stream=True))
        assert answer.status == 504
        assert b"timeouts.first_token" in answer.body
        await eventually(lambda: backend.peers[0].closed_s is not None)


async def test_the_limit_on_the_first_token_is_off_once_there_is_one_and_for_whole_answers() -> None:
    async def slow(request: Received, peer: Peer) -> None:
        if b'"stream":false' in request.body:
            await asyncio.sleep(0.5)
            await peer.json(CHAT.whole)
            return
        await peer.stream_head()
        await peer.chunk(CHAT.token("a"))
        await asyncio.sleep(0.5)
        await peer.chunk(CHAT.token("b"))
        await peer.last_chunk()

    async with CHAT.backend(slow) as backend, router_for(backend, timeouts={"first_token": "300ms"}) as router:
        streamed, whole = await asyncio.gather(
            router.post(CHAT.path, CHAT.body(stream=True)), router.post(CHAT.path, CHAT.body(stream=False))
        )
        assert streamed.complete
        assert streamed.body == CHAT.token("a") + CHAT.token("b")
        assert whole.complete
        assert whole.json() == CHAT.whole

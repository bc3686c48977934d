"""A21: a hidden limit on the whole of a call ends it after five minutes, and a retry makes it ten."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.cases.apis import CHAT, OLLAMA_CHAT, Api
from tests.router.running import router_for
from tests.scripted import Peer, Received, ScriptedBackend

FIRST_ANSWER_S = 310
STREAM_S = 400
TOKEN_EACH_S = 10


@pytest.mark.slow
@pytest.mark.timeout(STREAM_S + 120)
async def test_minutes_of_silence_and_minutes_of_tokens_at_full_length() -> None:
    async def script(request: Received, peer: Peer) -> None:
        if b'"stream":false' in request.body:
            await asyncio.sleep(FIRST_ANSWER_S)
            await peer.json(CHAT.whole)
            return
        await peer.stream_head()
        for _ in range(STREAM_S // TOKEN_EACH_S):
            await asyncio.sleep(TOKEN_EACH_S)
            await peer.chunk(CHAT.token("a"))
        await peer.chunk(CHAT.ending)
        await peer.last_chunk()

    async with ScriptedBackend(script) as backend, router_for(backend) as router:
        whole, stream = await asyncio.gather(
            router.post(CHAT.path, CHAT.body(stream=False)), router.post(CHAT.path, CHAT.body(stream=True))
        )
        assert whole.status == 200
        assert whole.json() == CHAT.whole
        assert stream.complete
        assert stream.body == CHAT.token("a") * (STREAM_S // TOKEN_EACH_S) + CHAT.ending
        assert len(backend.received) == 2


LIMITS: dict[str, Any] = {
    "timeouts": {"connect": "200ms", "first_byte": "200ms", "first_token": "200ms", "idle": "200ms"}
}


@pytest.mark.parametrize("api", [CHAT, OLLAMA_CHAT], ids=str)
async def test_no_limit_adds_up(api: Api) -> None:
    """A stream that is longer than each limit, and than all of them."""

    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head(content_type=api.content_type)
        for _ in range(18):
            await peer.chunk(api.token("a"))
            await asyncio.sleep(0.05)
        await peer.chunk(api.ending)
        await peer.last_chunk()

    async with api.backend(script) as backend, router_for((backend, api.settings), **LIMITS) as router:
        answer = await router.post(api.path, api.body(stream=True))
        assert answer.complete
        assert answer.body == api.token("a") * 18 + api.ending


async def test_time_in_the_line_is_no_silence_of_the_backend() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await asyncio.sleep(0.12)
        await peer.json(CHAT.whole)

    async with ScriptedBackend(script) as backend, router_for((backend, {"max_inflight": 1}), **LIMITS) as router:
        calls = [router.post(CHAT.path, CHAT.body(stream=False)) for _ in range(5)]
        assert [answer.status for answer in await asyncio.gather(*calls)] == [200] * 5


async def test_a_slow_upload_is_no_silence_of_the_backend() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **LIMITS) as router, await router.client() as client:
        body = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
        await client.send(f"POST {CHAT.path} HTTP/1.1\r\nHost: r\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        for start in range(0, len(body), 10):
            await asyncio.sleep(0.05)
            await client.send(body[start : start + 10])
        assert (await client.answer()).status == 200

"""A10: a client that does not read must hold up its own backend, not fill the router's memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from tests.cases.apis import CHAT, OLLAMA_CHAT, Api
from tests.cases.process import connect, resident_bytes, router_process
from tests.rawclient import Answer, RawClient
from tests.router.running import router_for
from tests.scripted import Peer, Received, echo, eventually

MOST_GROWTH_BYTES = 10 * 2**20
BLOCK = CHAT.token("x" * 64) * 500
FLOOD = b"flood"


@dataclass
class Flood:
    """Streams that many bytes as fast as the socket takes them, to calls that ask for it; others get a short answer."""

    total_bytes: int
    length_known: bool = False
    content_type: str = CHAT.content_type
    block: bytes = BLOCK
    sent_bytes: int = 0
    ended_s: float | None = None

    async def __call__(self, request: Received, peer: Peer) -> None:
        if FLOOD not in request.body:
            await echo(request, peer)
            return
        blocks = self.total_bytes // len(self.block)
        try:
            if self.length_known:
                await peer.head("200 OK", f"Content-Length: {blocks * len(self.block)}")
            else:
                await peer.stream_head(content_type=self.content_type)
            for _ in range(blocks):
                await (peer.send if self.length_known else peer.chunk)(self.block)
                self.sent_bytes += len(self.block)
            if not self.length_known:
                await peer.last_chunk()
        finally:
            self.ended_s = asyncio.get_running_loop().time()

    def ended(self) -> bool:
        return self.ended_s is not None

    async def blocked(self) -> None:
        """Return when no byte has been taken for a while."""
        await eventually(lambda: self.sent_bytes > 0)
        before = -1
        while self.sent_bytes != before:
            before = self.sent_bytes
            await asyncio.sleep(0.2)
        assert self.ended_s is None
        assert self.sent_bytes < self.total_bytes


async def ask(client: RawClient, api: Api = CHAT) -> Answer:
    """Ask for the flood and read the head alone."""
    await client.post(api.path, api.body(stream=True, user=FLOOD.decode()))
    return await client.answer(head_only=True)


async def test_two_hundred_megabytes_for_one_who_does_not_read(tmp_path: Path) -> None:
    async with CHAT.backend() as backend, router_process(tmp_path, backend) as router, await connect(router) as other:
        await other.post(CHAT.path, CHAT.body(stream=False))
        assert (await other.answer()).status == 200
        before_bytes = resident_bytes(router)
        for length_known in (False, True):
            flood = backend.script = Flood(200 * 2**20, length_known)
            slow = await connect(router)
            await ask(slow)
            await flood.blocked()
            assert resident_bytes(router) - before_bytes < MOST_GROWTH_BYTES

            async with asyncio.timeout(5.0):
                for _ in range(20):
                    await other.post(CHAT.path, CHAT.body(stream=False))
                    assert (await other.answer()).status == 200
            assert resident_bytes(router) - before_bytes < MOST_GROWTH_BYTES

            left_s = asyncio.get_running_loop().time()
            slow.close()
            await eventually(flood.ended)
            assert (flood.ended_s or 0.0) - left_s < 1.0
        await eventually(lambda: router.metric("twolane_open_calls") == 0)


@pytest.mark.parametrize("api", [CHAT, OLLAMA_CHAT], ids=str)
async def test_one_who_reads_on_after_a_pause_gets_every_byte(api: Api) -> None:
    flood = Flood(24 * 2**20, content_type=api.content_type, block=api.token("x" * 64) * 500)
    async with api.backend(flood) as backend:
        # The pause is the client's: it is longer than the backend may be silent.
        async with (
            router_for((backend, api.settings), timeouts={"idle": "150ms"}) as router,
            await router.client() as slow,
        ):
            answer = await ask(slow, api)
            await flood.blocked()
            assert router.metric("twolane_open_calls") == 1
            received = sha256()
            while piece := await slow.piece(answer):
                received.update(piece)
                answer.body = b""  # else each piece would copy all before it
            assert answer.complete
            blocks = flood.total_bytes // len(flood.block)
            assert received.digest() == sha256(flood.block * blocks).digest()

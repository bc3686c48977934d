"""An answer in stages: each is written only after the client has read all before it.

So a stage that is held back, by anybody, ends the test instead of changing a figure; and the instant at which the
router saw a stage lies between two instants that are known, however busy the machine is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.cases.apis import Api
from tests.rawclient import Answer
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received

GAP_S = 0.02
"""Between stages: what is seen in one cannot be taken for what is seen in the next."""
_HELD_BACK_S = 10.0


@dataclass(kw_only=True)
class Staged:
    """The script of a backend that streams like this, and the record of how it went."""

    stages: Sequence[bytes]
    content_type: str
    fields: Sequence[str] = ()
    gap_s: float = GAP_S
    pieces: int | None = None
    """Each stage is sent in writes of that many bytes; None: in one."""
    received_s: float = 0.0
    asked_s: float = 0.0
    written_s: list[float] = field(default_factory=list)
    read_s: list[float] = field(default_factory=list)
    _read: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def __call__(self, request: Received, peer: Peer) -> None:
        self.received_s = _now_s()
        await peer.stream_head(*self.fields, content_type=self.content_type)
        for stage in self.stages:
            await self._read.acquire()  # the client has the head, or the stage before
            await asyncio.sleep(self.gap_s)
            self.written_s.append(_now_s())
            size = self.pieces or len(stage)
            for start in range(0, len(stage), size):
                await peer.chunk(stage[start : start + size])
                if self.pieces is not None:
                    await asyncio.sleep(0.001)
        await peer.last_chunk()

    async def read_by(self, router: Running, path: str, body: object, *fields: str) -> Answer:
        """Call, and take one stage after the other. Fails where one does not come before the next is written."""
        async with await router.client() as client:
            self.asked_s = _now_s()
            await client.post(path, body, *fields)
            async with asyncio.timeout(_HELD_BACK_S):
                answer = await client.answer(head_only=True)
                self._read.release()
                size = 0
                for stage in self.stages:
                    size += len(stage)
                    while len(answer.body) < size:
                        assert await client.piece(answer), f"the stream ended after {answer.body!r}"
                    self.read_s.append(_now_s())
                    self._read.release()
                await client.rest(answer)
        assert answer.complete
        assert answer.body == b"".join(self.stages)
        return answer

    def assert_first_token_in(self, stage: int, router: Running) -> None:
        """The only sample of the time to first token is that of this stage."""
        assert router.metric("twolane_ttft_seconds_count") == 1
        ttft_s = router.metric("twolane_ttft_seconds_sum")
        assert self.written_s[stage] - self.received_s <= ttft_s <= self.read_s[stage] - self.asked_s


def _now_s() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def staged(
    api: Api, *stages: bytes, content_type: str = "", **options: Any
) -> AsyncIterator[tuple[Staged, Running, Answer]]:
    """A streamed call through a router, read to its end: the stages, the router, the answer."""
    script = Staged(stages=stages, content_type=content_type or api.content_type, **options)
    async with api.backend(script) as backend, router_for((backend, api.settings)) as router:
        answer = await script.read_by(router, api.path, api.body(stream=True))
        await _booked(router)
        yield script, router, answer


async def _booked(router: Running) -> None:
    """The call is in the figures: it ends there a moment after its last byte has reached the client."""
    async with asyncio.timeout(_HELD_BACK_S):
        while not router.metric("twolane_calls_total"):
            await asyncio.sleep(0.002)

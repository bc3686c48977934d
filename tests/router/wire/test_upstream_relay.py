"""Streams: pieces at once, a slow client, what stays in memory, what is left behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from router.errors import BackendTimeout, RouterError
from router.wire.api import Patience
from router.wire.connection import Connection
from router.wire.response_reader import ResponseReader
from router.wire.upstream import Pool
from tests.router.wire.peers import LAST, OK, PATIENCE, POST, STREAM, Backend, Peer, Sink, chunk, running, until


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as backend:
        yield backend


@pytest.fixture
async def pool(backend: Backend) -> AsyncIterator[Pool]:
    pool = Pool(backend.url)
    yield pool
    pool.close()
    backend.close()
    await asyncio.sleep(0.001)  # a failed test must not leave the loop with open connections
    assert pool.busy == 0


async def test_each_piece_leaves_before_the_backend_sends_the_next(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(STREAM)
    response = await sending
    sink = Sink()
    relaying = running(response.relay(sink, sink.look))
    for number in range(20):
        event = b"data: %d\n\n" % number
        await peer.send(chunk(event))
        await until(lambda event=event: sink.pieces[-1:] == [event])  # type: ignore[misc]
    await peer.send(LAST)
    await relaying
    assert len(sink.pieces) == 20
    response.close()


async def test_a_character_torn_into_single_bytes_arrives_unharmed(backend: Backend, pool: Pool) -> None:
    event = 'data: {"choices":[{"index":0,"delta":{"content":"渐😀é—"}}]}\n\n'.encode()
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(STREAM)
    response = await sending
    sink = Sink()
    relaying = running(response.relay(sink, sink.look))
    for at in range(len(event)):
        await peer.send(chunk(event[at : at + 1]))
    await peer.send(LAST)
    await relaying
    assert sink.body == event
    response.close()


async def push(peer: Peer, data: bytes) -> int:
    """Send as fast as the socket takes it until it takes no more."""
    sent = 0
    idle_turns = 0
    while idle_turns < 50:
        taken = peer.send_at_once(data[sent % len(data) :])
        sent += taken
        idle_turns = 0 if taken else idle_turns + 1
        await asyncio.sleep(0.001)
    return sent


async def test_a_client_that_does_not_read_stops_the_backend_and_keeps_memory_flat(
    backend: Backend, pool: Pool
) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(STREAM)
    response = await sending
    sink = Sink()
    sink.ready = False
    relaying = running(response.relay(sink, sink.look))
    sent = await push(peer, chunk(b"x" * 1_000_000) * 30)
    assert sent < 20_000_000  # the two kernels' buffers
    assert len(sink.body) < 1_000_000
    relaying.cancel()
    assert await peer.closed()
    with pytest.raises(asyncio.CancelledError):
        await relaying
    response.close()


class _SlowNowAndThen(Sink):
    def write(self, data: bytes) -> bool:
        super().write(data)
        return len(data) % 2 == 0

    async def drained(self) -> None:
        self.waits += 1
        await asyncio.sleep(0)


async def test_nothing_is_lost_when_a_slow_client_goes_on(backend: Backend, pool: Pool) -> None:
    block = bytes(range(256)) * 1000
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(STREAM)
    response = await sending
    sink = _SlowNowAndThen()
    relaying = running(response.relay(sink, sink.look))
    for _ in range(40):
        await peer.send(chunk(block))
    await peer.send(chunk(b"end") + LAST)
    await relaying
    assert sink.body == block * 40 + b"end"
    assert b"".join(piece for run in sink.shown for piece in run) == sink.body
    response.close()
    assert pool.idle == 1


async def test_what_comes_before_relay_is_bounded(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(STREAM)
    response = await sending
    sent = await push(peer, chunk(b"x" * 1_000_000) * 30)
    assert sent < 20_000_000
    sink = Sink()
    sink.ready = False
    relaying = running(response.relay(sink, sink.look))
    await until(lambda: sink.waits == 1)
    assert len(sink.body) < 1_000_000
    relaying.cancel()
    with suppress(asyncio.CancelledError):
        await relaying
    response.close()


async def test_a_client_slower_than_the_idle_limit_does_not_make_the_backend_late(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, Patience(connect_s=1, first_byte_s=1, idle_s=0.05)))
    peer = await backend.accept()
    await peer.answer(STREAM)
    response = await sending
    sink = Sink()
    sink.ready = False
    relaying = running(response.relay(sink, sink.look))
    await peer.send(chunk(b"a"))
    await until(lambda: sink.waits == 1)
    await asyncio.sleep(0.2)  # time has to pass here
    assert not relaying.done()
    sink.ready = True
    sink.may_drain.set()
    with pytest.raises(BackendTimeout):
        await relaying
    response.close()


async def test_three_hundred_streams_at_once_are_three_hundred_connections(backend: Backend, pool: Pool) -> None:
    sending = [running(pool.send(POST, PATIENCE)) for _ in range(300)]
    peers = [await backend.accept() for _ in range(300)]
    for peer in peers:
        await peer.answer(STREAM + LAST)
    for response in await asyncio.gather(*sending):
        response.close()
    assert (pool.dials, pool.busy) == (300, 0)


async def one_of_many(pool: Pool, peer_plan: int, backend: Backend) -> None:
    """A call that ends in one of the ways in which calls end."""
    impatient = Patience(connect_s=1, first_byte_s=0.02, idle_s=0.02)
    sending = running(pool.send(POST, impatient if peer_plan in (5, 6) else PATIENCE))
    if pool.idle:
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
        return
    peer = await backend.accept()
    await peer.request()
    match peer_plan:
        case 0:
            await peer.send(OK)
        case 1:
            peer.close()
        case 2:
            peer.reset()
        case 3:
            await peer.send(b"garbage")
        case 4:
            sending.cancel()
        case 6 | 7:
            await peer.send(STREAM + chunk(b"a"))
        case 8:
            await peer.send(STREAM + chunk(b"a"))
            peer.close()
        case _:
            pass
    with suppress(RouterError, asyncio.CancelledError):
        response = await sending
        sink = Sink()
        relaying = running(response.relay(sink, sink.look))
        if peer_plan == 7:
            await until(lambda: sink.body == b"a")
            relaying.cancel()
        try:
            await relaying
        finally:
            response.close()


async def test_however_calls_end_nothing_is_left_of_them(backend: Backend, pool: Pool) -> None:
    tasks_before = len(asyncio.all_tasks())
    for number in range(90):
        await one_of_many(pool, number % 9, backend)
        assert pool.busy == 0
    pool.close()
    assert len(asyncio.all_tasks()) == tasks_before
    await until(lambda: not alive(Connection))
    assert not alive(ResponseReader)


def alive(kind: type) -> list[object]:
    gc.collect()
    return [found for found in gc.get_objects() if type(found) is kind]

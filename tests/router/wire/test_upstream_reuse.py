"""Kept connections: which are used again, which are not, and what is sent twice when one dies."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from router.errors import BackendBroke, BackendUnreachable
from router.wire.api import UpstreamRequest, UpstreamResponse
from router.wire.upstream import Pool
from tests.router.wire.peers import LAST, OK, PATIENCE, POST, STREAM, Backend, Peer, Sink, chunk, running, until

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's word on what was acknowledged")
LARGE_POST = UpstreamRequest(method="POST", target="/v1/x", headers=[], body=b"x" * 5_000_000)


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


async def finish(response: UpstreamResponse) -> bytes:
    sink = Sink()
    try:
        await response.relay(sink, sink.look)
    finally:
        response.close()
    return sink.body


async def first_call(backend: Backend, pool: Pool, answer: bytes = OK) -> Peer:
    """One call on a fresh connection; returns the backend's end of it."""
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(answer)
    await finish(await sending)
    return peer


async def next_call(backend: Backend) -> None:
    """Answer what comes on the next connection."""
    await (await backend.accept()).answer()


# --- which connections are used again


async def test_a_kept_connection_is_used_again(backend: Backend, pool: Pool) -> None:
    peer = await first_call(backend, pool)
    for _ in range(3):
        sending = running(pool.send(POST, PATIENCE))
        await peer.answer()
        assert await finish(await sending) == b"hi"
    assert (pool.dials, pool.reuses, pool.replays) == (1, 3, 0)


async def test_the_one_used_last_is_taken_first(backend: Backend, pool: Pool) -> None:
    one = running(pool.send(POST, PATIENCE))
    first = await backend.accept()
    two = running(pool.send(POST, PATIENCE))
    second = await backend.accept()
    await first.answer()
    await second.answer()
    await finish(await two)
    await finish(await one)
    for _ in range(2):
        sending = running(pool.send(POST, PATIENCE))
        await first.answer()
        await finish(await sending)
    assert (pool.dials, pool.reuses, pool.idle) == (2, 2, 2)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi and more",
        OK + OK,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nX",
    ],
)
async def test_an_answer_that_leaves_doubt_ends_its_connection(backend: Backend, pool: Pool, answer: bytes) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(answer)
    assert await finish(await sending) == b"hi"
    assert pool.idle == 0
    assert await peer.closed()


@pytest.mark.parametrize(("idle_s", "dials"), [(3.9, 1), (4.1, 2)])
async def test_an_idle_connection_is_used_for_less_long_than_promised(
    backend: Backend, idle_s: float, dials: int
) -> None:
    loop = LateLoop(asyncio.get_running_loop())
    pool = Pool(backend.url, loop=loop)  # type: ignore[arg-type]
    peer = await first_call(backend, pool, b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n")
    loop.late_s += idle_s
    answering = running(peer.answer() if dials == 1 else next_call(backend))
    await finish(await pool.send(POST, PATIENCE))
    assert pool.dials == dials
    await answering
    pool.close()


class LateLoop:
    """The running loop with a clock that can be put forward."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.late_s = 0.0

    def __getattr__(self, name: str) -> object:
        return getattr(self._loop, name)

    def time(self) -> float:
        return self._loop.time() + self.late_s

    def call_at(self, at_s: float, call: object) -> object:
        return self._loop.call_at(at_s - self.late_s, call)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_an_idle_connection_that_the_backend_ends_is_dropped_at_once(
    backend: Backend, pool: Pool, how: str
) -> None:
    peer = await first_call(backend, pool)
    getattr(peer, how)()
    await until(lambda: pool.idle == 0)
    await first_call(backend, pool)
    assert (pool.dials, pool.reuses) == (2, 0)


async def test_bytes_on_an_idle_connection_end_it(backend: Backend, pool: Pool) -> None:
    peer = await first_call(backend, pool)
    await peer.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
    await until(lambda: pool.idle == 0)
    assert await peer.closed()


async def test_bytes_that_only_the_kernel_has_seen_are_not_taken_for_the_next_answer(
    backend: Backend, pool: Pool
) -> None:
    peer = await first_call(backend, pool)
    answering = running(next_call(backend))
    assert peer.send_at_once(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsurplus")
    assert await finish(await pool.send(POST, PATIENCE)) == b"hi"  # begins before the loop can see them
    assert (pool.dials, pool.reuses) == (2, 0)
    await answering


async def test_a_reset_that_only_the_kernel_has_seen_costs_nobody_the_call(backend: Backend, pool: Pool) -> None:
    peer = await first_call(backend, pool)
    answering = running(next_call(backend))
    peer.reset()
    assert await finish(await pool.send(POST, PATIENCE)) == b"hi"
    await answering


@linux
async def test_a_close_that_only_the_kernel_has_heard_of_is_enough(backend: Backend) -> None:
    loop = LateLoop(asyncio.get_running_loop())
    pool = Pool(backend.url, loop=loop)  # type: ignore[arg-type]
    peer = await first_call(backend, pool)
    answering = running(next_call(backend))
    loop.late_s += 1.0
    peer.close()
    await finish(await pool.send(POST, PATIENCE))  # begins before the loop can see the close
    assert (pool.dials, pool.reuses, pool.replays) == (2, 0, 0)
    await answering
    pool.close()


# --- servers that close after a stream


async def test_a_connection_rests_after_its_first_stream(backend: Backend, pool: Pool) -> None:
    await first_call(backend, pool, STREAM + LAST)
    assert pool.idle == 1
    await first_call(backend, pool, STREAM + LAST)
    assert (pool.dials, pool.reuses) == (2, 0)


async def test_a_backend_that_closes_after_a_stream_is_not_believed_again(backend: Backend, pool: Pool) -> None:
    peer = await first_call(backend, pool, STREAM + LAST)
    peer.close()
    await until(lambda: pool.idle == 0)
    peer = await first_call(backend, pool, STREAM + LAST)
    assert pool.idle == 0
    assert await peer.closed()
    await first_call(backend, pool, OK)
    assert pool.idle == 1


async def test_a_backend_that_keeps_its_word_is_used_at_once_after_streams(backend: Backend) -> None:
    loop = LateLoop(asyncio.get_running_loop())
    pool = Pool(backend.url, loop=loop)  # type: ignore[arg-type]
    peer = await first_call(backend, pool, STREAM + LAST)
    loop.late_s += 1.1
    for _ in range(5):
        sending = running(pool.send(POST, PATIENCE))
        await peer.answer(STREAM + chunk(b"a") + LAST)
        assert await finish(await sending) == b"a"
    assert (pool.dials, pool.reuses, pool.replays) == (1, 5, 0)
    pool.close()


async def test_a_connection_that_nobody_needed_until_its_time_was_over_shows_that_it_was_kept(
    backend: Backend, pool: Pool
) -> None:
    promising = b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=3\r\nTransfer-Encoding: chunked\r\n\r\n"
    await first_call(backend, pool, promising + LAST)
    await until(lambda: pool.idle == 0)
    peer = await first_call(backend, pool, STREAM + LAST)
    sending = running(pool.send(POST, PATIENCE))
    await peer.answer(STREAM + LAST)
    await finish(await sending)
    assert (pool.dials, pool.reuses) == (2, 1)


# --- what is sent twice


@linux
@pytest.mark.parametrize("request_", [POST, LARGE_POST], ids=["small", "large"])
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_kept_connection_that_was_closed_before_the_request_came_is_replaced(
    backend: Backend, pool: Pool, how: str, request_: UpstreamRequest
) -> None:
    peer = await first_call(backend, pool)
    answering = running(next_call(backend))
    getattr(peer, how)()
    assert await finish(await pool.send(request_, PATIENCE)) == b"hi"  # begins before the loop can see the close
    assert (pool.dials, pool.reuses, pool.replays) == (2, 1, 1)
    await answering


@pytest.mark.parametrize("read_bytes", [0, 10], ids=["nothing", "a part"])
async def test_a_kept_connection_that_is_closed_with_the_request_unread_is_replaced(
    backend: Backend, pool: Pool, read_bytes: int
) -> None:
    peer = await first_call(backend, pool)
    sending = running(pool.send(POST, PATIENCE))
    await peer.arrived()
    await peer.read(read_bytes)
    peer.close()
    await (await backend.accept()).answer()
    assert await finish(await sending) == b"hi"
    assert (pool.dials, pool.replays) == (2, 1)


async def test_a_kept_connection_that_is_closed_after_the_request_was_read_is_not_replaced(
    backend: Backend, pool: Pool
) -> None:
    peer = await first_call(backend, pool)
    sending = running(pool.send(POST, PATIENCE))
    await peer.request()
    peer.close()
    with pytest.raises(BackendBroke):
        await sending
    assert backend.nobody_waits()
    assert (pool.dials, pool.replays) == (1, 0)


async def test_nor_is_one_that_is_closed_after_a_large_request_was_read(backend: Backend, pool: Pool) -> None:
    peer = await first_call(backend, pool)
    sending = running(pool.send(LARGE_POST, PATIENCE))
    await peer.request()
    peer.close()
    with pytest.raises(BackendBroke):
        await sending
    assert backend.nobody_waits()


async def test_a_request_is_sent_twice_and_not_three_times(backend: Backend, pool: Pool) -> None:
    async def read_and_close() -> None:
        fresh = await backend.accept()
        await fresh.read(1)
        fresh.close()

    peer = await first_call(backend, pool)
    closing = running(read_and_close())
    peer.reset()
    with pytest.raises(BackendBroke):
        await pool.send(POST, PATIENCE)
    assert backend.nobody_waits()
    assert pool.replays == 1
    await closing


async def test_a_backend_that_is_gone_altogether_is_unreachable(backend: Backend, pool: Pool) -> None:
    peer = await first_call(backend, pool)
    backend.stop_listening()
    peer.reset()
    with pytest.raises(BackendUnreachable):
        await pool.send(POST, PATIENCE)
    assert pool.busy == 0


# --- the race between an idle limit and the next call


class ImpatientServer:
    """Answers each POST and closes a connection that was idle for `limit_s`, like many servers, without a word.

    Its threads block in the kernel, so that the race is between the two kernels alone: a server that reads ahead may
    throw away what it has read, and nobody outside can know.
    """

    def __init__(self, limit_s: float) -> None:
        self.generations = 0
        self._limit_s = limit_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(sock,)))
            self._threads[-1].start()

    def _serve(self, sock: socket.socket) -> None:
        with sock:
            sock.settimeout(self._limit_s)
            with suppress(OSError):
                while sock.recv(4096):  # the request is one segment
                    self.generations += 1
                    sock.sendall(OK)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()


async def test_calls_at_the_idle_limit_of_the_server_never_fail_and_never_run_twice() -> None:
    calls, limit_s = 100, 0.03
    loop = asyncio.get_running_loop()
    server = ImpatientServer(limit_s)
    pool = Pool(f"http://127.0.0.1:{server.port}")
    try:
        for number in range(calls):
            assert await finish(await pool.send(POST, PATIENCE)) == b"hi"
            due_s = loop.time() + limit_s * (0.98 + 0.04 * (number % 21) / 20)
            await asyncio.sleep(due_s - loop.time())
    finally:
        pool.close()
        server.close()
    assert server.generations == calls

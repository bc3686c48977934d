"""One call after the other through a pool, against a socket that sends exact bytes: requests, responses, failures."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from router.errors import BackendBroke, BackendTimeout, BackendUnreachable
from router.wire.api import Patience, UpstreamPool, UpstreamRequest, UpstreamResponse
from router.wire.connection import Connection
from router.wire.upstream import Pool
from tests.router.wire.peers import GET, LAST, OK, PATIENCE, POST, STREAM, Backend, Sink, chunk, running, until


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


async def body_of(response: UpstreamResponse) -> bytes:
    sink = Sink()
    await response.relay(sink, sink.look)
    return sink.body


async def test_it_is_what_the_gateway_asks_for(backend: Backend, pool: Pool) -> None:
    asked: UpstreamPool = pool
    sending = running(asked.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer()
    response: UpstreamResponse = await sending
    assert await body_of(response) == b"hi"
    response.close()


# --- requests


async def test_a_request_is_on_the_wire_as_given_with_our_host_and_length(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    request = await peer.answer()
    assert request == (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: */*\r\nContent-Length: 7\r\n\r\n"
        b'{"n":1}' % backend.port
    )
    (await sending).close()


async def test_five_megabytes_arrive_whole(backend: Backend, pool: Pool) -> None:
    body = bytes(range(256)) * 20_000
    request = UpstreamRequest(method="POST", target="/v1/x", headers=[], body=body)
    sending = running(pool.send(request, PATIENCE))
    peer = await backend.accept()
    seen = await peer.answer()
    assert hashlib.sha256(seen.partition(b"\r\n\r\n")[2]).digest() == hashlib.sha256(body).digest()
    response = await sending
    response.close()
    assert pool.idle == 1


# --- responses


async def test_the_head_comes_before_the_body_and_as_it_was_sent(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(b"HTTP/1.1 429 Slow Down\r\nretry-after: 30\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 4\r\n\r\n")
    response = await sending
    assert (response.status, response.reason, response.length) == (429, b"Slow Down", 4)
    assert response.headers[:3] == [(b"retry-after", b"30"), (b"X-A", b"1"), (b"x-a", b"2")]
    await peer.send(b"wait")
    assert await body_of(response) == b"wait"
    response.close()


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_a_status_without_body_leaves_the_connection_usable(backend: Backend, pool: Pool, status: bytes) -> None:
    sending = running(pool.send(GET, PATIENCE))
    peer = await backend.accept()
    await peer.answer(b"HTTP/1.1 " + status + b"\r\nContent-Length: 5\r\n\r\n")
    response = await sending
    assert (await body_of(response), response.length) == (b"", None)
    response.close()
    assert pool.idle == 1


async def test_a_response_to_head_has_no_body(backend: Backend, pool: Pool) -> None:
    head = UpstreamRequest(method="HEAD", target="/", headers=[], body=b"")
    sending = running(pool.send(head, PATIENCE))
    peer = await backend.accept()
    await peer.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    response = await sending
    assert (await body_of(response), response.length) == (b"", 5)
    response.close()
    assert pool.idle == 1


async def test_a_body_may_end_with_the_connection(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(GET, PATIENCE))
    peer = await backend.accept()
    await peer.answer(b"HTTP/1.0 200 OK\r\n\r\nhel")
    response = await sending
    relaying = running(body_of(response))
    await peer.send(b"lo")
    peer.close()
    assert await relaying == b"hello"
    response.close()
    assert pool.idle == 0


async def test_a_body_that_ends_with_the_connection_is_cut_by_a_reset(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(GET, PATIENCE))
    peer = await backend.accept()
    await peer.answer(b"HTTP/1.0 200 OK\r\n\r\nhel")
    response = await sending
    peer.reset()
    with pytest.raises(BackendBroke):
        await body_of(response)
    response.close()


async def test_small_answers_can_be_read_whole(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(STREAM + chunk(b"he"))
    response = await sending
    reading = running(response.read(5))
    await peer.send(chunk(b"llo") + LAST)
    assert await reading == b"hello"
    response.close()
    assert pool.idle == 1


async def test_an_answer_larger_than_the_reader_allows_is_broken_off(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(STREAM + chunk(b"hello"))
    response = await sending
    reading = running(response.read(9))
    await peer.send(chunk(b"hello"))
    with pytest.raises(BackendBroke, match="larger than 9 bytes"):
        await reading
    assert await peer.closed()
    response.close()


# --- failures


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Large: " + b"a" * 70_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"hello\r\n",
    ],
)
async def test_an_answer_that_is_no_http_is_the_backends_fault(backend: Backend, pool: Pool, answer: bytes) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(answer)
    with pytest.raises(BackendBroke):
        await sending
    assert await peer.closed()


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel", STREAM + chunk(b"hel")])
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_body_that_ends_early_is_handed_on_and_then_broken(
    backend: Backend, pool: Pool, start: bytes, how: str
) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(start)
    response = await sending
    sink = Sink()
    relaying = running(response.relay(sink, sink.look))
    await until(lambda: sink.body == b"hel")
    getattr(peer, how)()
    with pytest.raises(BackendBroke, match="in the middle"):
        await relaying
    response.close()
    assert pool.idle == 0


async def test_chunks_that_turn_into_garbage_are_broken(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(STREAM + chunk(b"hel"))
    response = await sending
    relaying = running(body_of(response))
    await peer.send(b"garbage\r\n")
    with pytest.raises(BackendBroke, match="not valid HTTP"):
        await relaying
    response.close()
    assert await peer.closed()


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_fresh_connection_that_dies_after_the_request_is_never_tried_again(
    backend: Backend, pool: Pool, how: str
) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.request()
    getattr(peer, how)()
    with pytest.raises(BackendBroke, match="without an answer"):
        await sending
    assert backend.nobody_waits()
    assert (pool.dials, pool.replays) == (1, 0)


async def test_a_fresh_connection_that_dies_with_the_request_unread_is_not_tried_again_either(
    backend: Backend, pool: Pool
) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await until(lambda: pool.dials == 1)
    await asyncio.sleep(0)
    peer.close()
    with pytest.raises(BackendBroke):
        await sending
    assert backend.nobody_waits()


@pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's word on what was acknowledged")
async def test_a_fresh_connection_that_was_closed_before_the_request_came_never_took_it(backend: Backend) -> None:
    """As docker's own proxy does it for a container that is gone: the next backend may be tried."""
    loop = asyncio.get_running_loop()
    sock = socket.create_connection(("127.0.0.1", backend.port))
    sock.setblocking(False)
    peer = await backend.accept()
    _, connection = await loop.create_connection(lambda: Connection(loop, sock, lambda ended: None), sock=sock)
    peer.close()
    with pytest.raises(BackendUnreachable, match="before the call had reached it"):
        await connection.request(
            b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n", b"{}", PATIENCE, to_head_request=False
        )


async def test_nobody_listening_is_unreachable(backend: Backend) -> None:
    backend.stop_listening()
    pool = Pool(backend.url)
    with pytest.raises(BackendUnreachable):
        await pool.send(POST, PATIENCE)
    assert repr(pool) == f"<Pool 127.0.0.1:{backend.port}: 0 busy, 0 idle>"


async def test_no_head_within_the_first_byte_limit(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, Patience(connect_s=1, first_byte_s=0.05, idle_s=9)))
    peer = await backend.accept()
    await peer.request()
    with pytest.raises(BackendTimeout, match="first_byte"):
        await sending
    assert await peer.closed()


async def test_silence_within_a_stream(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, Patience(connect_s=1, first_byte_s=9, idle_s=0.05)))
    peer = await backend.accept()
    await peer.answer(STREAM + chunk(b"a"))
    response = await sending
    with pytest.raises(BackendTimeout, match="idle"):
        await body_of(response)
    assert await peer.closed()
    response.close()


async def test_a_silence_that_pings_break_is_none(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, Patience(connect_s=1, first_byte_s=9, idle_s=0.8)))
    peer = await backend.accept()
    await peer.answer(STREAM)
    response = await sending
    relaying = running(body_of(response))
    for _ in range(5):
        await asyncio.sleep(0.25)  # time has to pass here
        await peer.send(chunk(b":\n\n"))
    await peer.send(LAST)
    assert await relaying == b":\n\n" * 5
    response.close()


async def test_an_answer_in_the_middle_of_a_large_request_is_heard(backend: Backend, pool: Pool) -> None:
    request = UpstreamRequest(method="POST", target="/v1/x", headers=[], body=b"x" * 5_000_000)
    sending = running(pool.send(request, PATIENCE))
    peer = await backend.accept()
    await peer.read(1000)
    await peer.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
    peer.close()  # with most of the request unread: a reset follows the answer
    response = await sending
    assert (response.status, await body_of(response)) == (413, b"big")
    response.close()
    assert pool.idle == 0


# --- leaving


async def test_leaving_before_the_head_closes_the_connection_at_once(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.request()
    sending.cancel()
    left_s = asyncio.get_running_loop().time()
    assert await peer.closed()
    assert asyncio.get_running_loop().time() - left_s < 0.1
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert pool.busy == 0


async def test_leaving_in_the_middle_closes_the_connection_at_once(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(STREAM + chunk(b"a"))
    response = await sending
    sink = Sink()
    relaying = running(response.relay(sink, sink.look))
    await until(lambda: sink.body == b"a")
    relaying.cancel()
    assert await peer.closed()
    with pytest.raises(asyncio.CancelledError):
        await relaying
    response.close()


async def test_leaving_during_the_dial_leaves_nothing_behind(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, PATIENCE))
    await asyncio.sleep(0)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert repr(pool) == f"<Pool 127.0.0.1:{backend.port}: 0 busy, 0 idle>"


async def test_closing_an_incomplete_response_breaks_the_connection(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(STREAM + chunk(b"a"))
    response = await sending
    response.close()
    assert await peer.closed()
    assert (pool.busy, pool.idle) == (0, 0)
    response.close()
    assert pool.busy == 0
    with pytest.raises(RuntimeError):
        await response.read(9)


async def test_a_relay_that_was_given_up_cannot_go_on(backend: Backend, pool: Pool) -> None:
    sending = running(pool.send(POST, PATIENCE))
    peer = await backend.accept()
    await peer.answer(STREAM + chunk(b"a"))
    response = await sending
    relaying = running(body_of(response))
    await asyncio.sleep(0)
    relaying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await relaying
    with pytest.raises(BackendBroke):
        await body_of(response)
    response.close()


async def test_a_pool_shows_what_it_holds(backend: Backend, pool: Pool) -> None:
    one = running(pool.send(POST, PATIENCE))
    first = await backend.accept()
    two = running(pool.send(POST, PATIENCE))
    second = await backend.accept()
    await first.answer()
    await second.answer()
    (await one).close()
    response = await two
    assert repr(pool) == f"<Pool 127.0.0.1:{backend.port}: 1 busy, 1 idle>"
    response.close()
    assert (pool.dials, pool.reuses, pool.replays, pool.idle) == (2, 0, 0, 2)


async def test_a_closed_pool_lets_running_calls_end(backend: Backend, pool: Pool) -> None:
    one = running(pool.send(POST, PATIENCE))
    first = await backend.accept()
    two = running(pool.send(POST, PATIENCE))
    second = await backend.accept()
    await first.answer()
    (await one).close()
    pool.close()
    assert await first.closed()
    await second.answer(OK)
    response = await two
    assert await body_of(response) == b"hi"
    response.close()
    assert await second.closed()
    assert pool.idle == 0


async def test_an_error_tells_a_client_no_address(backend: Backend) -> None:
    backend.stop_listening()
    with pytest.raises(BackendUnreachable) as caught:
        await Pool(backend.url).send(POST, PATIENCE)
    assert "127.0.0.1" not in caught.value.message
    assert str(backend.port) not in caught.value.message

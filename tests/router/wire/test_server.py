"""The server side on real sockets: exact bytes in, exact bytes out, on uvloop and on plain asyncio."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import structlog

from router.errors import BadRequest, TooLarge
from router.wire.exchange import Exchange
from router.wire.server import UNSENT_LIMIT_BYTES, HttpServer
from router.wire.server_connection import ClientPatience
from tests.rawclient import RawClient
from tests.router.wire.peers import until

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
TEXT = [(b"Content-Type", b"text/plain")]


@dataclass
class Served:
    """A running server, and what its handler saw."""

    server: HttpServer
    port: int
    loop_errors: list[dict[str, object]]
    open: list[Exchange] = field(default_factory=list)
    cancelled: list[bool] = field(default_factory=list)
    """Per cancelled handler: whether the client was known to be gone."""

    async def client(self) -> RawClient:
        return await RawClient.connect(self.port)

    async def say(self, data: bytes) -> bytes:
        """All that comes back until the server closes."""
        async with await self.client() as client:
            await client.send(data)
            return await asyncio.wait_for(client.reader.read(), 5.0)


Handler = Callable[[Exchange], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler, patience: ClientPatience | None = None) -> AsyncIterator[Served]:
    loop = asyncio.get_running_loop()
    errors: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _, context: errors.append(context))

    async def noted(exchange: Exchange) -> None:
        served.open.append(exchange)
        try:
            await handler(exchange)
        except asyncio.CancelledError:
            served.cancelled.append(exchange.gone)
            raise
        finally:
            served.open.remove(exchange)

    server = HttpServer(noted, max_header_bytes=1000, patience=patience or ClientPatience())
    served = Served(server, await server.listen("127.0.0.1", 0), errors)
    try:
        yield served
    finally:
        await server.close()
    assert not served.open
    gc.collect()
    assert errors == [], "something went to the loop's exception handler"


def answer(exchange: Exchange, body: bytes, status: int = 200) -> None:
    exchange.start(status, b"OK", TEXT, length=len(body))
    exchange.write(body)
    exchange.finish()


async def hello(exchange: Exchange) -> None:
    answer(exchange, b"hello")


async def echo(exchange: Exchange) -> None:
    answer(exchange, exchange.path.encode() + b" " + await exchange.body(1_000_000))


async def stream(exchange: Exchange) -> None:
    exchange.start(200, b"OK", TEXT, length=None)
    for piece in (b"one", b"", b"two"):
        exchange.write(piece)
    exchange.finish()


async def silence(exchange: Exchange) -> None:
    await asyncio.Event().wait()


# --- requests


async def test_a_request_reaches_the_handler_as_it_stood_on_the_wire() -> None:
    seen: list[tuple[object, ...]] = []

    async def look(exchange: Exchange) -> None:
        seen.append((exchange.method, exchange.path, exchange.query, list(exchange.raw_headers)))
        seen.append((exchange.header("x-a"), exchange.header("x-b"), await exchange.body(10)))
        answer(exchange, b"")

    async with serving(look) as served, await served.client() as client:
        await client.send(b"POST /a%2Fb?c=%20&d HTTP/1.1\r\nhOST: h\r\nX-a: 1\r\nX-A: 2\r\nContent-Length: 2\r\n\r\nhi")
        assert (await client.answer()).status == 200
    fields = [(b"hOST", b"h"), (b"X-a", b"1"), (b"X-A", b"2"), (b"Content-Length", b"2")]
    assert seen == [("POST", "/a%2Fb", "?c=%20&d", fields), ("2", None, b"hi")]


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("http://h:1/p?q", "/p", "?q"),
        ("http://h", "/", ""),
        ("HTTP://h?q=/", "/", "?q=/"),
        ("/p#f?q", "/p", ""),
        ("/p?u=http://x/", "/p", "?u=http://x/"),
        ("*", "*", ""),
    ],
)
async def test_a_target_may_name_scheme_and_host(target: str, path: str, query: str) -> None:
    seen = []

    async def look(exchange: Exchange) -> None:
        seen.append((exchange.path, exchange.query))
        answer(exchange, b"")

    async with serving(look) as served, await served.client() as client:
        await client.request("OPTIONS", target)
        await client.answer()
    assert seen == [(path, query)]


async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with serving(echo) as served, await served.client() as client:
        for number in range(3):
            await client.post(f"/{number}", b"body")
            got = await client.answer()
            assert (got.body, got.header("connection")) == (f"/{number} body".encode(), None)
        assert served.server.connections == 1


async def test_pipelined_requests_are_answered_one_by_one_in_their_order() -> None:
    at_once = 0

    async def slow(exchange: Exchange) -> None:
        nonlocal at_once
        at_once = max(at_once, len(served.open))
        await asyncio.sleep(0)  # one turn in which the next could begin
        await echo(exchange)

    async with serving(slow) as served, await served.client() as client:
        chunked = b"POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n"
        counted = b"POST /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nc"
        await client.send(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n" + chunked + counted + GET[:10])
        assert [(await client.answer()).body for _ in range(3)] == [b"/1 ", b"/2 b", b"/3 c"]
        await client.send(GET[10:])
        assert (await client.answer()).body == b"/ "
    assert at_once == 1


async def test_a_flood_of_pipelined_requests_is_not_read_ahead() -> None:
    go_on = asyncio.Event()

    async def wait(exchange: Exchange) -> None:
        await go_on.wait()
        answer(exchange, b"")

    async with serving(wait) as served:
        sock = socket.create_connection(("127.0.0.1", served.port))
        sock.setblocking(False)
        with sock:
            sent, stuck = 0, 0
            while stuck < 50 and sent < 50_000_000:
                try:
                    sent += sock.send(GET * 1000)
                    stuck = 0
                except BlockingIOError:
                    stuck += 1
                    await asyncio.sleep(0.002)
            assert sent < 20_000_000  # what the kernel holds for both sides
            assert len(served.open) == 1
        go_on.set()


async def test_an_upgrade_is_not_taken_up() -> None:
    async with serving(echo) as served, await served.client() as client:
        await client.post("/", b"body", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c")
        assert (await client.answer()).body == b"/ body"


# --- bodies


async def test_a_body_is_waited_for_only_when_it_is_asked_for() -> None:
    async with serving(echo) as served, await served.client() as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        assert (await client.answer()).status == 100
        await client.send(b"he")
        await client.send(b"llo")
        assert (await client.answer()).body == b"/ hello"
        await client.send(GET)  # the connection goes on
        assert (await client.answer()).status == 200


async def test_a_body_that_is_too_large_is_refused_before_it_is_sent() -> None:
    async def picky(exchange: Exchange) -> None:
        with pytest.raises(TooLarge, match="the body has 11 bytes"):
            await exchange.body(10)
        answer(exchange, b"no", 413)

    async with serving(picky) as served:
        said = await served.say(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 413 ")
        assert b"\r\nConnection: close\r\n" in said


async def test_a_chunked_body_is_counted_against_the_limit() -> None:
    async def picky(exchange: Exchange) -> None:
        with pytest.raises(TooLarge):
            await exchange.body(100_000)
        answer(exchange, b"no", 413)

    async with serving(picky) as served, await served.client() as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            await client.send(b"c350\r\n%b\r\n" % (b"x" * 50_000))
        assert (await client.answer()).status == 413


async def test_a_client_that_is_still_sending_can_read_the_refusal() -> None:
    async def refuse(exchange: Exchange) -> None:
        answer(exchange, b"no", 404)

    async with serving(refuse) as served, await served.client() as client:
        client.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000000\r\n\r\n")
        for _ in range(30):
            await client.send(b"x" * 1_000_000)  # all of it, before it reads
        got = await client.answer()
        assert (got.status, got.header("connection")) == (404, "close")
        assert await client.reader.read() == b""


async def test_a_body_that_nobody_asks_for_is_not_read() -> None:
    async with serving(silence) as served:
        sock = socket.create_connection(("127.0.0.1", served.port))
        sock.setblocking(False)
        with sock:
            sock.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
            sent, stuck = 0, 0
            while stuck < 50 and sent < 50_000_000:
                try:
                    sent += sock.send(b"x" * 100_000)
                    stuck = 0
                except BlockingIOError:
                    stuck += 1
                    await asyncio.sleep(0.002)
            assert sent < 20_000_000


async def test_a_large_body_arrives_whole() -> None:
    async def size(exchange: Exchange) -> None:
        await asyncio.sleep(0.02)  # time for it to back up
        answer(exchange, b"%d" % len(await exchange.body(10**8)))

    async with serving(size) as served, await served.client() as client:
        await client.post("/", b"x" * 5_000_000)
        assert (await client.answer()).body == b"5000000"


async def test_a_body_with_broken_chunks_is_a_bad_request() -> None:
    async def read(exchange: Exchange) -> None:
        with pytest.raises(BadRequest, match="chunked"):
            await exchange.body(1000)
        answer(exchange, b"no", 400)

    async with serving(read) as served:
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert (await served.say(head + b"xyz\r\n")).startswith(b"HTTP/1.1 400 ")


# --- responses


async def test_a_known_length_is_told_and_a_stream_is_chunked() -> None:
    async with serving(hello) as served:
        assert await served.say(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") == (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
        )
    async with serving(stream) as served:
        assert await served.say(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") == (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
            b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
        )


async def test_http_1_0_gets_no_chunks_and_keeps_alive_only_when_it_asks() -> None:
    async with serving(stream) as served:
        assert await served.say(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n") == (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nonetwo"
        )
    async with serving(hello) as served, await served.client() as client:
        await client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert (await client.answer()).header("connection") == "keep-alive"
        await client.send(b"GET / HTTP/1.0\r\n\r\n")
        assert (await client.answer()).header("connection") == "close"
        assert await client.reader.read() == b""


@pytest.mark.parametrize("handler", [hello, stream])
async def test_head_gets_no_body(handler: Handler) -> None:
    async with serving(handler) as served:
        said = await served.say(b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert said.endswith(b"\r\n\r\n")
        assert b"Content-Length: 5" in said or b"Transfer-Encoding: chunked" in said


async def test_204_has_neither_body_nor_framing() -> None:
    async def nothing(exchange: Exchange) -> None:
        exchange.start(204, b"No Content", [], length=None)
        exchange.finish()

    async with serving(nothing) as served, await served.client() as client:
        await client.send(GET + GET)
        assert await client.reader.readexactly(54) == b"HTTP/1.1 204 No Content\r\n\r\n" * 2


async def test_a_head_does_not_wait_for_the_body() -> None:
    async def late(exchange: Exchange) -> None:
        exchange.start(200, b"OK", [], length=5)
        await asyncio.Event().wait()

    async with serving(late) as served, await served.client() as client:
        await client.send(GET)
        assert (await client.answer(head_only=True)).status == 200


async def test_a_broken_stream_still_delivers_what_was_written() -> None:
    async def broken(exchange: Exchange) -> None:
        exchange.start(200, b"OK", [], length=None)
        exchange.write(b"x" * 1_000_000)
        exchange.abort()

    async with serving(broken) as served:
        said = await served.say(GET)
        assert said.endswith(b"x\r\n")
        assert len(said) > 1_000_000


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
async def test_a_broken_answer_without_chunks_is_a_reset(version: bytes) -> None:
    go_on = asyncio.Event()

    async def broken(exchange: Exchange) -> None:
        exchange.start(200, b"OK", [], length=None if version == b"1.0" else 10)
        exchange.write(b"some")
        await go_on.wait()
        exchange.abort()

    async with serving(broken) as served, await served.client() as client:
        await client.send(b"GET / HTTP/%b\r\nHost: a\r\n\r\n" % version)
        assert (await client.reader.readuntil(b"some")).startswith(b"HTTP/1.1 200 ")
        go_on.set()
        with pytest.raises(ConnectionResetError):
            await client.reader.read()


async def test_a_handler_that_fails_ends_its_own_connection_only() -> None:
    async def fail(exchange: Exchange) -> None:
        if exchange.path == "/bad":
            raise ZeroDivisionError
        answer(exchange, b"fine")

    with structlog.testing.capture_logs() as logs:
        async with serving(fail) as served:
            assert await served.say(b"GET /bad HTTP/1.1\r\nHost: a\r\n\r\n") == b""
            async with await served.client() as client:
                await client.send(GET)
                assert (await client.answer()).body == b"fine"
    assert [entry["event"] for entry in logs] == ["request_failed"]


async def test_what_is_no_request_gets_a_json_error_and_the_connection_ends() -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving(hello) as served:
            said = await served.say(GET + b"GET / HTTP/1.1\r\nHost : a\r\n\r\n" + GET)
            first, _, second = said.partition(b"hello")
            assert first.startswith(b"HTTP/1.1 200 ")
            assert second.startswith(b"HTTP/1.1 400 Bad Request\r\n")
            assert b'"code":"malformed_request"' in second
            assert second.count(b"HTTP/1.1 200") == 0
    assert logs == []


# --- clients that are slow


async def test_a_slow_reader_holds_the_writer_back() -> None:
    written = 0

    async def pour(exchange: Exchange) -> None:
        nonlocal written
        exchange.start(200, b"OK", [], length=None)
        for _ in range(1000):
            if not exchange.write(b"x" * 50_000):
                await exchange.drained()
            written += 1
        exchange.finish()

    async with serving(pour) as served, await served.client() as client:
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        before = -1
        while written != before:
            before = written
            await asyncio.sleep(0.05)
        assert written < 600
        said = await client.reader.read()
        assert len(said) > 50_000_000
        assert said.endswith(b"x\r\n0\r\n\r\n")


async def test_hardly_anything_waits_in_the_kernel_for_a_client_that_does_not_read() -> None:
    written = 0

    async def pour(exchange: Exchange) -> None:
        nonlocal written
        exchange.start(200, b"OK", [], length=None)
        while True:
            written += 10_000
            if not exchange.write(b"x" * 10_000):
                await exchange.drained()

    async with serving(pour) as served:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", served.port))
            client.sendall(GET)
            before = -1
            while written != before:
                before = written
                await asyncio.sleep(0.05)
    assert 0 < written < 2 * UNSENT_LIMIT_BYTES


async def test_who_reads_no_answers_gets_no_further_ones() -> None:
    answered = 0

    async def big(exchange: Exchange) -> None:
        nonlocal answered
        answered += 1
        answer(exchange, b"x" * 1_000_000)

    async with serving(big) as served, await served.client() as client:
        await client.send(GET * 50)
        before = -1
        while answered != before:
            before = answered
            await asyncio.sleep(0.05)
        assert answered < 30
        for _ in range(50):
            assert len((await client.answer()).body) == 1_000_000


# --- clients that leave


@pytest.mark.parametrize("half", [False, True], ids=["whole", "half_closed"])
async def test_a_client_that_leaves_cancels_the_handler(half: bool) -> None:
    async def begun(exchange: Exchange) -> None:
        exchange.start(200, b"OK", [], length=None)
        exchange.write(b"some")
        await asyncio.Event().wait()

    for handler, needs_body in ((silence, False), (begun, False), (echo, True)):
        async with serving(handler) as served, await served.client() as client:
            await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n" + b"abcd" * needs_body)
            await until(lambda served=served: len(served.open) == 1)  # type: ignore[misc]
            if half:
                client.writer.write_eof()
            else:
                client.close()
            await until(lambda served=served: served.cancelled == [True])  # type: ignore[misc]
            await until(lambda served=served: served.server.connections == 0)  # type: ignore[misc]


async def test_writing_to_a_client_that_left_goes_nowhere() -> None:
    wrote = asyncio.Event()

    async def stubborn(exchange: Exchange) -> None:
        exchange.start(200, b"OK", [], length=None)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            exchange.write(b"x")
            with pytest.raises(ConnectionError):
                await exchange.drained()
            exchange.abort()
            exchange.finish()
            wrote.set()
            raise

    async with serving(stubborn) as served:
        client = await served.client()
        await client.send(GET)
        await client.answer(head_only=True)
        client.writer.transport.abort()
        await asyncio.wait_for(wrote.wait(), 5.0)


async def test_a_client_that_leaves_behind_its_answer_cancels_nothing() -> None:
    go_on = asyncio.Event()

    async def tidy(exchange: Exchange) -> None:
        answer(exchange, b"done")
        await go_on.wait()

    async with serving(tidy) as served:
        async with await served.client() as client:
            await client.send(GET)
            await client.answer()
        await until(lambda: served.server.connections == 0)
        go_on.set()
        await until(lambda: not served.open)
        assert served.cancelled == []


# --- time


async def test_an_idle_connection_is_closed() -> None:
    async with serving(hello, ClientPatience(idle_s=0.05)) as served:
        assert await served.say(b"") == b""
        assert (await served.say(GET)).endswith(b"hello")


async def test_a_head_that_drips_is_refused() -> None:
    async with serving(hello, ClientPatience(head_s=0.1)) as served, await served.client() as client:
        for byte in GET[:8]:
            await client.send(bytes([byte]))
            await asyncio.sleep(0.005)
        got = await client.answer()
        assert (got.status, got.header("connection")) == (408, "close")


async def test_a_body_that_stalls_is_a_bad_request() -> None:
    async def read(exchange: Exchange) -> None:
        with pytest.raises(BadRequest, match="nothing came"):
            await exchange.body(1000)
        answer(exchange, b"no", 400)

    async with serving(read, ClientPatience(body_stall_s=0.05)) as served:
        assert (await served.say(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")).endswith(b"no")


async def test_a_client_that_never_stops_sending_is_cut_off() -> None:
    async with serving(hello, ClientPatience(linger_s=0.1)) as served, await served.client() as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")

        async def pour() -> None:
            while True:
                await client.send(b"x" * 1000)
                await asyncio.sleep(0.005)

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(pour(), 5.0)


# --- the end


async def test_draining_closes_idle_connections_and_lets_calls_finish() -> None:
    go_on = asyncio.Event()

    async def wait(exchange: Exchange) -> None:
        if exchange.path == "/begun":
            exchange.start(200, b"OK", [], length=4)
        await go_on.wait()
        if not exchange.started:
            exchange.start(200, b"OK", [], length=4)
        exchange.write(b"done")
        exchange.finish()

    async with serving(wait) as served:
        idle, calling, begun = [await served.client() for _ in range(3)]
        await calling.request("GET", "/calling")
        await begun.request("GET", "/begun")
        first = await begun.answer(head_only=True)
        await until(lambda: len(served.open) == 2)
        served.server.stop_accepting()
        assert await asyncio.wait_for(idle.reader.read(), 5.0) == b""
        with pytest.raises(ConnectionError):
            await served.client()
        go_on.set()
        got = await calling.answer()
        assert (got.body, got.header("connection")) == (b"done", "close")
        await begun.rest(first)
        assert first.header("connection") is None
        for client in (calling, begun):
            assert await asyncio.wait_for(client.reader.read(), 5.0) == b""
        for client in (idle, calling, begun):
            client.close()


async def test_a_request_that_has_begun_when_draining_begins_is_still_answered() -> None:
    async with serving(hello) as served, await served.client() as client:
        await client.send(GET[:10])
        await until(lambda: served.server.connections == 1)
        async with await served.client() as other:  # by its answer the bytes above have been read
            await other.send(GET)
            await other.answer()
        served.server.stop_accepting()
        await client.send(GET[10:])
        got = await client.answer()
        assert (got.body, got.header("connection")) == (b"hello", "close")
        assert await client.reader.read() == b""


async def test_closing_cancels_what_still_runs_and_delivers_its_last_words() -> None:
    async def last_words(exchange: Exchange) -> None:
        exchange.start(200, b"OK", [], length=None)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            exchange.write(b"sorry")
            exchange.finish()

    async with serving(last_words) as served, await served.client() as client:
        await client.send(GET)
        got = await client.answer(head_only=True)
        closing = asyncio.get_running_loop().create_task(served.server.close())
        await client.rest(got)
        assert (got.body, got.complete) == (b"sorry", True)
        await asyncio.wait_for(closing, 5.0)
        assert served.server.connections == 0

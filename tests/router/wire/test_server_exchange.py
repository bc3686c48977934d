"""What an exchange hands to the transport, and in how many pieces: each is a system call."""

from __future__ import annotations

import asyncio

import pytest

from router.wire.request_reader import RequestReader
from router.wire.server_exchange import HttpExchange

SSE = [(b"Content-Type", b"text/event-stream")]


class Client:
    """A connection that keeps what it is given."""

    def __init__(self, request: bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") -> None:
        self.slow = False
        self.peer = "127.0.0.1"
        self.tls = False
        self.ending = False
        self.peer = "127.0.0.1"
        self.tls = False
        self.sent: list[bytes] = []
        self.resets: list[bool] = []
        reader = RequestReader(max_header_bytes=1000)
        reader.feed(request)
        self.exchange = HttpExchange(self, reader, asyncio.get_running_loop(), self.sent.append)

    async def receive_body(self, limit_bytes: int) -> None:
        raise AssertionError("the body is there")

    async def drained(self) -> None:
        raise AssertionError("nobody should wait")

    def break_off(self, *, reset: bool) -> None:
        self.resets.append(reset)


async def test_an_answer_leaves_in_one_piece() -> None:
    client = Client()
    client.exchange.start(200, b"OK", [], length=2)
    client.exchange.write(b"hi")
    client.exchange.finish()
    await asyncio.sleep(0)
    assert client.sent == [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"]


async def test_the_head_of_a_stream_leaves_with_its_first_bytes_and_each_token_alone() -> None:
    client = Client()
    client.exchange.start(200, b"OK", SSE, length=None)
    for token in (b"data: a\n\n", b"data: b\n\n"):
        assert client.exchange.write(token)
    client.exchange.finish()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert client.sent == [head + b"9\r\ndata: a\n\n\r\n", b"9\r\ndata: b\n\n\r\n", b"0\r\n\r\n"]


@pytest.mark.parametrize("length", [None, 5])
async def test_a_head_waits_for_the_body_no_longer_than_its_turn(length: int | None) -> None:
    client = Client()
    client.exchange.start(200, b"OK", SSE, length=length)
    assert client.sent == []
    await asyncio.sleep(0)
    assert len(client.sent) == 1


async def test_a_stream_that_breaks_at_once_still_shows_its_head() -> None:
    client = Client()
    client.exchange.start(200, b"OK", SSE, length=None)
    client.exchange.abort()
    client.exchange.write(b"late")
    client.exchange.finish()
    await asyncio.sleep(0)
    assert len(client.sent) == 1
    assert client.resets == [False]


async def test_a_slow_client_is_told_to_the_writer() -> None:
    client = Client()
    client.exchange.start(200, b"OK", SSE, length=None)
    client.slow = True
    assert client.exchange.write(b"x") is False


def goes_straight(client: Client) -> bool:
    return client.exchange.straight is not None


async def test_whole_chunks_may_go_straight_once_the_head_has_left() -> None:
    client = Client()
    exchange = client.exchange
    assert not goes_straight(client)
    exchange.start(200, b"OK", SSE, length=None)
    assert not goes_straight(client)
    exchange.write(b"a")
    assert exchange.straight is not None
    exchange.straight(b"1\r\nb\r\n")
    exchange.finish()
    assert client.sent[1:] == [b"1\r\nb\r\n", b"0\r\n\r\n"]
    assert not goes_straight(client)


@pytest.mark.parametrize(
    ("request_line", "length"), [("GET / HTTP/1.1", 5), ("GET / HTTP/1.0", None), ("HEAD / HTTP/1.1", None)]
)
async def test_chunks_never_go_straight_where_the_answer_has_none(request_line: str, length: int | None) -> None:
    client = Client(f"{request_line}\r\nHost: a\r\n\r\n".encode())
    client.exchange.start(200, b"OK", SSE, length=length)
    client.exchange.write(b"a")
    client.exchange.keeps_up()
    assert client.exchange.straight is None


async def test_chunks_do_not_go_straight_to_a_client_that_is_slow_or_has_left() -> None:
    client = Client()
    exchange = client.exchange
    exchange.start(200, b"OK", SSE, length=None)
    exchange.write(b"a")
    client.slow = True
    exchange.falls_behind()
    assert not goes_straight(client)
    exchange.write(b"b")
    assert not goes_straight(client)
    client.slow = False
    exchange.keeps_up()
    assert goes_straight(client)
    exchange.client_left()
    exchange.keeps_up()
    assert not goes_straight(client)


async def test_chunks_do_not_go_straight_after_a_break() -> None:
    client = Client()
    client.exchange.start(200, b"OK", SSE, length=None)
    client.exchange.write(b"a")
    client.exchange.abort()
    client.exchange.keeps_up()
    assert client.exchange.straight is None


async def test_the_last_exchange_of_a_connection_says_so() -> None:
    client = Client()
    client.ending = True
    client.exchange.start(200, b"OK", [], length=0)
    assert b"\r\nConnection: close\r\n" in client.sent[0]
    assert not client.exchange.keep_alive


async def test_a_request_whose_body_is_still_under_way_is_the_last() -> None:
    client = Client(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")
    client.exchange.start(404, b"Not Found", [], length=0)
    assert b"\r\nConnection: close\r\n" in client.sent[0]


async def test_a_body_that_is_there_is_taken_without_a_wait() -> None:
    client = Client(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab")
    assert await client.exchange.body(10) == b"ab"
    assert client.sent == []

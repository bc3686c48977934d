"""One connection, driven by hand: what happens in which turn of the loop, which timers run, what time counts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from math import inf
from typing import Any, cast

import pytest

from router.errors import BackendBroke, BackendTimeout
from router.wire.api import Patience
from router.wire.connection import HELD_LIMIT_BYTES, KEPT_PIECES, Connection, NotTaken
from router.wire.response_reader import ResponseReader
from tests.router.wire.peers import LAST, OK, STREAM, Sink, chunk, running, until

PATIENCE = Patience(connect_s=1.0, first_byte_s=600.0, idle_s=300.0)


class FakeTransport:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self._reading = True
        self.aborted = False
        self.unsent_bytes = 0

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def pause_reading(self) -> None:
        assert self._reading
        self._reading = False

    def is_reading(self) -> bool:
        return self._reading

    def resume_reading(self) -> None:
        assert not self._reading
        self._reading = True

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.aborted

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes


class Timer:
    def __init__(self, timers: list[Timer], at_s: float, ring: Callable[[], None]) -> None:
        self.timers, self.at_s, self.ring = timers, at_s, ring
        timers.append(self)

    def cancel(self) -> None:
        if self in self.timers:
            self.timers.remove(self)


class HandTurnedLoop:
    """The running loop with a clock and timers that a test turns."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.timers: list[Timer] = []
        self.armed = 0

    def time(self) -> float:
        return self.now_s

    def call_at(self, at_s: float, ring: Callable[[], None]) -> Timer:
        self.armed += 1
        return Timer(self.timers, at_s, ring)

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    def advance(self, by_s: float) -> None:
        end_s = self.now_s + by_s
        while due := [timer for timer in self.timers if timer.at_s <= end_s]:
            timer = min(due, key=lambda timer: timer.at_s)
            self.timers.remove(timer)
            self.now_s = max(self.now_s, timer.at_s)
            timer.ring()
        self.now_s = end_s


class Bench:
    """A connection between a fake transport and a clock that stands still."""

    def __init__(self, sock: socket.socket) -> None:
        self.loop = HandTurnedLoop()
        self.transport = FakeTransport()
        self.ended_idle = 0
        self.connection = Connection(
            cast(asyncio.AbstractEventLoop, self.loop), sock, self._idle_ended, now=self.loop.time
        )
        self.connection.connection_made(cast(asyncio.Transport, self.transport))
        self.sink = Sink()

    def _idle_ended(self, connection: Connection) -> None:
        self.ended_idle += 1

    def request(self, body: bytes = b"") -> Coroutine[Any, Any, ResponseReader]:
        return self.connection.request(b"HEAD", body, PATIENCE, to_head_request=False)

    async def streaming(self, sink: Sink | None = None) -> tuple[ResponseReader, asyncio.Task[None]]:
        """A stream whose head has come and whose relay waits for more."""
        asking = running(self.request())
        await turn()
        self.connection.data_received(STREAM)
        reader = await asking
        relaying = running(self.connection.relay(reader, sink or self.sink, self.sink.look))
        await turn()
        return reader, relaying

    def receive(self, data: bytes) -> None:
        self.connection.data_received(data)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as sock:
        yield Bench(sock)


async def turn() -> None:
    await asyncio.sleep(0)


# --- bytes


async def test_a_piece_reaches_the_client_in_the_turn_in_which_it_comes(bench: Bench) -> None:
    _, relaying = await bench.streaming()
    bench.receive(chunk(b"a"))
    assert bench.sink.pieces == [b"a"]
    bench.receive(chunk(b"b") + chunk(b"c") + chunk(b"d"))
    assert bench.sink.pieces == [b"a", b"bcd"]
    bench.receive(chunk(b"e") + LAST)
    assert bench.sink.pieces == [b"a", b"bcd", b"e"]
    await relaying


async def test_head_and_small_body_are_one_write_and_a_large_body_is_not_copied(bench: Bench) -> None:
    asking = running(bench.request(b"body"))
    await turn()
    assert bench.transport.written == [b"HEADbody"]
    bench.receive(OK)
    bench.connection.finish(await asking)
    large = b"x" * 5_000_000
    asking = running(bench.request(large))
    await turn()
    assert bench.transport.written[1] == b"HEAD"
    assert bench.transport.written[2] is large
    bench.receive(OK)
    await asking


async def test_what_comes_before_relay_is_held_and_given_as_one_piece(bench: Bench) -> None:
    asking = running(bench.request())
    await turn()
    bench.receive(STREAM + chunk(b"a"))
    reader = await asking
    bench.receive(chunk(b"b"))
    bench.receive(chunk(b"c") + LAST)
    await bench.connection.relay(reader, bench.sink, bench.sink.look)
    assert bench.sink.pieces == [b"abc"]


async def test_beyond_a_small_limit_nothing_is_read_before_relay(bench: Bench) -> None:
    asking = running(bench.request())
    await turn()
    bench.receive(STREAM + chunk(b"x" * HELD_LIMIT_BYTES))
    assert bench.transport.is_reading()
    bench.receive(chunk(b"y"))
    assert not bench.transport.is_reading()
    reader = await asking
    bench.loop.advance(10_000)  # nobody asks the backend for anything, so it is not late
    relaying = running(bench.connection.relay(reader, bench.sink, bench.sink.look))
    await turn()
    assert bench.transport.is_reading()
    bench.receive(LAST)
    await relaying
    assert len(bench.sink.body) == HELD_LIMIT_BYTES + 1


async def test_a_failure_comes_after_the_bytes_before_it(bench: Bench) -> None:
    asking = running(bench.request())
    await turn()
    bench.receive(STREAM)
    reader = await asking
    bench.receive(chunk(b"a"))
    bench.connection.connection_lost(ConnectionResetError())
    with pytest.raises(BackendBroke) as caught:
        await bench.connection.relay(reader, bench.sink, bench.sink.look)
    assert bench.sink.pieces == [b"a"]
    assert isinstance(caught.value.__cause__, ConnectionResetError)


async def test_an_error_of_the_client_side_comes_out_of_relay_unchanged(bench: Bench) -> None:
    cause = ValueError("observer")

    class Broken(Sink):
        def write(self, data: bytes) -> bool:
            raise RuntimeError("sink") from cause

    _, relaying = await bench.streaming(Broken())
    bench.receive(chunk(b"a"))
    with pytest.raises(RuntimeError, match="sink") as caught:
        await relaying
    assert caught.value.__cause__ is cause
    assert bench.transport.aborted


# --- the short way of whole chunks


def straight_to(bench: Bench) -> list[bytes]:
    """Lets whole chunks pass as they are; returns where they go."""
    went: list[bytes] = []
    bench.sink.straight = went.append
    return went


async def test_a_whole_chunk_behind_another_passes_as_it_came(bench: Bench) -> None:
    went = straight_to(bench)
    _, relaying = await bench.streaming()
    bench.receive(chunk(b"first"))
    bench.receive(chunk(b"second"))
    assert (bench.sink.pieces, went) == ([b"first"], [chunk(b"second")])
    bench.receive(chunk(b"third") + LAST)
    await relaying
    assert bench.sink.pieces == [b"first", b"third"]
    assert [piece for run in bench.sink.shown for piece in run] == [b"first", b"second", b"third"]


@pytest.mark.parametrize(
    "pieces",
    [
        (b"5\r\nab", b"cde\r\n"),
        (b"5", b"\r\nabcde\r\n"),
        (b"5\r\nabcde", b"\r\n"),
        (b"05\r\nabcde\r\n",),
        (b"5;name=value\r\nabcde\r\n",),
        (b"3\r\nabc\r\n2\r\nde\r\n",),
        (b"A\r\nabcdefghij\r\n",),
    ],
)
async def test_everything_else_goes_through_the_parser(bench: Bench, pieces: tuple[bytes, ...]) -> None:
    went = straight_to(bench)
    _, relaying = await bench.streaming()
    bench.receive(chunk(b"first"))
    for piece in pieces:
        bench.receive(piece)
    assert went == []
    assert b"".join(bench.sink.pieces[1:]) in (b"abcde", b"abcdefghij")
    bench.receive(LAST)
    await relaying


async def test_a_chunk_inside_a_chunk_is_only_text(bench: Bench) -> None:
    went = straight_to(bench)
    _, relaying = await bench.streaming()
    bench.receive(chunk(b"first"))
    bench.receive(b"8\r\n")
    bench.receive(b"3\r\nabc\r\n")
    bench.receive(b"\r\n" + LAST)
    await relaying
    assert went == []
    assert bench.sink.body == b"first3\r\nabc\r\n"


async def test_a_wrong_end_of_a_chunk_is_still_found(bench: Bench) -> None:
    straight_to(bench)
    _, relaying = await bench.streaming()
    bench.receive(chunk(b"first"))
    bench.receive(chunk(b"second"))
    bench.receive(b"3\r\nabcd\r\n")
    with pytest.raises(BackendBroke, match="not valid HTTP"):
        await relaying


async def test_a_client_that_falls_behind_is_written_to_by_the_long_way(bench: Bench) -> None:
    went = straight_to(bench)
    _, relaying = await bench.streaming()
    bench.receive(chunk(b"a"))
    bench.receive(chunk(b"b"))
    bench.sink.straight, bench.sink.ready = None, False
    bench.receive(chunk(b"c"))
    assert not bench.transport.is_reading()
    bench.sink.straight, bench.sink.ready = went.append, True
    bench.sink.may_drain.set()
    await until(lambda: bench.transport.is_reading())
    bench.receive(chunk(b"d"))
    bench.receive(chunk(b"e") + LAST)
    await relaying
    assert (bench.sink.pieces, went) == ([b"a", b"c", b"d", b"e"], [chunk(b"b")])


async def test_the_idle_limit_is_moved_by_whole_chunks_too(bench: Bench) -> None:
    straight_to(bench)
    _, relaying = await bench.streaming()
    bench.receive(chunk(b"a"))
    for _ in range(5):
        bench.loop.advance(PATIENCE.idle_s * 0.9)
        bench.receive(chunk(b"b"))
    assert not relaying.done()
    bench.loop.advance(PATIENCE.idle_s * 1.1)
    with pytest.raises(BackendTimeout):
        await relaying


async def test_pieces_are_shown_as_soon_as_whoever_looks_wants_to_see_them(bench: Bench) -> None:
    bench.sink.keep_s = 1.0
    straight_to(bench)
    _, relaying = await bench.streaming()
    bench.receive(chunk(b"a"))
    for _ in range(3):
        bench.loop.advance(0.3)
        bench.receive(chunk(b"b"))
    assert bench.sink.shown == [[b"a"]]
    bench.loop.advance(0.3)
    bench.receive(chunk(b"c"))
    assert bench.sink.shown == [[b"a"], [b"b", b"b", b"b", b"c"]]
    assert bench.sink.shown_at_s == pytest.approx([1000.0, 1000.3, 1000.6, 1000.9, 1001.2])
    for _ in range(KEPT_PIECES + 1):
        bench.receive(chunk(b"d"))
    assert bench.sink.shown[2:] == [[b"d"] * KEPT_PIECES]
    bench.receive(LAST)
    await relaying
    assert bench.sink.shown[3:] == [[b"d"]]


async def test_what_was_kept_is_shown_when_the_backend_breaks_off(bench: Bench) -> None:
    bench.sink.keep_s = 1.0
    straight_to(bench)
    _, relaying = await bench.streaming()
    for text in (b"a", b"b", b"c"):
        bench.receive(chunk(text))
    bench.connection.connection_lost(ConnectionResetError())
    with pytest.raises(BackendBroke):
        await relaying
    assert bench.sink.shown == [[b"a"], [b"b", b"c"]]


# --- a slow client


async def test_a_slow_client_stops_the_reading_until_it_has_drained(bench: Bench) -> None:
    _, relaying = await bench.streaming()
    bench.sink.ready = False
    bench.receive(chunk(b"a"))
    assert not bench.transport.is_reading()
    await turn()
    assert bench.sink.waits == 1
    bench.receive(chunk(b"b"))  # was on its way when the reading stopped
    assert bench.sink.pieces == [b"a"]
    bench.sink.ready = True
    bench.sink.may_drain.set()
    await until(lambda: bench.transport.is_reading())
    assert bench.sink.pieces == [b"a", b"b"]
    bench.receive(LAST)
    await relaying


async def test_the_end_of_the_body_does_not_wait_for_the_client(bench: Bench) -> None:
    reader, relaying = await bench.streaming()
    bench.sink.ready = False
    bench.receive(chunk(b"a") + LAST)
    await relaying
    assert bench.sink.waits == 0
    assert bench.connection.finish(reader)


async def test_a_connection_is_read_again_when_it_is_given_back(bench: Bench) -> None:
    asking = running(bench.request())
    await turn()
    bench.receive(STREAM + chunk(b"x" * HELD_LIMIT_BYTES) + chunk(b"y"))
    assert not bench.transport.is_reading()
    bench.receive(LAST)
    reader = await asking
    assert bench.connection.finish(reader)
    assert bench.transport.is_reading()


async def test_a_client_that_leaves_while_it_is_slow_closes_the_connection(bench: Bench) -> None:
    class Left(Sink):
        ready = False

        async def drained(self) -> None:
            raise ConnectionResetError("client left")

    sink = Left()
    sink.ready = False
    _, relaying = await bench.streaming(sink)
    bench.receive(chunk(b"a"))
    with pytest.raises(ConnectionResetError, match="client left"):
        await relaying
    assert bench.transport.aborted


# --- time


async def test_the_first_byte_limit_runs_until_the_head_is_complete(bench: Bench) -> None:
    asking = running(bench.request())
    await turn()
    bench.receive(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    bench.loop.advance(PATIENCE.first_byte_s)
    with pytest.raises(BackendTimeout, match="first_byte"):
        await asking
    assert bench.transport.aborted


async def test_the_idle_limit_runs_from_the_last_piece(bench: Bench) -> None:
    _, relaying = await bench.streaming()
    for _ in range(5):
        bench.loop.advance(PATIENCE.idle_s - 1)
        bench.receive(chunk(b":\n\n"))
    bench.loop.advance(PATIENCE.idle_s - 1)
    assert not bench.transport.aborted
    bench.loop.advance(1)
    with pytest.raises(BackendTimeout, match="idle"):
        await relaying
    assert bench.transport.aborted


async def test_the_idle_limit_is_not_hidden_behind_a_longer_first_byte_limit(bench: Bench) -> None:
    assert PATIENCE.idle_s < PATIENCE.first_byte_s
    _, relaying = await bench.streaming()
    bench.loop.advance(PATIENCE.idle_s)
    with pytest.raises(BackendTimeout):
        await relaying


async def test_the_time_of_a_slow_client_is_not_the_backends(bench: Bench) -> None:
    _, relaying = await bench.streaming()
    bench.sink.ready = False
    bench.receive(chunk(b"a"))
    await turn()
    bench.loop.advance(10 * PATIENCE.idle_s)
    bench.sink.may_drain.set()
    await until(lambda: bench.transport.is_reading())
    bench.loop.advance(PATIENCE.idle_s - 1)
    assert not relaying.done()
    bench.loop.advance(1)
    with pytest.raises(BackendTimeout):
        await relaying


async def test_pieces_touch_no_timer_and_neither_do_short_calls(bench: Bench) -> None:
    reader, relaying = await bench.streaming()
    armed = bench.loop.armed
    for _ in range(100):
        bench.loop.advance(0.01)
        bench.receive(chunk(b"a"))
    assert bench.loop.armed == armed
    bench.receive(LAST)
    await relaying
    bench.connection.finish(reader)
    bench.connection.rest(4.0, streamed=False)
    armed = bench.loop.armed
    for _ in range(10):
        asking = running(bench.request())
        await turn()
        bench.receive(OK)
        bench.connection.finish(await asking)
        bench.connection.rest(4.0, streamed=False)
    assert bench.loop.armed == armed
    assert len(bench.loop.timers) == 1


async def test_a_closed_connection_has_no_timer(bench: Bench) -> None:
    asking = running(bench.request())
    await turn()
    assert bench.loop.timers
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert bench.transport.aborted
    assert not bench.loop.timers


# --- between requests


async def answered(bench: Bench, response: bytes = OK) -> bool:
    """One call; returns whether the connection may be used again."""
    asking = running(bench.request())
    await turn()
    bench.receive(response)
    return bench.connection.finish(await asking)


async def test_an_idle_connection_ends_when_its_time_is_over(bench: Bench) -> None:
    assert await answered(bench)
    bench.connection.rest(4.0, streamed=False)
    bench.loop.advance(3.9)
    assert bench.connection.is_open()
    bench.loop.advance(0.1)
    assert bench.transport.aborted
    assert bench.ended_idle == 1
    assert not bench.connection.is_open()


async def test_an_idle_connection_whose_timer_is_late_has_expired(bench: Bench) -> None:
    assert await answered(bench)
    bench.connection.rest(4.0, streamed=False)
    assert not bench.connection.expired()
    bench.loop.now_s += 4.0
    assert bench.connection.expired()


async def test_bytes_on_an_idle_connection_end_it(bench: Bench) -> None:
    assert await answered(bench)
    bench.connection.rest(inf, streamed=False)
    bench.receive(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    assert bench.transport.aborted
    assert bench.ended_idle == 1


async def test_bytes_behind_a_complete_answer_end_the_connection_and_not_the_answer(bench: Bench) -> None:
    asking = running(bench.request())
    await turn()
    bench.receive(OK)
    reader = await asking
    bench.receive(b"surplus")
    await bench.connection.relay(reader, bench.sink, bench.sink.look)
    assert bench.sink.body == b"hi"
    assert not bench.connection.finish(reader)


async def test_an_answer_that_came_before_the_request_was_sent_ends_the_connection(bench: Bench) -> None:
    bench.transport.unsent_bytes = 1
    assert not await answered(bench)
    assert bench.transport.aborted


@pytest.mark.parametrize(
    ("heard", "failure"),
    [(b"", NotTaken), (b"H", BackendBroke), (b"HTTP/1.1 100 Continue\r\n\r\n", BackendBroke), (STREAM, BackendBroke)],
)
async def test_one_byte_of_an_answer_proves_that_the_request_was_taken(
    bench: Bench, heard: bytes, failure: type[Exception]
) -> None:
    assert await answered(bench)
    bench.connection.rest(4.0, streamed=False)
    asking = running(bench.request())
    await turn()
    if heard:
        bench.receive(heard)
    bench.connection.connection_lost(ConnectionResetError())
    with pytest.raises(failure):
        await asking


async def test_the_first_request_of_a_connection_always_counts_as_taken(bench: Bench) -> None:
    asking = running(bench.request())
    await turn()
    bench.connection.connection_lost(ConnectionResetError())
    with pytest.raises(BackendBroke):
        await asking

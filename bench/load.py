"""The client side of the measurements, in a process of its own: cheap, precise, and honest about failures.

`python -m bench.load` reads one job a line from standard input, `{"job": NAME, ...arguments}`, and writes one result a
line. Requests are built beforehand, connections are kept alive, bodies are counted and not decoded. A job that got any
answer but 200 fails with the reason: figures of failed calls are worth nothing.

The CPU clock and the memory of the measured process (`pid`) are read here, at the edges of the window and in the turn
of the event loop that also reads the counters, so that both figures speak of the same stretch of time.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import httptools
import uvloop

from bench import cpu
from bench.bodies import chat_body, request

TOKEN_MARK = b'"content"'
"""Stands once in each event that carries a token, also after a router has written the event anew."""
VARIANTS = 16
"""Different bodies, sent in turn."""
PATIENCE_S = 30.0
AT_ONCE = 50
BODY_BYTES = 1024
ENDLESS_TOKENS = 10_000_000
IDLE_MS = 3_600_000


class LoadError(Exception):
    """The measured process did not do its part; the message says what it did instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Complete calls in a window. `cpu_s` is that of the measured process, None where none was named."""

    calls: int
    seconds: float
    cpu_s: float | None
    reconnects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    tokens: int
    seconds: float
    cpu_s: float | None
    streams: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTokens:
    """Milliseconds from the request to the first token, one per stream, in order."""

    first_ms: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Memory of the measured process before and while `streams` streams are open and silent."""

    streams: int
    before_pss_bytes: int
    open_pss_bytes: int
    before_rss_bytes: int
    open_rss_bytes: int


Result = Calls | Tokens | FirstTokens | Idle


class Connection(asyncio.Protocol):
    """One client connection that counts. `ended` is called at the end of each answer and when it is lost."""

    def __init__(self, ended: Callable[[Connection], None]) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._ended = ended
        self._sent_s = 0.0
        self._first: asyncio.Future[float] | None = None
        self._transport: asyncio.Transport
        self.status = 0
        self.tokens = 0
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports do not derive from it

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if self._first is not None and not self._first.done():
            self._first.set_exception(LoadError("the connection was closed before the first token"))
        self._ended(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self.tokens += data.count(TOKEN_MARK)
        if self._first is not None and self.tokens and not self._first.done():
            self._first.set_result(time.perf_counter() - self._sent_s)

    def on_message_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self._first is not None and not self._first.done():
            self._first.set_exception(LoadError(f"an answer with status {self.status} and without a token"))
        self._ended(self)

    def send(self, data: bytes) -> None:
        self._transport.write(data)

    def send_stream(self, data: bytes) -> Awaitable[float]:
        """Send; the result is the seconds until the first token."""
        self.tokens = 0
        self._first = asyncio.get_running_loop().create_future()
        self._sent_s = time.perf_counter()
        self._transport.write(data)
        return self._first

    def close(self) -> None:
        self._transport.abort()


async def _connect(port: int, ended: Callable[[Connection], None]) -> Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(ended), "127.0.0.1", port)
    return connection


def _ignore(_: Connection) -> None:
    """For jobs that look at their connections themselves."""


def _requests(port: int, body_bytes: int, *, stream: bool, max_tokens: int, interval_ms: int) -> list[bytes]:
    return [
        request(
            chat_body(body_bytes, variant=variant, stream=stream, max_tokens=max_tokens, interval_ms=interval_ms),
            port=port,
        )
        for variant in range(VARIANTS)
    ]


def _cpu(pid: int | None) -> float | None:
    return None if pid is None else cpu.cpu_seconds(pid)


def _spent(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


class ClosedLoop:
    """So many connections, each with one call at a time, the next sent in the turn in which an answer has ended."""

    def __init__(self, port: int, requests: Sequence[bytes]) -> None:
        self._port = port
        self._requests = requests
        self._connections: set[Connection] = set()
        self._reconnecting: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references
        self._running = True
        self._failure: str | None = None
        self.calls = 0
        self.reconnects = 0

    async def open(self, concurrency: int) -> None:
        for _ in range(concurrency):
            await self._add()

    async def warm(self, seconds: float) -> None:
        """Return after that time, and not before each connection has had a turn. Raises `LoadError`, `TimeoutError`."""
        await asyncio.sleep(seconds)
        async with asyncio.timeout(PATIENCE_S):
            while self.calls < len(self._connections):
                self.check()
                await asyncio.sleep(0.01)

    async def _add(self) -> None:
        connection = await _connect(self._port, self._turn)
        self._connections.add(connection)
        connection.send(self._requests[len(self._connections) % len(self._requests)])

    def _turn(self, connection: Connection) -> None:
        if connection.lost:
            self._replace(connection)
            return
        if connection.status != 200:
            self._failure = f"an answer with status {connection.status}"
        self.calls += 1
        if self._running:
            connection.send(self._requests[self.calls % len(self._requests)])

    def _replace(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if self._running:
            self.reconnects += 1
            task = asyncio.get_running_loop().create_task(self._add())
            self._reconnecting.add(task)
            task.add_done_callback(self._reconnected)

    def _reconnected(self, task: asyncio.Task[None]) -> None:
        self._reconnecting.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = f"could not connect again: {error}"

    def close(self) -> None:
        self._running = False
        for connection in self._connections:
            connection.close()

    def check(self) -> None:
        """Raises `LoadError` where a call has failed."""
        if self._failure is not None:
            raise LoadError(self._failure)


async def calls(
    *,
    port: int,
    concurrency: int,
    seconds: float,
    body_bytes: int = BODY_BYTES,
    sent: Sequence[tuple[str, str]] = (),
    warm_s: float = 0.3,
    pid: int | None = None,
) -> Calls:
    """Calls in a closed loop; the window begins `warm_s` after the first. `sent`, user agents and bodies, stand in
    place of chats of `body_bytes` that do not stream."""
    requests = [request(body.encode(), port=port, agent=agent) for agent, body in sent]
    requests = requests or _requests(port, body_bytes, stream=False, max_tokens=128, interval_ms=0)
    loop = ClosedLoop(port, requests)
    try:
        await loop.open(concurrency)
        await loop.warm(warm_s)
        began_s, before, cpu_before = time.perf_counter(), loop.calls, _cpu(pid)
        await asyncio.sleep(seconds)
        cpu_after, after, ended_s = _cpu(pid), loop.calls, time.perf_counter()
        loop.check()
    finally:
        loop.close()
    if after == before:
        raise LoadError("no call was answered in the window")
    return Calls(
        calls=after - before,
        seconds=ended_s - began_s,
        cpu_s=_spent(cpu_before, cpu_after),
        reconnects=loop.reconnects,
    )


async def _open_streams(
    port: int, streams: int, *, interval_ms: int, gap_s: float, connections: list[Connection]
) -> None:
    """Opens endless streams and returns when each has its first token. Fills `connections`, so that all get closed.

    Never more than `AT_ONCE` wait for their first token: a full backlog of a listener costs a second each.
    """
    requests = _requests(port, BODY_BYTES, stream=True, max_tokens=ENDLESS_TOKENS, interval_ms=interval_ms)
    firsts: list[Awaitable[float]] = []
    for index in range(streams):
        connection = await _connect(port, _ignore)
        connections.append(connection)
        firsts.append(connection.send_stream(requests[index % len(requests)]))
        if len(firsts) == AT_ONCE:
            await _all_begun(firsts)
            firsts.clear()
        if gap_s:
            await asyncio.sleep(gap_s)
    await _all_begun(firsts)


async def _all_begun(firsts: Sequence[Awaitable[float]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        outcomes = await asyncio.gather(*firsts, return_exceptions=True)
    failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    if failed:
        raise LoadError(f"{len(failed)} of {len(firsts)} streams did not begin; the first: {failed[0]}")


def _check_open(connections: Sequence[Connection]) -> None:
    lost = sum(connection.lost for connection in connections)
    if lost:
        raise LoadError(f"{lost} of {len(connections)} streams broke off")


async def tokens(
    *, port: int, streams: int, interval_ms: int, seconds: float, warm_s: float = 0.3, pid: int | None = None
) -> Tokens:
    """Tokens of streams that neither begin nor end inside the window, their ticks spread over the interval."""
    connections: list[Connection] = []
    try:
        gap_s = interval_ms / 1000 / streams
        await _open_streams(port, streams, interval_ms=interval_ms, gap_s=gap_s, connections=connections)
        await asyncio.sleep(warm_s)
        began_s, before, cpu_before = time.perf_counter(), _count(connections), _cpu(pid)
        await asyncio.sleep(seconds)
        cpu_after, after, ended_s = _cpu(pid), _count(connections), time.perf_counter()
        _check_open(connections)
    finally:
        for connection in connections:
            connection.close()
    if after == before:
        raise LoadError("no token came in the window")
    return Tokens(
        tokens=after - before,
        seconds=ended_s - began_s,
        cpu_s=_spent(cpu_before, cpu_after),
        streams=streams,
    )


def _count(connections: Sequence[Connection]) -> int:
    return sum(connection.tokens for connection in connections)


async def first_tokens(*, port: int, streams: int, warm: int = 5) -> FirstTokens:
    """Short streams one after the other on one connection: nobody else is there, so all that is added is the path."""
    ended = asyncio.Event()
    connection = await _connect(port, lambda _: ended.set())
    try:
        requests = _requests(port, BODY_BYTES, stream=True, max_tokens=3, interval_ms=1)
        first_ms: list[float] = []
        for index in range(warm + streams):
            ended.clear()
            async with asyncio.timeout(PATIENCE_S):
                first_s = await connection.send_stream(requests[index % len(requests)])
                await ended.wait()
            if connection.lost or connection.status != 200 or connection.tokens != 3:
                raise LoadError(f"a stream with status {connection.status} and {connection.tokens} tokens instead of 3")
            first_ms.append(first_s * 1000)
    finally:
        connection.close()
    return FirstTokens(first_ms=first_ms[warm:])


async def idle(*, port: int, streams: int, pid: int, warm_calls_s: float = 0.3, settle_s: float = 0.5) -> Idle:
    """Open streams, one token each, then silence. Meant for a fresh process: allocators keep what once was needed."""
    await calls(port=port, concurrency=8, seconds=warm_calls_s)
    await first_tokens(port=port, streams=5)
    before = cpu.memory(pid)
    connections: list[Connection] = []
    try:
        await _open_streams(port, streams, interval_ms=IDLE_MS, gap_s=0, connections=connections)
        await asyncio.sleep(settle_s)
        during = cpu.memory(pid)
        _check_open(connections)
    finally:
        for connection in connections:
            connection.close()
    return Idle(
        streams=streams,
        before_pss_bytes=before.pss_bytes,
        open_pss_bytes=during.pss_bytes,
        before_rss_bytes=before.rss_bytes,
        open_rss_bytes=during.rss_bytes,
    )


JOBS: dict[str, Callable[..., Awaitable[Result]]] = {
    "calls": calls,
    "tokens": tokens,
    "first_tokens": first_tokens,
    "idle": idle,
}


async def _perform(job: dict[str, Any]) -> Result:
    return await JOBS[job.pop("job")](**job)


def main() -> None:
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"result": asdict(uvloop.run(_perform(json.loads(line))))}
        except (LoadError, OSError, TimeoutError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

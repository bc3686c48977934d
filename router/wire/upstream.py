"""All connections to one backend: as many as there are calls, the last used taken first."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from math import inf
from typing import Any

from router.errors import BackendBroke
from router.wire.api import Look, Patience, Sink, UpstreamRequest
from router.wire.connection import Connection, NotTaken
from router.wire.dial import Dialer, Resolve
from router.wire.exchange import RawHeaders
from router.wire.keep_alive import REST_AFTER_STREAM_S, KeepAlive, promised_s
from router.wire.origin import Origin
from router.wire.request_head import request_head
from router.wire.response_reader import ResponseReader


class Pool:
    """See `router.wire.api.UpstreamPool`. Counters are totals since the start."""

    def __init__(
        self,
        url: str,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        ssl: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        """Raises `ValueError` for a URL that is none. `ssl`: in place of the system's certificates."""
        self._origin = Origin.of(url)
        self._authority = self._origin.authority.encode("ascii")
        self._loop = loop or asyncio.get_running_loop()
        self._dialer = Dialer(self._origin, self._loop, tls=ssl, resolve=resolve)
        self._idle: dict[Connection, None] = {}
        self._closed = False
        self._keep_alive = KeepAlive()
        self.busy = 0
        self.dials = 0
        self.reuses = 0
        self.replays = 0
        """Requests sent a second time, since a kept connection had died before they were read."""

    @property
    def idle(self) -> int:
        return len(self._idle)

    def __repr__(self) -> str:
        return f"<Pool {self._origin}: {self.busy} busy, {len(self._idle)} idle>"

    async def send(self, request: UpstreamRequest, patience: Patience) -> Response:
        head = request_head(request, self._authority)
        connection = self._take_idle()
        if connection is not None:
            self.reuses += 1
            if connection.streamed:
                self._keep_alive.lived()
            try:
                return await self._ask(connection, head, request, patience)
            except NotTaken:
                self.replays += 1
                self._learn(connection)
        began_s = time.monotonic()
        connection = await self._dialer.dial(self._connection, patience.connect_s)
        self.dials += 1
        return await self._ask(connection, head, request, patience, dial_s=time.monotonic() - began_s)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            connection, _ = self._idle.popitem()
            connection.abort()

    async def _ask(
        self,
        connection: Connection,
        head: bytes,
        request: UpstreamRequest,
        patience: Patience,
        *,
        dial_s: float = 0.0,
    ) -> Response:
        self.busy += 1
        try:
            reader = await connection.request(head, request.body, patience, to_head_request=request.method == "HEAD")
        except BaseException:
            self.busy -= 1
            raise
        return Response(self, connection, reader, dial_s)

    def _take_idle(self) -> Connection | None:
        now_s = self._loop.time()
        keep_alive = self._keep_alive
        while True:
            for connection in reversed(self._idle):
                if not connection.streamed or now_s >= connection.resting_since_s + keep_alive.rest_s:
                    break
            else:
                return None
            del self._idle[connection]
            trusted = keep_alive.trusts(now_s - connection.resting_since_s, now_s=now_s)
            if trusted and not connection.expired() and not connection.strayed():
                if connection.is_open():
                    return connection
                self._learn(connection)
            connection.abort()

    def _connection(self, sock: socket.socket) -> Connection:
        return Connection(self._loop, sock, self._idle_ended)

    def _idle_ended(self, connection: Connection) -> None:
        if connection in self._idle:
            del self._idle[connection]
            if not connection.given_up:
                self._learn(connection)
            elif connection.streamed and self._loop.time() - connection.resting_since_s >= REST_AFTER_STREAM_S:
                self._keep_alive.lived()  # nobody needed it, but it would have been there

    def _learn(self, connection: Connection) -> None:
        """The backend has ended it."""
        now_s = self._loop.time()
        self._keep_alive.ended(now_s - connection.resting_since_s, streamed=connection.streamed, now_s=now_s)

    def take_back(self, connection: Connection, reader: ResponseReader) -> None:
        """The call on it is over, for better or worse."""
        self.busy -= 1
        if not connection.finish(reader):
            return
        if self._closed or (reader.chunked and self._keep_alive.ends_after_streams):
            connection.abort()
            return
        connection.rest(promised_s(reader.keep_alive), streamed=reader.chunked)
        self._idle[connection] = None


class Response:
    """See `router.wire.api.UpstreamResponse`."""

    __slots__ = ("_connection", "_pool", "_reader", "dial_s", "framed", "headers", "length", "reason", "status")

    def __init__(self, pool: Pool, connection: Connection, reader: ResponseReader, dial_s: float) -> None:
        self._pool = pool
        self._connection: Connection | None = connection
        self._reader = reader
        self.status = reader.status
        self.reason = reader.reason
        self.headers: RawHeaders = reader.headers
        self.length = reader.length
        self.framed = reader.framed
        self.dial_s = dial_s

    def relay(self, sink: Sink, look: Look) -> Coroutine[Any, Any, None]:
        return self._open().relay(self._reader, sink, look)

    async def read(self, limit_bytes: int) -> bytes:
        """Raises `BackendBroke` beyond the limit, and where `relay` does."""
        whole = _Whole(limit_bytes)
        await self._open().relay(self._reader, whole, _nobody_looks)
        return b"".join(whole.pieces)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.take_back(connection, self._reader)

    def _open(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("the response is closed")
        return self._connection


class _Whole:
    """Keeps a body, up to a limit."""

    straight: Callable[[bytes], None] | None = None

    def __init__(self, limit_bytes: int) -> None:
        self.pieces: list[bytes] = []
        self._limit_bytes = limit_bytes
        self._bytes = 0

    def write(self, data: bytes) -> bool:
        self._bytes += len(data)
        if self._bytes > self._limit_bytes:
            raise BackendBroke(f"the answer of the backend is larger than {self._limit_bytes} bytes")
        self.pieces.append(data)
        return True

    async def drained(self) -> None:
        return


def _nobody_looks(pieces: list[bytes], at_s: list[float]) -> float:
    return inf

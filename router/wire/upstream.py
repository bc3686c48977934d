"""All connections to one backend: as many as there are calls, the last used taken first.

Some servers promise to keep a connection and close it after a streamed answer: llama.cpp promises five seconds and
ends it a tenth of a millisecond later, or a tenth of a second on a busy machine. A request sent in between is read
and thrown away, which cannot be told from a generation that failed, so it must not be sent. Each pool learns which
kind its backend is: until then a connection that carried a stream rests for a second. If it ends meanwhile, this and
all later ones are closed after each stream. If it lives, they are used again at once.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Coroutine
from functools import lru_cache
from math import inf
from typing import Any, Final

from router.errors import BackendBroke
from router.wire.api import Patience, UpstreamRequest
from router.wire.connection import Connection, Drained, NotTaken, Write
from router.wire.dial import Dialer, Resolve
from router.wire.exchange import RawHeaders
from router.wire.origin import Origin
from router.wire.request_head import request_head
from router.wire.response_reader import ResponseReader

IDLE_S: Final = 4.0
"""An idle connection of a server that promised nothing is kept this long. Uvicorn, the most common, closes at 5 s."""

LONGEST_IDLE_S: Final = 60.0
MARGIN_S: Final = 1.0
"""A promised time is used up to this margin, or half of it where it is shorter."""

REST_AFTER_STREAM_S: Final = 1.0

_PROMISE = re.compile(rb"timeout\s*=\s*\"?(\d{1,6})", re.IGNORECASE)


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
        self._rest_s = REST_AFTER_STREAM_S
        self._ends_after_streams = False
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
            try:
                return await self._ask(connection, head, request, patience)
            except NotTaken:
                self.replays += 1
        connection = await self._dialer.dial(self._connection, patience.connect_s)
        self.dials += 1
        return await self._ask(connection, head, request, patience)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            connection, _ = self._idle.popitem()
            connection.abort()

    async def _ask(self, connection: Connection, head: bytes, request: UpstreamRequest, patience: Patience) -> Response:
        self.busy += 1
        try:
            reader = await connection.request(head, request.body, patience, to_head_request=request.method == "HEAD")
        except BaseException:
            self.busy -= 1
            raise
        return Response(self, connection, reader)

    def _take_idle(self) -> Connection | None:
        now_s = self._loop.time()
        while True:
            for connection in reversed(self._idle):
                if now_s >= connection.streamed_at_s + self._rest_s:
                    break
            else:
                return None
            del self._idle[connection]
            if connection.usable():
                if connection.streamed_at_s != -inf:
                    self._rest_s = 0.0
                return connection
            connection.abort()

    def _connection(self, sock: socket.socket) -> Connection:
        return Connection(self._loop, sock, self._idle_ended)

    def _idle_ended(self, connection: Connection) -> None:
        if connection in self._idle:
            del self._idle[connection]
            self._ends_after_streams |= self._loop.time() < connection.streamed_at_s + REST_AFTER_STREAM_S

    def take_back(self, connection: Connection, reader: ResponseReader) -> None:
        """The call on it is over, for better or worse."""
        self.busy -= 1
        if not connection.finish(reader):
            return
        if self._closed or (reader.chunked and self._ends_after_streams):
            connection.abort()
            return
        connection.streamed_at_s = self._loop.time() if reader.chunked else -inf
        connection.rest(_idle_s(reader.keep_alive))
        self._idle[connection] = None


@lru_cache(maxsize=64)
def _idle_s(keep_alive: bytes) -> float:
    """What can be made of the value of a `Keep-Alive` field."""
    promise = _PROMISE.search(keep_alive)
    if promise is None:
        return IDLE_S
    promised_s = float(promise[1])
    return min(max(promised_s - MARGIN_S, promised_s / 2), LONGEST_IDLE_S)


class Response:
    """See `router.wire.api.UpstreamResponse`."""

    __slots__ = ("_connection", "_pool", "_reader", "headers", "length", "reason", "status")

    def __init__(self, pool: Pool, connection: Connection, reader: ResponseReader) -> None:
        self._pool = pool
        self._connection: Connection | None = connection
        self._reader = reader
        self.status = reader.status
        self.reason = reader.reason
        self.headers: RawHeaders = reader.headers
        self.length = reader.length

    def relay(self, write: Write, drained: Drained) -> Coroutine[Any, Any, None]:
        return self._open().relay(self._reader, write, drained)

    async def read(self, limit_bytes: int) -> bytes:
        """Raises `BackendBroke` beyond the limit, and where `relay` does."""
        pieces: list[bytes] = []
        room = limit_bytes

        def keep(piece: bytes) -> bool:
            nonlocal room
            room -= len(piece)
            if room < 0:
                raise BackendBroke(f"the answer of the backend is larger than {limit_bytes} bytes")
            pieces.append(piece)
            return True

        await self._open().relay(self._reader, keep, _always_drained)
        return b"".join(pieces)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.take_back(connection, self._reader)

    def _open(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("the response is closed")
        return self._connection


async def _always_drained() -> None:
    return

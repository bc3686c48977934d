"""One connection of a client: requests answered one after another, in the order in which they came.

Life: idle -> head -> exchange (a task runs the handler) -> idle again, or linger -> closed.

- The task is made in the turn in which the head is complete; a small body is there by then.
- A client that leaves, by a reset or by closing its half, cancels the task wherever it is.
- What comes behind the current request is kept as bytes and not looked at before its answer is complete; beyond
  `HELD_LIMIT_BYTES` the socket is not read. So it is with a body that nobody has asked for.
- When an answer ends a connection on which the client may still be sending, closing it at once would make the kernel
  send a reset, and the client could lose the answer. So our half is closed, and what comes is thrown away for a while.
- One timer for all limits, re-armed only when it rings too early, as on the upstream side.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from math import inf
from typing import Final, cast

import structlog

from router.errors import BadRequest
from router.wire.exchange import Exchange
from router.wire.refusal import Refusal, Shape
from router.wire.request_reader import RequestReader
from router.wire.server_exchange import HttpExchange, origin_form
from router.wire.timed import TimedProtocol

log = structlog.get_logger("twolane.http")

Handler = Callable[[Exchange], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPatience:
    """How long a client may take. There is no limit on the whole, nor on reading an answer."""

    idle_s: float = 75.0
    """Until the first byte of the next request."""

    head_s: float = 60.0
    """From the first byte of a head to its end."""

    body_stall_s: float = 60.0
    """Between two pieces of a body that is waited for."""

    linger_s: float = 5.0
    """To read the last answer and to stop sending."""


LINGER_BYTES: Final = 64 * 1024 * 1024

HELD_LIMIT_BYTES: Final = 64 * 1024
WRITE_BUFFER_BYTES: Final = 64 * 1024
"""Above it the client is slow."""

_RESET: Final = struct.pack("ii", 1, 0)


class ServerConnection(TimedProtocol):
    """`on_begin` and `on_end` are called once each."""

    __slots__ = (
        "_behind",
        "_behind_bytes",
        "_discarded_bytes",
        "_exchange",
        "_handler",
        "_lingering",
        "_max_header_bytes",
        "_on_begin",
        "_on_end",
        "_patience",
        "_reader",
        "_shape",
        "_wanted_bytes",
        "ending",
        "peer",
        "slow",
        "task",
        "tls",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        handler: Handler,
        on_begin: Callable[[ServerConnection], None],
        on_end: Callable[[ServerConnection], None],
        *,
        max_header_bytes: int,
        patience: ClientPatience,
        shape: Shape | None = None,
    ) -> None:
        """`shape`: of the answers to what is no request; None: a plain one."""
        super().__init__(loop)
        self._handler = handler
        self._on_begin = on_begin
        self._on_end = on_end
        self._max_header_bytes = max_header_bytes
        self._patience = patience
        self._shape = shape
        self._reader: RequestReader | None = None  # of the request whose bytes are arriving or being answered
        self._exchange: HttpExchange | None = None
        self.task: asyncio.Task[None] | None = None
        """The handler's, while there is an exchange."""
        self._wanted_bytes = 0
        self._behind: list[bytes] = []
        self._behind_bytes = 0
        self._lingering = False
        self._discarded_bytes = 0
        self.slow = False
        self.ending = False
        self.peer = ""
        self.tls = False

    # --- from the server

    def drain(self) -> None:
        """Take no further request: close now, or behind the answer to the one that has begun."""
        self.ending = True
        if self._reader is None and not self._lingering:
            self.close()

    def abort(self) -> None:
        self._transport.abort()

    # --- bytes

    def data_received(self, data: bytes) -> None:
        if self._exchange is not None:
            self._more(data)
        elif self._lingering:
            self._discarded_bytes += len(data)
            if self._discarded_bytes > LINGER_BYTES:
                self.abort()
        else:
            self._read_head(data)

    def _read_head(self, data: bytes) -> None:
        reader = self._reader
        if reader is None:
            reader = RequestReader(max_header_bytes=self._max_header_bytes)
        rest = reader.feed(data)
        if reader.refusal is not None:
            reader.release()
            self._refuse(reader.refusal, reader)
        elif reader.head_done:
            self._begin(reader)
            if rest:
                self._keep_behind(rest)
        elif not reader.begun:
            reader.release()
        elif self._reader is None:
            self._reader = reader
            self._set_deadline(self._clock() + self._patience.head_s)

    def _more(self, data: bytes) -> None:
        """Of the request that is being answered, or behind it."""
        reader = self._reader
        assert reader is not None
        if reader.complete:
            self._keep_behind(data)
        else:
            self._read_body(reader, data)

    def _read_body(self, reader: RequestReader, data: bytes) -> None:
        rest = reader.feed(data)
        if rest:
            self._keep_behind(rest)
        if self._waiter is None:
            if reader.body_bytes > HELD_LIMIT_BYTES and not reader.complete:
                self._pause_reading()
        elif reader.complete or reader.refusal is not None or reader.body_bytes > self._wanted_bytes:
            self._wake()
        else:
            self._deadline_s = self._clock() + self._patience.body_stall_s

    def _keep_behind(self, data: bytes) -> None:
        self._behind.append(data)
        self._behind_bytes += len(data)
        if self._behind_bytes > HELD_LIMIT_BYTES:
            self._pause_reading()

    # --- one exchange

    def _begin(self, reader: RequestReader) -> None:
        self._reader = reader
        self._deadline_s = inf
        exchange = self._exchange = HttpExchange(self, reader, self._loop, self._transport.write)
        self.task = self._loop.create_task(self._serve(exchange))

    async def _serve(self, exchange: HttpExchange) -> None:
        try:
            await self._handler(exchange)
        except Exception as error:
            log.error("request_failed", path=exchange.path[:200], exc_info=error)
        finally:
            self._served(exchange)

    def _served(self, exchange: HttpExchange) -> None:
        reader = self._reader
        assert reader is not None
        reader.release()
        self._reader = self._exchange = self.task = None
        if self._transport.is_closing():
            return
        if not exchange.finished:
            exchange.abort()
        elif exchange.keep_alive and not self.ending:
            self._next()
        elif reader.complete and not self._behind:
            self.close()
        else:
            self._linger()

    def _next(self) -> None:
        """Read the request that came behind, or wait for one."""
        self._set_deadline(self._clock() + self._patience.idle_s)
        if self.slow:
            self._pause_reading()  # who does not read answers gets no further ones
            return
        self._resume_reading()
        if self._behind:
            data = b"".join(self._behind)
            self._behind.clear()
            self._behind_bytes = 0
            self._read_head(data)

    async def receive_body(self, limit_bytes: int) -> None:
        reader = self._reader
        assert reader is not None
        self._wanted_bytes = limit_bytes
        self._resume_reading()
        self._set_deadline(self._clock() + self._patience.body_stall_s)
        try:
            while not reader.complete and reader.body_bytes <= limit_bytes:
                if reader.refusal is not None:
                    raise BadRequest(reader.refusal.message)
                if self._clock() >= self._deadline_s:
                    raise BadRequest(
                        f"nothing came of the rest of the body for {self._patience.body_stall_s:g} s; send it again"
                    )
                await self._woken()
        finally:
            self._deadline_s = inf

    async def drained(self) -> None:
        while self.slow:
            await self._woken()

    # --- flow control

    def pause_writing(self) -> None:
        self.slow = True
        if self._exchange is not None:
            self._exchange.falls_behind()

    def resume_writing(self) -> None:
        self.slow = False
        self._wake()
        if self._exchange is not None:
            self._exchange.keeps_up()
        elif not self._lingering and not self._transport.is_closing():
            self._next()

    # --- the end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        self.peer = _host_of(transport.get_extra_info("peername"))
        self.tls = transport.get_extra_info("sslcontext") is not None
        self._on_begin(self)
        self._set_deadline(self._clock() + self._patience.idle_s)

    def eof_received(self) -> None:
        """Returning nothing makes the transport close itself, behind what is still to be written."""
        self._client_left()
        self._set_deadline(self._clock() + self._patience.linger_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end(self)
        self._disarm()
        self._client_left()
        if self._exchange is None and self._reader is not None:
            self._reader.release()

    def _client_left(self) -> None:
        exchange = self._exchange
        if exchange is None or exchange.gone:
            return
        exchange.client_left()
        if not exchange.finished and self.task is not None:
            self.task.cancel()

    def break_off(self, *, reset: bool) -> None:
        if reset:
            sock = self._transport.get_extra_info("socket")
            with contextlib.suppress(OSError):  # the client was faster
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.abort()
        else:
            self.close()

    def _refuse(self, refusal: Refusal, reader: RequestReader) -> None:
        path, _ = origin_form(reader.target)
        self._transport.write(refusal.answer(self._shape, path))
        self._linger()

    def _linger(self) -> None:
        """Everything is answered, but the client may still be sending."""
        self._lingering = True
        self._behind.clear()
        try:
            if self._transport.can_write_eof():  # TLS knows no half
                self._transport.write_eof()
        except OSError:  # the client has reset the connection
            self.abort()
            return
        self._resume_reading()
        self._set_deadline(self._clock() + self._patience.linger_s)

    def close(self) -> None:
        """Behind what is still to be written, if the client reads it."""
        self._transport.close()
        self._set_deadline(self._clock() + self._patience.idle_s)

    # --- the timer

    def _out_of_time(self) -> None:
        if self._lingering or self._transport.is_closing():
            self.abort()
        elif self._exchange is not None:
            self._wake()  # `receive_body` sees that its time is over
        elif self._reader is not None:
            message = f"the head of the request was not complete within {self._patience.head_s:g} s"
            self._refuse(Refusal(status=HTTPStatus.REQUEST_TIMEOUT, message=message), self._reader)
        else:
            self.close()


def _host_of(name: object) -> str:
    """The address in what a socket says of its other end; that of IPv4 on a socket for both is written as IPv4."""
    if not isinstance(name, tuple):  # a unix socket
        return ""
    host = str(name[0])
    return host.removeprefix("::ffff:") if "." in host else host

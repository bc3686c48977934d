"""One connection to a backend: one request at a time, body bytes handed on in the turn in which they arrive.

Life: idle -> `request` (head awaited) -> `relay` (body) -> `finish` -> idle again, or closed.

- No queue and no task between the two sockets: `data_received` calls the writer of the client's side. `relay` sleeps on
  one future, which is set at the end, at a failure, or when the client is too slow.
- Most tokens come as one whole chunk in one piece, in the very bytes in which they leave. Such a piece goes to the
  client's socket as it is, past the parser, which would be in the same state after it.
- Whoever looks at the answer is shown pieces that have left, a few dozen at once: a token must touch as little as
  possible, since 100 streams at an easy pace find nothing of what they need in the processor's cache.
- What comes between head and `relay` is held; beyond `HELD_LIMIT_BYTES` the socket is not read.
- One timer for all limits, re-armed only when it rings too early: a piece costs one store into `_deadline_s`, and a
  short call on a kept connection touches no timer at all.
- A failure is kept until `request` or `relay` can raise it: bytes that came before it are passed on first.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from math import inf
from typing import Final, cast

from router.errors import BackendBroke, BackendTimeout, BackendUnreachable
from router.wire.api import Look, Patience, Sink
from router.wire.response_reader import ResponseReader
from router.wire.stray import has_bytes
from router.wire.timed import TimedProtocol
from router.wire.unread import bytes_acked, certainly_unread, certainly_untouched, is_open, tcp_info
from router.wire.whole_chunk import HEAD_OF_SIZE, WHOLE_CHUNK_BYTES

HELD_LIMIT_BYTES: Final = 64 * 1024
ONE_WRITE_BYTES: Final = 32 * 1024
"""Up to this size a body is copied behind its head, so that one segment carries both."""

ASK_KERNEL_AFTER_S: Final = 0.25
"""No server that means to keep a connection closes it sooner, and the question costs a system call."""

KEPT_PIECES: Final = 32
KEPT_PIECE_BYTES: Final = WHOLE_CHUNK_BYTES
"""Larger ones, and with them those that were kept, are shown at once."""


class NotTaken(Exception):
    """A kept connection died and the backend certainly did not read the request."""


class Connection(TimedProtocol):
    """`on_idle_end` is called when the connection ends while no request is on it."""

    __slots__ = (
        "_acked_bytes",
        "_blocked",
        "_failure",
        "_held",
        "_held_bytes",
        "_idle_s",
        "_kept",
        "_kept_at_s",
        "_look",
        "_now",
        "_on_idle_end",
        "_patience",
        "_reader",
        "_requests",
        "_sent_at_s",
        "_sent_bytes",
        "_show_at_s",
        "_sink",
        "_sock",
        "_straight",
        "given_up",
        "resting_since_s",
        "streamed",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        on_idle_end: Callable[[Connection], None],
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now` gives the instants of the loop's clock, which uvloop rounds to milliseconds."""
        super().__init__(loop)
        self._now = now
        self._sock = sock
        self._on_idle_end = on_idle_end
        self._requests = 0
        self._acked_bytes = 0
        self._sent_bytes = 0
        """Of requests since `_acked_bytes` was asked for."""
        self._sent_at_s = 0.0
        self._patience: Patience
        self._reader: ResponseReader | None = None  # of the response that is still arriving
        self._failure: Exception | None = None
        self._sink: Sink | None = None
        self._straight: Sink | None = None  # the same, while a whole chunk may pass it by the short way
        self._idle_s = 0.0
        self._look: Look
        self._kept: list[bytes] = []
        self._kept_at_s: list[float] = []
        self._show_at_s = 0.0
        self._blocked = False
        self._held: list[bytes] = []
        self._held_bytes = 0
        self.streamed = False
        self.resting_since_s = 0.0
        self.given_up = False
        """Closed by this side."""

    # --- between requests

    def expired(self) -> bool:
        """It has waited its time, though the timer may not have rung."""
        return self._deadline_s <= self._clock()

    def strayed(self) -> bool:
        """Something has come that belongs to no request: the next answer could not be told from it."""
        return has_bytes(self._sock)

    def is_open(self) -> bool:
        """Neither side has closed, to the knowledge of the kernel, which may be ahead of the event loop's."""
        if self._transport.is_closing():
            return False
        return self._clock() < self.resting_since_s + ASK_KERNEL_AFTER_S or self._ask_kernel()

    def _ask_kernel(self) -> bool:
        info = tcp_info(self._sock)
        self._acked_bytes = bytes_acked(info)
        self._sent_bytes = 0
        return is_open(info)

    def rest(self, idle_s: float, *, streamed: bool) -> None:
        """Wait that long for the next request; `streamed`: the last answer was a stream."""
        self.streamed = streamed
        self.resting_since_s = now_s = self._clock()
        self._set_deadline(now_s + idle_s)

    def abort(self) -> None:
        """Close now, whatever is still to be written or read."""
        self.given_up = True
        self._reader = self._straight = None
        self._disarm()
        self._transport.abort()

    # --- one request

    async def request(self, head: bytes, body: bytes, patience: Patience, *, to_head_request: bool) -> ResponseReader:
        """Send, and return once the head of the response is there.

        Raises `NotTaken`, `BackendUnreachable`, `BackendBroke`, `BackendTimeout`; the connection is closed then, as it
        is when the caller is cancelled.
        """
        reader = self._reader = ResponseReader(to_head_request=to_head_request)
        self._patience = patience
        self._requests += 1
        self._sent_bytes += len(head) + len(body)
        self._sent_at_s = now_s = self._clock()
        if len(body) <= ONE_WRITE_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)
        self._set_deadline(now_s + patience.first_byte_s)
        try:
            await self._woken()
            if self._failure is not None:
                raise self._failure
        except BaseException:
            self.abort()
            self._forget(reader)
            raise
        return reader

    async def relay(self, reader: ResponseReader, sink: Sink, look: Look) -> None:
        """Hand the body to `sink`, see `router.wire.api.UpstreamResponse.relay`."""
        self._sink = sink
        self._look = look
        self._show_at_s = 0.0
        self._idle_s = self._patience.idle_s
        try:
            while True:
                if self._held and not self._pass_on(sink, self._take_held()) and not reader.complete:
                    self._block()
                if reader.complete:
                    return
                if self._failure is not None:
                    raise self._failure
                if self._reader is None:
                    raise BackendBroke("the connection to the backend was given up before the end of the answer")
                if self._blocked:
                    await sink.drained()
                    self._unblock()
                else:
                    await self._woken()
        except BaseException:
            self.abort()
            raise
        finally:
            self._sink = self._straight = None
            self._show()
            del self._look  # a connection at rest must not keep what was known of its last call

    def finish(self, reader: ResponseReader) -> bool:
        """The request is over. True if the connection may take another one; else it is closed."""
        self._forget(reader)
        transport = self._transport
        if reader.complete and reader.reusable and not transport.is_closing() and not transport.get_write_buffer_size():
            self._resume_reading()
            return True
        self.abort()
        return False

    def _forget(self, reader: ResponseReader) -> None:
        reader.release()
        self._failure = None
        self._blocked = False
        if self._held:
            self._held.clear()
            self._held_bytes = 0

    def _fail(self, failure: Exception) -> None:
        self._reader = None
        self._failure = failure
        self._wake()

    # --- bytes

    def data_received(self, data: bytes) -> None:
        sink = self._straight
        size = len(data)
        if sink is not None and size < WHOLE_CHUNK_BYTES:
            send = sink.straight
            head = HEAD_OF_SIZE[size]
            if send is not None and data.startswith(head) and data.endswith(b"\r\n"):
                send(data)
                now_s = self._now()
                self._deadline_s = now_s + self._idle_s
                self._kept.append(data[len(head) : -2])
                self._kept_at_s.append(now_s)
                if now_s >= self._show_at_s or len(self._kept) == KEPT_PIECES:
                    self._show()
                return
        self._received(data)

    def _received(self, data: bytes) -> None:
        reader = self._reader
        if reader is None:
            self._stray()
            return
        body = reader.feed(data)
        sink = self._sink
        if sink is None or self._blocked:
            self._hold(body, reader)
        else:
            self._deadline_s = self._clock() + self._idle_s
            self._straight = sink if reader.between_chunks else None
            if body:
                try:
                    ready = self._pass_on(sink, body)
                except Exception as error:  # noqa: BLE001 - not ours to judge: `relay` raises it
                    self.abort()
                    self._fail(error)
                    return
                if not ready and not reader.complete:
                    self._block()
                    self._wake()
        if reader.complete or reader.broken:
            self._ended(reader)

    def _pass_on(self, sink: Sink, body: bytes) -> bool:
        """Whether the client keeps up."""
        ready = sink.write(body)
        now_s = self._now()
        self._kept.append(body)
        self._kept_at_s.append(now_s)
        if now_s >= self._show_at_s or len(self._kept) >= KEPT_PIECES or len(body) > KEPT_PIECE_BYTES:
            self._show()
        return ready

    def _show(self) -> None:
        if self._kept:
            pieces, at_s = self._kept, self._kept_at_s
            self._kept, self._kept_at_s = [], []
            self._show_at_s = at_s[-1] + self._look(pieces, at_s)

    def _hold(self, body: bytes, reader: ResponseReader) -> None:
        """Keep body bytes that nobody takes yet."""
        if body:
            self._held.append(body)
            self._held_bytes += len(body)
            if self._held_bytes > HELD_LIMIT_BYTES and not reader.complete:
                self._pause_reading()
        if reader.head_done and not self._blocked:
            self._set_deadline(inf if self._paused else self._clock() + self._patience.idle_s)
            self._wake()

    def _take_held(self) -> bytes:
        body = b"".join(self._held)
        self._held.clear()
        self._held_bytes = 0
        if self._paused and not self._blocked:
            self._unblock()
        return body

    def _ended(self, reader: ResponseReader) -> None:
        self._reader = self._straight = None
        self._deadline_s = inf
        if reader.broken:
            self.abort()
            self._fail(BackendBroke(f"the answer of the backend is not valid HTTP/1.1: {reader.broken}"))
        else:
            self._wake()

    def _stray(self) -> None:
        """Bytes that belong to no request: whatever they are, the next answer could not be told from them."""
        self.abort()
        self._on_idle_end(self)

    # --- backpressure

    def _block(self) -> None:
        """The client is slow: leave the rest of the answer to the backend. That time is not the backend's."""
        self._blocked = True
        self._straight = None
        self._deadline_s = inf
        self._pause_reading()

    def _unblock(self) -> None:
        self._blocked = False
        self._set_deadline(self._clock() + self._patience.idle_s)
        self._resume_reading()

    # --- the end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask_kernel()

    def eof_received(self) -> None:
        """Returning nothing makes the transport close itself."""
        reader = self._reader
        if reader is None:
            self._on_idle_end(self)
            return
        reader.end_of_connection()
        if reader.complete:
            self._ended(reader)
        else:
            self._died(reader, None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        reader = self._reader
        if reader is None:
            self._on_idle_end(self)
        else:
            self._died(reader, exc)

    def _died(self, reader: ResponseReader, error: Exception | None) -> None:
        failure: Exception
        if reader.head_done:
            failure = BackendBroke("the backend broke off in the middle of its answer")
        elif not reader.heard and self._requests > 1 and self._unread(error):
            failure = NotTaken()
        elif not reader.heard and certainly_untouched(
            tcp_info(self._sock), acked_before=self._acked_bytes, error=error
        ):
            failure = BackendUnreachable("the backend closed a new connection before the call had reached it")
        else:
            failure = BackendBroke("the backend took the call and closed the connection without an answer")
        failure.__cause__ = error
        self._fail(failure)

    def _unread(self, error: Exception | None) -> bool:
        return certainly_unread(
            tcp_info(self._sock),
            acked_before=self._acked_bytes,
            sent_bytes=self._sent_bytes,
            error=error,
            waited_s=self._clock() - self._sent_at_s,
        )

    def _out_of_time(self) -> None:
        reader = self._reader
        self.abort()
        if reader is None:
            self._on_idle_end(self)
        elif reader.head_done:
            self._fail(BackendTimeout(f"the backend was silent for {self._patience.idle_s:g} s (timeouts.idle)"))
        else:
            self._fail(
                BackendTimeout(f"the backend did not answer in {self._patience.first_byte_s:g} s (timeouts.first_byte)")
            )

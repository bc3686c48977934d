"""The clients of the soak: raw connections that send planned calls one after the other and keep what comes back."""

from __future__ import annotations

import asyncio
import socket
import struct
from time import monotonic
from typing import Protocol, cast

import httptools

from bench.soak.call import Call, Exit, Manner, chunked

SLOW_BUFFER_BYTES = 16 * 1024
"""So little that a reader who is slow is felt at the other end."""
HALF_GRACE_S = 10.0
"""For the router to close after a client has ended its half."""
_RESET = struct.pack("ii", 1, 0)


class Seen:
    """What came of one call."""

    __slots__ = (
        "began_s",
        "call",
        "complete",
        "ended_s",
        "error",
        "left",
        "pieces",
        "request_id",
        "retry_after",
        "size",
        "status",
        "until_close",
    )

    def __init__(self, call: Call, began_s: float) -> None:
        self.call = call
        self.began_s = began_s  # not by the loop's clock, which counts in milliseconds
        self.ended_s = 0.0
        self.status = 0
        """0: no head came."""
        self.request_id = b""
        self.retry_after = b""
        self.pieces: list[bytes] = []
        self.size = 0
        self.complete = False
        """The transfer ended as HTTP says that it has to."""
        self.until_close = False
        """The head named no length: the end of the connection is the end of the answer."""
        self.left = False
        self.error = ""

    @property
    def took_s(self) -> float:
        return self.ended_s - self.began_s

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def forget(self) -> None:
        """The bytes have been looked at."""
        self.pieces = []


class Listener(Protocol):
    """Who is told of what happens on connections."""

    def ended(self, connection: Connection, seen: Seen) -> None:
        """A call is over. The connection can take another one if it is `usable`."""
        ...

    def stray(self, data: bytes) -> None:
        """Bytes came that belong to no call."""
        ...


class Connection(asyncio.Protocol):
    """One call at a time."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._seen: Seen | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rest = b""
        """Of the body, that waits for its time."""
        self._slow = False
        self._pause_s = 0.0
        self._eof = False
        self.usable = False

    @property
    def received_bytes(self) -> int:
        """Of the answer to the call that is on it."""
        return self._seen.size if self._seen is not None else 0

    @property
    def age_s(self) -> float:
        """Of the call that is on it."""
        return monotonic() - self._seen.began_s if self._seen is not None else 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports do not derive from it
        self.usable = True

    # --- out

    def send(self, call: Call) -> None:
        self._seen = Seen(call, monotonic())
        manner = call.manner
        self._slow = manner is Manner.SLOW_READER
        self._pause_s = call.read_pause_ms / 1000
        body = call.body()
        head = call.head(body)
        match manner:
            case Manner.SLOW_BODY:
                half = len(body) // 2
                self._rest = body[half:]
                self._transport.write(head + body[:half])
                self._timer = self._loop.call_later(call.leave_ms / 1000, self._send_rest)
            case Manner.CHUNKED_BODY:
                self._transport.writelines([head, *chunked(body)])
            case Manner.EXPECT:
                self._rest = body
                self._transport.write(head)
            case Manner.LEAVES_BEFORE_BODY:
                self._transport.write(head + body[: len(body) // 2])
                self._timer = self._loop.call_later(call.leave_ms / 1000, self.leave)
            case Manner.LEAVES_WAITING:
                self._transport.write(head + body)
                self._timer = self._loop.call_later(call.leave_ms / 1000, self.leave)
            case _:
                self._transport.write(head + body)

    def _send_rest(self) -> None:
        rest, self._rest = self._rest, b""
        if not self._transport.is_closing():
            self._transport.write(rest)

    def leave(self) -> None:
        """As the call says."""
        seen = self._seen
        if seen is None or seen.left:
            return
        seen.left = True
        match seen.call.exit:
            case Exit.CLOSE:
                self.abort()
            case Exit.RESET:
                sock = self._transport.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                self.abort()
            case Exit.HALF:
                self._disarm()
                self._transport.write_eof()
                self._timer = self._loop.call_later(HALF_GRACE_S, self._not_closed)

    def _not_closed(self) -> None:
        self.give_up(f"the router had not closed {HALF_GRACE_S:g} s after the client ended its half")

    # --- in

    def data_received(self, data: bytes) -> None:
        if self._seen is None:
            if not self._transport.is_closing():
                self._listener.stray(data)
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.give_up(f"not HTTP: {error}: {data[:200]!r}")
            return
        if self._slow and not self._transport.is_closing():
            self._transport.pause_reading()
            self._timer = self._loop.call_later(self._pause_s, self._transport.resume_reading)

    def on_header(self, name: bytes, value: bytes) -> None:
        seen = self._seen
        if seen is None:
            return
        match name:
            case b"X-Request-Id":
                seen.request_id = value
            case b"Retry-After":
                seen.retry_after = value
            case b"Content-Length" | b"Transfer-Encoding":
                seen.until_close = False
            case _:
                pass

    def on_message_begin(self) -> None:
        if self._seen is not None:
            self._seen.until_close = True

    def on_headers_complete(self) -> None:
        if self._seen is not None:
            self._seen.status = self._parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        seen = self._seen
        if seen is None:
            return
        seen.pieces.append(data)
        seen.size += len(data)
        if seen.call.manner is Manner.LEAVES_MID and seen.size >= seen.call.leave_bytes:
            self.leave()

    def on_message_complete(self) -> None:
        seen = self._seen
        if seen is None:
            self.abort()
        elif seen.status == 100:
            self._send_rest()
        else:
            seen.complete = True
            self.usable = self._parser.should_keep_alive() and not seen.left and not self._rest
            self._over()

    # --- the end

    def eof_received(self) -> None:
        self._eof = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        seen = self._seen
        if seen is not None and seen.until_close and seen.status and self._eof and exc is None:
            seen.complete = True
        self._over()

    def give_up(self, why: str) -> None:
        if self._seen is not None:
            self._seen.error = why
        self.abort()

    def abort(self) -> None:
        self.usable = False
        self._transport.abort()

    def _over(self) -> None:
        self._disarm()
        seen, self._seen = self._seen, None
        self._rest = b""
        if seen is not None:
            seen.ended_s = monotonic()
            self._listener.ended(self, seen)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def connect(port: int, listener: Listener, call: Call) -> Connection:
    """A connection that suits the call, which is not sent yet. Raises `OSError`."""
    loop = asyncio.get_running_loop()
    sock = socket.socket()
    sock.setblocking(False)
    if call.manner is Manner.SLOW_READER:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_BUFFER_BYTES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        await loop.sock_connect(sock, ("127.0.0.1", port))
        _, connection = await loop.create_connection(lambda: Connection(listener), sock=sock)
    except BaseException:
        sock.close()
        raise
    return connection

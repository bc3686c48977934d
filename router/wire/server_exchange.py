"""One request on a server connection and the writer of its response (see `router.wire.exchange.Exchange`).

Heads and bodies go straight to the transport: the fields that came from a backend leave as they came, repetitions and
case included. Nothing is buffered but a head until the end of the turn of the event loop, so that it leaves in one
system call with the bytes of the body that came with it.

When the client has left, what is still written goes nowhere: `_send` is replaced then, so that `write` need not ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from router.errors import TooLarge
from router.wire.exchange import RawHeaders
from router.wire.request_reader import RequestReader

_NO_BODY_STATUS: Final = frozenset({204, 304})


class Client(Protocol):
    """The connection, as far as an exchange needs it."""

    slow: bool
    """More is waiting to be sent than should."""

    ending: bool
    """This is the last exchange on it."""

    peer: str
    tls: bool

    async def receive_body(self, limit_bytes: int) -> None:
        """Return when the body is complete or larger than the limit. Raises `BadRequest` where it never will be."""
        ...

    async def drained(self) -> None: ...

    def break_off(self, *, reset: bool) -> None:
        """End the connection; with `reset` so that what the client has read does not look complete."""
        ...


class HttpExchange:
    """Made when the head of a request is complete; lives until its handler ends."""

    __slots__ = (
        "_chunked",
        "_client",
        "_held_head",
        "_loop",
        "_no_body",
        "_reader",
        "_send",
        "finished",
        "gone",
        "keep_alive",
        "method",
        "path",
        "query",
        "raw_headers",
        "stalls",
        "started",
        "straight",
    )

    def __init__(
        self, client: Client, reader: RequestReader, loop: asyncio.AbstractEventLoop, send: Callable[[bytes], None]
    ) -> None:
        self._client = client
        self._reader = reader
        self._loop = loop
        self._send = send
        self._held_head = b""
        self._chunked = False
        self._no_body = reader.method == "HEAD"
        self.keep_alive = reader.keep_alive
        """Whether another request may follow; settled by `start`."""
        self.started = False
        self.finished = False
        """Nothing more will be written."""
        self.gone = False
        self.stalls = 0
        self.straight: Callable[[bytes], None] | None = None
        self.method = reader.method
        self.path, self.query = origin_form(reader.target)
        self.raw_headers: RawHeaders = reader.headers

    @property
    def peer(self) -> str:
        return self._client.peer

    @property
    def tls(self) -> bool:
        return self._client.tls

    def header(self, name: str) -> str | None:
        return self._reader.header(name)

    async def body(self, limit_bytes: int) -> bytes:
        """Raises `TooLarge`, at once where the length says so, and `BadRequest` for a body that never ends."""
        reader = self._reader
        if reader.length is not None and reader.length > limit_bytes:
            raise TooLarge(
                f"the body has {reader.length} bytes; this router takes at most {limit_bytes} (limits.max_body)"
            )
        if not reader.complete:
            if reader.expects_continue and not reader.body_bytes:
                self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
            await self._client.receive_body(limit_bytes)
        body = reader.take_body()
        if reader.body_bytes > limit_bytes:
            raise TooLarge(f"the body is larger than {limit_bytes} bytes (limits.max_body)")
        return body

    def start(self, status: int, reason: bytes, headers: RawHeaders, *, length: int | None) -> None:
        lines = [b"HTTP/1.1 %d %b" % (status, reason)]
        lines += [b"%b: %b" % field for field in headers]
        self.keep_alive &= self._reader.complete and not self._client.ending
        http10 = self._reader.http10
        if status in _NO_BODY_STATUS:
            self._no_body = True
        elif length is not None:
            lines.append(b"Content-Length: %d" % length)
        elif http10:
            self.keep_alive = False  # the end of the connection is the only end that HTTP/1.0 knows
        else:
            self._chunked = not self._no_body
            lines.append(b"Transfer-Encoding: chunked")
        if not self.keep_alive:
            lines.append(b"Connection: close")
        elif http10:
            lines.append(b"Connection: keep-alive")
        lines.append(b"\r\n")
        self.started = True
        head = b"\r\n".join(lines)
        if self._no_body or length == 0:
            self._send(head)
        else:
            self._held_head = head
            self._loop.call_soon(self._release_head)

    def _release_head(self) -> None:
        if self._held_head:
            head, self._held_head = self._held_head, b""
            self._send(head)

    def write(self, data: bytes) -> bool:
        if data and not self._no_body:
            if self._chunked:
                data = b"%x\r\n%b\r\n" % (len(data), data)
            if self._held_head:
                data = self._held_head + data
                self._held_head = b""
            self._send(data)
            self.keeps_up()
        return not self._client.slow

    def keeps_up(self) -> None:
        """The client reads as fast as it is written to, as far as is known."""
        if self._chunked and not (self.gone or self.finished or self._held_head or self._client.slow):
            self.straight = self._send

    def falls_behind(self) -> None:
        self.straight = None

    async def drained(self) -> None:
        self.stalls += 1
        if self.gone:
            raise ConnectionResetError("the client has left")
        await self._client.drained()

    def finish(self) -> None:
        self._release_head()
        if self._chunked:
            self._send(b"0\r\n\r\n")
        self.finished = True
        self.straight = None

    def abort(self) -> None:
        """With chunks, what was written still arrives and the missing last one tells the rest; else only a reset
        tells an end from a break."""
        self.finished = True
        self.straight = None
        if not self.gone:
            self._release_head()
            self._client.break_off(reset=self.started and not self._chunked)
            self._send = _nowhere

    def client_left(self) -> None:
        self.gone = True
        self.straight = None
        self._send = _nowhere


def _nowhere(data: bytes) -> None:
    """Where bytes for a client go that has left."""


def origin_form(target: str) -> tuple[str, str]:
    """Path and query (with its `?`) of a request target, whose absolute form names scheme and host as well."""
    if target[:1] != "/" and "://" in target:
        authority_and_path = target.split("://", 1)[1]
        cut = min((at for mark in "/?#" if (at := authority_and_path.find(mark)) >= 0), default=-1)
        target = authority_and_path[cut:] if cut >= 0 else ""
        target = target if target[:1] == "/" else "/" + target
    if "#" in target:
        target = target.partition("#")[0]
    path, question, query = target.partition("?")
    return path, question + query

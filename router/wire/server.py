"""The server side of the data plane: aiohttp's low-level server, without router, middleware or response objects.

aiohttp parses requests, keeps connections alive and notices when a client leaves (it then cancels the handler). Heads
and bodies of responses are written by us straight to the transport: the bytes that came from a backend leave as they
came, repeated headers and their case included, and nothing is buffered on the way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web
from aiohttp.http import HttpVersion10
from aiohttp.web_protocol import RequestHandler

from router.errors import BadRequest, TooLarge
from router.wire.exchange import Exchange, RawHeaders

if TYPE_CHECKING:
    from aiohttp.web_request import BaseRequest

Handler = Callable[[Exchange], Awaitable[None]]

_NO_BODY_STATUS = frozenset({204, 304})


class _Sent(web.StreamResponse):
    """What aiohttp's server is told after we have answered: nothing is left to send."""

    def __init__(self, *, keep_alive: bool) -> None:
        super().__init__()
        self._keep_alive = keep_alive

    async def prepare(self, request: BaseRequest) -> None:
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        return None


class HttpExchange:
    """One request and its response on an aiohttp server connection (see `router.wire.exchange.Exchange`)."""

    __slots__ = (
        "_chunked",
        "_held_head",
        "_keep_alive",
        "_loop",
        "_no_body",
        "_protocol",
        "_request",
        "_transport",
        "finished",
        "method",
        "path",
        "query",
        "raw_headers",
        "started",
    )

    def __init__(self, request: BaseRequest, loop: asyncio.AbstractEventLoop) -> None:
        self._request = request
        self._loop = loop
        self._protocol = request.protocol
        self._transport = request.transport
        self._keep_alive = request.keep_alive
        self._chunked = False
        self._no_body = request.method == "HEAD"
        self._held_head = b""
        self.started = False
        self.finished = False
        self.method = request.method
        self.path, self.query = _origin_form(request.raw_path)
        self.raw_headers: RawHeaders = request.raw_headers

    @property
    def gone(self) -> bool:
        return self._transport is None or self._protocol.transport is None or self._transport.is_closing()

    def header(self, name: str) -> str | None:
        values = self._request.headers.getall(name, None)
        return values[-1] if values else None

    async def body(self, limit_bytes: int) -> bytes:
        """Raises `TooLarge`, at once where the length says so, and `BadRequest` for a body that ends early."""
        declared = self.header("content-length")
        if declared is not None and int(declared) > limit_bytes:
            self._keep_alive = False
            raise TooLarge(f"the body has {declared} bytes; this router takes at most {limit_bytes} (limits.max_body)")
        if (self.header("expect") or "").lower() == "100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        content = self._request.content
        pieces: list[bytes] = []
        size = 0
        try:
            while not content.at_eof():
                piece = await content.readany()
                size += len(piece)
                if size > limit_bytes:
                    self._keep_alive = False
                    raise TooLarge(f"the body is larger than {limit_bytes} bytes (limits.max_body)")
                pieces.append(piece)
        except (web.RequestPayloadError, asyncio.IncompleteReadError) as error:
            self._keep_alive = False
            raise BadRequest("the request body could not be read to its end; send it again") from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def start(self, status: int, reason: bytes, headers: RawHeaders, *, length: int | None) -> None:
        """Write the head. One whose length is known is held until the first body bytes of the same turn."""
        lines = [b"HTTP/1.1 %d %b" % (status, reason)]
        lines += [b"%b: %b" % field for field in headers]
        if status in _NO_BODY_STATUS:
            self._no_body = True
        elif length is not None:
            lines.append(b"Content-Length: %d" % length)
        elif self._request.version == HttpVersion10:
            self._keep_alive = False  # the end of the connection is the only end that HTTP/1.0 knows
        else:
            self._chunked = True
            lines.append(b"Transfer-Encoding: chunked")
        if not self._keep_alive:
            lines.append(b"Connection: close")
        elif self._request.version == HttpVersion10:
            lines.append(b"Connection: keep-alive")
        lines.append(b"\r\n")
        self.started = True
        head = b"\r\n".join(lines)
        if length:
            self._held_head = head
            self._loop.call_soon(self._release_head)
        else:
            self._send(head)

    def _release_head(self) -> None:
        if self._held_head:
            head, self._held_head = self._held_head, b""
            self._send(head)

    def _send(self, data: bytes) -> None:
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.write(data)

    def write(self, data: bytes) -> bool:
        if self._no_body or not data:
            return True
        if self._chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        elif self._held_head:
            data = self._held_head + data
            self._held_head = b""
        transport = self._transport  # as `_send`, spared a call per token
        if transport is not None and not transport.is_closing():
            transport.write(data)
        return not self._protocol.writing_paused

    async def drained(self) -> None:
        await self._protocol._drain_helper()

    def finish(self) -> None:
        self._release_head()
        if self._chunked and not self._no_body:
            self._send(b"0\r\n\r\n")
        self.finished = True

    def abort(self) -> None:
        self._release_head()
        self._keep_alive = False
        if self._transport is None:
            return
        if self._chunked:
            self._transport.close()  # what was written still arrives; the missing last chunk tells the rest
        else:
            self._transport.abort()  # without chunks only a reset tells an end from a break

    def outcome(self) -> web.StreamResponse:
        return _KEEP if self._keep_alive and self.finished else _CLOSE


_KEEP = _Sent(keep_alive=True)
_CLOSE = _Sent(keep_alive=False)


def _origin_form(target: str) -> tuple[str, str]:
    """Path and query (with its `?`) of a request target, whose absolute form names scheme and host as well."""
    if not target.startswith("/") and "://" in target:
        authority_and_path = target.split("://", 1)[1]
        slash = authority_and_path.find("/")
        target = authority_and_path[slash:] if slash >= 0 else "/"
    target, _, _ = target.partition("#")
    path, question, query = target.partition("?")
    return path, question + query


class _Connection(RequestHandler):
    """One client connection; answers what could not be parsed in JSON and without a traceback in the log."""

    __slots__ = ()

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("the response has begun; the connection can only be closed")
        text = (message or "the request could not be read as HTTP/1.1").splitlines()[0]
        error = {"message": text, "type": "invalid_request_error", "param": None, "code": "malformed_request"}
        response = web.Response(status=status, body=orjson.dumps({"error": error}), content_type="application/json")
        response.force_close()
        return response


class _Server(web.Server):
    def __init__(self, handler: Any, options: dict[str, Any]) -> None:
        super().__init__(handler, handler_cancellation=True, **options)
        self._options = options

    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=self._loop, **self._options)


class HttpServer:
    """Listens, hands each request to `handler`, and drains when asked to."""

    def __init__(self, handler: Handler, *, max_header_bytes: int) -> None:
        self._handler = handler
        self._loop = asyncio.get_running_loop()
        quiet = logging.getLogger("twolane.http")
        options = {
            "access_log": None,
            "logger": quiet,
            "auto_decompress": False,
            "max_line_size": max_header_bytes,
            "max_field_size": max_header_bytes,
            "max_headers": 256,
            "keepalive_timeout": 75.0,
            "lingering_time": 2.0,
        }
        self._server = _Server(self._serve, options)
        self._listener: asyncio.Server | None = None

    async def _serve(self, request: BaseRequest) -> web.StreamResponse:
        exchange = HttpExchange(request, self._loop)
        await self._handler(exchange)
        return exchange.outcome()

    async def listen(self, host: str, port: int) -> int:
        """Accept connections; returns the port (chosen by the system where `port` is 0). Raises `OSError`."""
        self._listener = await self._loop.create_server(self._server, host, port, backlog=2048)
        return int(self._listener.sockets[0].getsockname()[1])

    @property
    def connections(self) -> int:
        return len(self._server.connections)

    def stop_accepting(self) -> None:
        """Refuse new connections and close idle ones; running calls go on."""
        if self._listener is not None:
            self._listener.close()
        self._server.pre_shutdown()

    async def close(self) -> None:
        """Close what is still open."""
        self.stop_accepting()
        await self._server.shutdown(timeout=1.0)

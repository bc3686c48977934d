"""A scripted backend on a raw socket: exact bytes and exact timing, for what a real server cannot be made to do.

It answers probes like a generic OpenAI-compatible server and hands every other request to a script.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import SupportsIndex

import orjson


@dataclass
class Received:
    """One request as it stood on the wire."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]

    def one(self, name: str) -> str | None:
        values = self.all(name)
        assert len(values) <= 1, f"{name} was sent {len(values)} times"
        return values[0] if values else None


@dataclass
class Peer:
    """The backend's end of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    closed_s: float | None = None

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status: str = "200 OK", *fields: str) -> None:
        await self.send(("\r\n".join((f"HTTP/1.1 {status}", *fields)) + "\r\n\r\n").encode())

    async def json(self, document: object, status: str = "200 OK", *fields: str) -> None:
        body = orjson.dumps(document)
        await self.head(status, "Content-Type: application/json", f"Content-Length: {len(body)}", *fields)
        await self.send(body)

    async def stream_head(self, *fields: str, content_type: str = "text/event-stream") -> None:
        await self.head("200 OK", f"Content-Type: {content_type}", "Transfer-Encoding: chunked", *fields)

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def last_chunk(self) -> None:
        await self.send(b"0\r\n\r\n")

    async def event(self, document: object) -> None:
        await self.chunk(b"data: " + orjson.dumps(document) + b"\n\n")

    async def token(self, text: str) -> None:
        await self.event({"choices": [{"index": 0, "delta": {"content": text}}]})

    def reset(self) -> None:
        """Break the connection with a reset."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def until_closed(self) -> None:
        """Return when the other side has closed its end."""
        while await self.reader.read(65536):
            pass
        self.closed_s = asyncio.get_running_loop().time()


Script = Callable[[Received, Peer], Awaitable[None]]


async def echo(request: Received, peer: Peer) -> None:
    """The default script: a short answer that was not streamed."""
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    message = {"role": "assistant", "content": "hello"}
    await peer.json({"id": "c1", "choices": [{"index": 0, "message": message}], "usage": usage})


@dataclass
class ScriptedBackend:
    """Listens on a free port of the loopback; use as an async context manager."""

    script: Script = echo
    models: tuple[str, ...] = ("m",)
    health: Script | None = None
    probes: Mapping[str, object] = field(default_factory=dict)
    """More answers to probes by path, as JSON documents or scripts: what makes it another kind of server."""
    host: str = "127.0.0.1"
    path: str = ""
    """Of a unix socket, in place of host and port."""
    tls: ssl.SSLContext | None = None
    keep_alive_s: float | None = None
    """A connection that is idle for so long after a request is closed."""
    received: list[Received] = field(default_factory=list)
    """Requests that went to the script, not probes."""
    probed: list[Received] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)
    port: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        scheme = "http" if self.tls is None else "https"
        return f"{scheme}://[{self.host}]:{self.port}" if ":" in self.host else f"{scheme}://{self.host}:{self.port}"

    async def __aenter__(self) -> ScriptedBackend:
        loop = asyncio.get_running_loop()
        if self.path:
            self._server = await loop.create_unix_server(self._connection, self.path)
            return self
        self._server = await loop.create_server(self._connection, self.host, self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop listening and cut all connections."""
        if self._server is not None:
            await _accept_no_more(self._server)
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connection(self) -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(_Reader(), self._connected)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        peer = Peer(reader, writer)
        try:
            assert isinstance(reader, _Reader)
            async for request in _requests(reader, self.keep_alive_s):
                if request.method == "GET" and request.target in _PROBES:
                    await self._probe(request, peer)
                    continue
                self.received.append(request)
                self.peers.append(peer)
                await self.script(request, peer)
                if writer.is_closing():
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _probe(self, request: Received, peer: Peer) -> None:
        self.probed.append(request)
        answer = self.probes.get(request.target)
        if callable(answer):
            await answer(request, peer)
        elif answer is not None:
            await peer.json(answer)
        elif request.target == "/health" and self.health is not None:
            await self.health(request, peer)
        elif request.target == "/health":
            await peer.json({"status": "ok"})
        elif request.target == "/v1/models":
            await peer.json({"object": "list", "data": [{"id": model, "object": "model"} for model in self.models]})
        else:
            await peer.json({"error": "not here"}, "404 Not Found")


async def _accept_no_more(server: asyncio.Server) -> None:
    """Closed in the very turn in which it accepts, asyncio's server would lose the connection without closing it."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, asyncio.SelectorEventLoop):
        for listener in server.sockets:
            loop.remove_reader(listener.fileno())
    for _ in range(5):  # turns of the loop from a connection to its task
        await asyncio.sleep(0)


_PROBES = frozenset(
    {
        "/",
        "/health",
        "/v1/models",
        "/metrics",
        "/props",
        "/slots",
        "/version",
        "/api/version",
        "/api/tags",
        "/api/ps",
        "/api/v0/models",
        "/api/v1/models",
        "/get_model_info",
        "/get_server_info",
        "/server_info",
        "/model_info",
        "/load",
        "/v1/loads",
        "/get_load",
    }
)


class _Reader(asyncio.StreamReader):
    """Knows at once that bytes have come, before the task that reads them is woken."""

    arrived = 0

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        self.arrived += 1
        super().feed_data(data)


async def _requests(reader: _Reader, keep_alive_s: float | None) -> AsyncIterator[Received]:
    limit_s = None
    while True:
        arrived = reader.arrived
        reading = asyncio.get_running_loop().create_task(reader.readuntil(b"\r\n\r\n"))
        try:
            await asyncio.wait({reading}, timeout=limit_s)
            if not reading.done() and reader.arrived == arrived:
                return
            head = await reading
        except asyncio.IncompleteReadError:
            return
        finally:
            reading.cancel()
        limit_s = keep_alive_s
        request_line, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        method, target, _ = request_line.split(" ")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        lengths = [int(value) for name, value in headers if name.lower() == "content-length"]
        assert len(lengths) <= 1
        body = await reader.readexactly(lengths[0]) if lengths else b""
        yield Received(method, target, headers, body)


@contextmanager
def nobody_accepts(port: int) -> Iterator[None]:
    """A listener whose backlog is full: to connect there takes for ever."""
    with ExitStack() as sockets:
        listener = sockets.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(0)
        for _ in range(4):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        yield


async def eventually(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    """Return when `condition` holds; fail when it does not within the time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while not condition():
                await asyncio.sleep(0.005)
    assert condition(), "it never came true"

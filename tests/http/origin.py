"""The backend of the corpus: says byte for byte what the case says, and writes down what has reached it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass, field

from tests.http.case import Reply

AFTER = "/after"
"""The path by which the client asks whether its connection still works."""

AFTER_MARK = b"X-After"
_AFTER = b"HTTP/1.1 200 OK\r\nX-Origin: 1\r\nX-After: 1\r\nContent-Length: 5\r\n\r\nafter"
_PROBES = {
    "/health": b"{}",
    "/v1/models": b'{"object":"list","data":[{"id":"m","object":"model"}]}',
} | dict.fromkeys(("/", "/metrics", "/props", "/slots", "/version", "/load"), b"")
"""Asked by the router now and then; empty: not here."""

_NOT_HERE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A request as it stood on the backend's side."""

    line: str
    fields: tuple[tuple[str, str], ...]
    body: bytes


@dataclass
class Origin:
    """Use as an async context manager; the `port` may be one that was used before."""

    replies: tuple[Reply, ...]
    port: int = 0
    reached: list[Reached] = field(default_factory=list)
    garbage: list[bytes] = field(default_factory=list)
    """What came and was no request."""
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)
    _answered: int = 0

    async def __aenter__(self) -> Origin:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=2**19)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()  # or the next case could begin on a connection of this one

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.append(writer)
        try:
            while await self._serve(reader, writer):
                pass
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; False: the connection is over."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if error.partial:
                self.garbage.append(error.partial)
            return False
        line, *fields = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        target = line.split(" ")[1]
        known = tuple((name, value.strip()) for name, _, value in (text.partition(":") for text in fields))
        if line.startswith("GET ") and target in _PROBES:
            await _send(writer, _probe(target))
            return True
        if target == AFTER:
            await _send(writer, _AFTER)
            return True
        return await self._answer(reader, writer, line, known)

    async def _answer(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        line: str,
        fields: tuple[tuple[str, str], ...],
    ) -> bool:
        reply = self.replies[min(self._answered, len(self.replies) - 1)]
        self._answered += 1
        lengths = [int(value) for name, value in fields if name.lower() == "content-length"]
        framed = len(lengths) + sum(name.lower() == "transfer-encoding" for name, _ in fields)
        if framed > 1:
            self.garbage.append(line.encode("latin-1"))
        if reply.before_body:
            self.reached.append(Reached(line=line, fields=fields, body=b""))
            await _send(writer, reply.raw)
        body = b""
        if lengths and not (reply.before_body and reply.end != "open"):
            with contextlib.suppress(asyncio.IncompleteReadError):
                body = await reader.readexactly(lengths[0])
        if not reply.before_body:
            self.reached.append(Reached(line=line, fields=fields, body=body))
            await _send(writer, reply.raw)
        if reply.end == "hold":
            await asyncio.Event().wait()
        elif reply.end == "reset":
            _reset(writer)
        return reply.end == "open"


def _probe(target: str) -> bytes:
    body = _PROBES[target]
    if not body:
        return _NOT_HERE
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()

"""A server that says exactly the bytes it is told to, by path: half answers, garbage, silence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from router.engines.api import Answer

HANG = b"hang"
"""Take the request and never answer."""
GARBAGE = b"\x00\x01 this is not HTTP \xff\r\n\r\n"

Script = Mapping[str, Answer | bytes | Callable[[], Answer | bytes]]
"""By path: an answer, raw bytes of a whole response, or a function that gives either at each request."""


def response(status: int, body: bytes, *headers: str) -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status} X", *headers, f"Content-Length: {len(body)}"])
    return head.encode() + b"\r\n\r\n" + body


def reply(value: object, status: int = 200) -> Answer:
    return Answer(status, value if isinstance(value, bytes) else json.dumps(value).encode())


class RawServer:
    """Keeps what it was asked. A path that is not in `script` is 404."""

    def __init__(self, script: Script) -> None:
        self.script = dict(script)
        self.asked: list[str] = []
        self.heads: list[str] = []
        self.most_open = 0
        self.port = 0
        self._open = 0
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self._open += 1
        self.most_open = max(self.most_open, self._open)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ", 2)[1]
            self.asked.append(path)
            self.heads.append(head)
            await self._answer(path, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # a client that leaves is part of the plan
        finally:
            self._open -= 1
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        planned = self.script.get(path, Answer(404, b"not here"))
        if callable(planned):
            planned = planned()
        if planned == HANG:
            await reader.read()  # until the client leaves
            return
        writer.write(planned if isinstance(planned, bytes) else response(planned.status, planned.body))
        await writer.drain()

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, host, port)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def end(self) -> None:
        for writer in tuple(self._writers):
            writer.close()


@asynccontextmanager
async def raw_server(script: Script, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[RawServer]:
    raw = RawServer(script)
    server = await raw.start(host, port)
    try:
        yield raw
    finally:
        raw.end()
        server.close()
        await server.wait_closed()

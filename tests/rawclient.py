"""A client on a raw socket: sends exact bytes, sees exact bytes and when they came."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from dataclasses import dataclass, field

import orjson


@dataclass
class Answer:
    """One response; `body` is de-chunked, `complete` tells whether it ended as it should."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""
    complete: bool = False
    pieces: list[tuple[float, bytes]] = field(default_factory=list)

    def header(self, name: str) -> str | None:
        values = [value for key, value in self.headers if key.lower() == name]
        assert len(values) <= 1, f"{name} came {len(values)} times"
        return values[0] if values else None

    def json(self) -> object:
        return orjson.loads(self.body)


class RawClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(
        cls, port: int, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None, name: str = "localhost"
    ) -> RawClient:
        """With `tls`, the certificate has to be one for `name`."""
        server_name = name if tls is not None else None
        return cls(*await asyncio.open_connection(host, port, limit=2**20, ssl=tls, server_hostname=server_name))

    @classmethod
    async def connect_unix(cls, path: str) -> RawClient:
        return cls(*await asyncio.open_unix_connection(path, limit=2**20))

    async def __aenter__(self) -> RawClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """Close with a reset, as a process does that dies with data unread."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def request(self, method: str, target: str, body: bytes | None = None, *fields: str) -> None:
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost", *fields]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        await self.send(("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b""))

    async def post(self, target: str, document: object, *fields: str) -> None:
        body = document if isinstance(document, bytes) else orjson.dumps(document)
        await self.request("POST", target, body, "Content-Type: application/json", *fields)

    async def answer(self, *, head_only: bool = False) -> Answer:
        """Read one response; with `head_only` just its head (go on with `rest`)."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        answer = Answer(int(status_line.split(" ")[1]), headers)
        if answer.status == 100:
            return answer
        if not head_only:
            await self.rest(answer)
        return answer

    async def piece(self, answer: Answer) -> bytes:
        """The next chunk of a chunked body; empty at its end or where the connection breaks."""
        try:
            size = int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16)
            data = await self.reader.readexactly(size + 2)
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""
        if size == 0:
            answer.complete = True
            return b""
        answer.body += data[:-2]
        answer.pieces.append((asyncio.get_running_loop().time(), data[:-2]))
        return data[:-2]

    async def rest(self, answer: Answer) -> None:
        length = answer.header("content-length")
        if answer.header("transfer-encoding") == "chunked":
            while await self.piece(answer):
                pass
        elif length is not None:
            try:
                answer.body = await self.reader.readexactly(int(length))
                answer.complete = True
            except asyncio.IncompleteReadError as error:
                answer.body = error.partial
            except ConnectionError:
                pass  # a reset takes along what was not read yet
        elif answer.status not in (204, 304):
            answer.body = await self.reader.read()
            answer.complete = True

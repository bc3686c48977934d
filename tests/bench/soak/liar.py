"""A proxy that does one thing wrong, to see whether the soak finds it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum

from bench.soak.apis import CHAT
from bench.soak.order import read
from bench.soak.script import events

_ID = re.compile(rb"X-Request-Id: (\S+)\r\n")
_LENGTH = re.compile(rb"Content-Length: (\d+)\r\n")

_LAST = b"0\r\n\r\n"


class Lie(StrEnum):
    """What it does wrong."""

    NONE = "none"
    DOUBLES = "doubles"
    """It asks the backend twice and passes on one answer."""
    ALTERS = "alters"
    """One character of the answer is another."""
    REPEATS = "repeats"
    """One piece comes twice."""
    SWAPS = "swaps"
    """Two clients get each other's answers."""
    ENDS = "ends"
    """A broken answer gets a good end."""
    SWALLOWS = "swallows"
    """It closes without an answer."""
    CHANGES = "changes"
    """The backend gets another prompt."""
    MAKES_UP = "makes up"
    """It guesses the answer, and right, without asking anybody."""
    BABBLES = "babbles"
    """Bytes come behind the answer."""


class Liar:
    """Answers are chunked and passed on when they are over."""

    def __init__(self, lie: Lie, backend_port: int) -> None:
        self._lie = lie
        self._backend_port = backend_port
        self._told = 0
        self._waits: tuple[list[bytes], asyncio.Future[list[bytes]]] | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await _request(reader)
                self._told += 1
                lie = self._lie if self._told % 5 == 0 else Lie.NONE  # every fifth answer is one
                answer = await self._answer(request, lie)
                writer.write(answer)
                if not answer.endswith(_LAST):
                    break
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, request: bytes, lie: Lie) -> bytes:
        """What goes to the client; without its end, it goes no further."""
        if lie is Lie.CHANGES:
            request = request.replace(b"the", b"thy", 1)
        if lie is Lie.DOUBLES:
            await self._ask(request)
        if lie is Lie.MAKES_UP:
            pieces, complete = _guessed(request), True
        else:
            pieces, complete = _pieces(await self._ask(request))
        found = _ID.search(request)
        assert found is not None
        match lie:
            case Lie.SWALLOWS:
                return b""
            case Lie.ALTERS:
                pieces[2] = pieces[2].replace(b"word", b"w0rd")
            case Lie.REPEATS:
                pieces.insert(2, pieces[2])
            case Lie.SWAPS:
                pieces = await self._swapped(pieces)
            case _:
                pass
        answer = _head(found[1]) + _chunks(pieces)
        if complete or self._lie is Lie.ENDS:
            answer += _LAST
        if lie is Lie.BABBLES:
            answer += b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
        return answer

    async def _swapped(self, pieces: list[bytes]) -> list[bytes]:
        """The answer of another call in exchange for this one."""
        if self._waits is not None:
            others, waiting = self._waits
            self._waits = None
            waiting.set_result(pieces)
            return others
        exchanged: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()
        self._waits = pieces, exchanged
        return await exchanged

    async def _ask(self, request: bytes) -> bytes:
        """The body of the backend's answer, chunks and all, as far as it came."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._backend_port)
        try:
            writer.write(request)
            await reader.readuntil(b"\r\n\r\n")
            body = b""
            while not body.endswith(_LAST) and (data := await reader.read(65536)):
                body += data
        except ConnectionError:
            return b""
        finally:
            writer.close()
        return body


def _guessed(request: bytes) -> list[bytes]:
    asked = read(request)
    assert asked is not None
    return list(events(CHAT, asked.order))


def _chunks(pieces: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


def _head(request_id: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nX-Request-Id: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % request_id


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    assert length is not None
    return head + await reader.readexactly(int(length[1]))


def _pieces(chunks: bytes) -> tuple[list[bytes], bool]:
    """The whole chunks, and whether the last one is there."""
    pieces: list[bytes] = []
    while chunks:
        line, _, rest = chunks.partition(b"\r\n")
        size = int(line, 16)
        if size == 0:
            return pieces, True
        if len(rest) < size:
            break
        pieces.append(rest[:size])
        chunks = rest[size + 2 :]
    return pieces, False


@asynccontextmanager
async def lying(lie: Lie, backend_port: int) -> AsyncIterator[int]:
    """The port of such a proxy."""
    server = await asyncio.start_server(Liar(lie, backend_port).serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()

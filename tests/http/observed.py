"""One case sent to one proxy, and all that can be seen of it from both sides."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from tests.http.case import Case, Wait
from tests.http.origin import AFTER, AFTER_MARK, Origin

SILENCE_S = 1.6
"""Without a byte for so long, a proxy waits for more of the request. It is longer than their own patience."""

PATIENCE_MS = 800
"""Of both proxies with the backend."""

_AFTER_REQUEST = f"GET {AFTER} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

_OF_ONE_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})
"""Each hop has its own; what becomes of framing is compared by itself."""

_PROXYS_OWN = frozenset({"date", "server", "server-timing", "x-request-id"})
_ADDED_TO_STREAMS = frozenset({("cache-control", "no-cache"), ("x-accel-buffering", "no")})
_OWN_PREFIXES = ("x-twolane-", "x-forwarded-")

Fields = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Each field is one aspect in which two proxies may differ."""

    answers: Fields
    """Statuses in order. The proxy's own refusals as a class (`own 4xx`): the exact one is a matter of taste."""
    bodies: tuple[bytes, ...]
    """Of the answers that came from the backend."""
    framing: Fields
    """How the client is told where each of them ends; `cut` behind it where that end did not come."""
    fields: tuple[Fields, ...]
    """Of the same answers, in order, less those of one hop and a proxy's own."""
    reached: Fields
    """Request lines that came to the backend."""
    reached_bodies: tuple[bytes, ...]
    reached_fields: tuple[Fields, ...]
    connection: str
    """Of the client: `kept` when it carries another request, `closed`, or `silent` when the proxy waits for more."""

    @property
    def outcome(self) -> str:
        """The most important of it in a few words."""
        return " ".join((*self.answers, self.connection))


@dataclass
class _Answers:
    """What the client has read so far."""

    statuses: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    framing: list[str] = field(default_factory=list)
    fields: list[Fields] = field(default_factory=list)
    finals: int = 0
    after: bool = False


async def observe(case: Case, port: int, origin: Origin) -> Observed:
    """Send the case to the proxy at `port` whose backend is `origin`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    answers = _Answers()
    try:
        connection = await _converse(case, reader, writer, answers)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    return Observed(
        answers=tuple(answers.statuses),
        bodies=tuple(answers.bodies),
        framing=tuple(answers.framing),
        fields=tuple(answers.fields),
        reached=tuple(got.line for got in origin.reached),
        reached_bodies=tuple(got.body for got in origin.reached),
        reached_fields=tuple(_kept(got.fields) for got in origin.reached),
        connection=connection,
    )


async def _converse(case: Case, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: _Answers) -> str:
    try:
        for step in case.send:
            if isinstance(step, Wait):
                await _read_answer(reader, case, answers)
            else:
                await _send(writer, step)
        if case.leaves:
            writer.write_eof()
        while answers.finals < case.answers:
            await _read_answer(reader, case, answers)
        await _send(writer, _AFTER_REQUEST)
        while not answers.after:
            await _read_answer(reader, case, answers)
    except EOFError:
        return "closed"
    except TimeoutError:
        return "silent"
    return "kept"


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """A proxy that has closed may have answered before; that is read next."""
    with contextlib.suppress(ConnectionError):
        writer.write(data)
        await writer.drain()


async def _read_answer(reader: asyncio.StreamReader, case: Case, answers: _Answers) -> None:
    """One response, interim or final. Raises `EOFError` at the end of the connection, `TimeoutError` in silence."""
    try:
        async with asyncio.timeout(SILENCE_S):
            head = await reader.readuntil(b"\r\n\r\n")
    except ConnectionError as error:
        raise EOFError from error
    status_line, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    if not status_line.startswith("HTTP/1."):
        answers.statuses.append("not HTTP")
        raise EOFError
    status = status_line.split(" ")[1]
    fields = tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in lines))
    if status.startswith("1"):
        answers.statuses.append(status)
        return
    if AFTER_MARK in head:
        answers.after = True
        assert await reader.readexactly(5) == b"after", "what belongs to another answer came here"
        return
    bodiless = case.to_head or status in ("204", "304")
    body, framing = await _body(reader, dict(_lower(fields)), bodiless=bodiless)
    answers.finals += 1
    if not any(name == "x-origin" for name, _ in _lower(fields)):
        answers.statuses.append(f"own {status[0]}xx")
        return
    answers.statuses.append(status)
    answers.bodies.append(body)
    answers.framing.append(framing)
    answers.fields.append(_kept(fields))


async def _body(reader: asyncio.StreamReader, fields: dict[str, str], *, bodiless: bool) -> tuple[bytes, str]:
    """De-chunked, and how it was framed."""
    length = fields.get("content-length")
    framing = "chunked" if "transfer-encoding" in fields else "close" if length is None else f"length {length}"
    assert length is None or framing != "chunked", "two framings at once"
    if bodiless:
        return b"", "none" if framing == "close" else framing
    body = bytearray()
    try:
        async with asyncio.timeout(SILENCE_S):
            if framing == "chunked":
                await _read_chunks(reader, body)
            elif length is not None:
                while len(body) < int(length):
                    body += await _some(reader, int(length) - len(body))
            else:
                body += await reader.read()
    except (asyncio.IncompleteReadError, ConnectionError, EOFError):
        framing += ", cut"
    return bytes(body), framing


async def _some(reader: asyncio.StreamReader, most: int) -> bytes:
    data = await reader.read(most)
    if not data:
        raise EOFError
    return data


async def _read_chunks(reader: asyncio.StreamReader, body: bytearray) -> None:
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += await reader.readexactly(size)
        assert await reader.readexactly(2) == b"\r\n"
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass


def _lower(fields: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in fields]


def _kept(fields: tuple[tuple[str, str], ...]) -> Fields:
    """As lines, names as they were written, less what any two proxies differ in."""
    kept = []
    for name, value in fields:
        lower = name.lower()
        skipped = lower in _OF_ONE_HOP or lower in _PROXYS_OWN or (lower, value) in _ADDED_TO_STREAMS
        if not skipped and not lower.startswith(_OWN_PREFIXES) and lower != "x-origin":
            kept.append(f"{name}: {value}")
    return tuple(kept)

"""Cuts a response into events while it passes: bytes in, events out, no sockets.

How it works. A backend's bytes arrive cut anywhere: inside a character, between the CR and the LF of one line end, with
many events in one piece or one event in many. A reader keeps only the event that is not complete yet: the fields
that it has already read and the start of the line that is still open. Each piece is looked at once, so reading takes
linear time however it is cut, and the same stream gives the same events for every way of cutting it.

What is kept is bounded. An event longer than the limit is passed over: its bytes are dropped as they come, and reading
goes on with the next event. The relay is not concerned: it forwards the bytes whether or not they could be read.

Nearly every piece of a token stream is exactly one event, `data: {...}` and a blank line. That case is tried first and
costs a few searches in C; everything else goes through the general reader.

Sources: the HTML Living Standard, "Parsing an event stream", for SSE; one JSON text per line for NDJSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Event = tuple[str, bytes]
"""SSE: the `event:` name (empty if none) and the joined `data:`. NDJSON: an empty name and the line."""

LIMIT_BYTES = 4 * 2**20
"""Longest event that is read. The last event of a Responses stream repeats the whole answer, so it is not small."""

_BOM = b"\xef\xbb\xbf"
_IGNORED = b":"
"""Stands for an open line that will not be read: it makes the line a comment."""


class EventReader(Protocol):
    """Reads one response. Not to be used again after `close`."""

    @property
    def partial(self) -> bool:
        """Whether what was fed so far ends inside an event."""
        ...

    def feed(self, chunk: bytes) -> Sequence[Event]:
        """Take in the next bytes; returns the events that they complete, in order."""
        ...

    def close(self) -> Sequence[Event]:
        """The stream has ended; returns the event that its end completes, if any."""
        ...


def sse_reader(limit_bytes: int = LIMIT_BYTES) -> EventReader:
    """Server-sent events. A last event without its blank line is none: it stays `partial`."""
    return SseReader(limit_bytes)


def ndjson_reader(limit_bytes: int = LIMIT_BYTES) -> EventReader:
    """One JSON text per line. The last line counts without its line end."""
    return NdjsonReader(limit_bytes)


class SseReader:
    """Lines end with LF, CRLF or CR; an event ends with a blank line; a line that starts with a colon says nothing."""

    __slots__ = ("_after_cr", "_at_start", "_between", "_data", "_limit", "_line", "_name", "_size", "_skipping")

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._line = bytearray()
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0
        self._skipping = False
        self._after_cr = False
        self._at_start = True
        self._between = False

    def feed(self, chunk: bytes) -> Sequence[Event]:
        lines = chunk.splitlines()
        if self._between and len(chunk) <= self._limit:
            # A blank line is the only empty one, so two lines of which the second is empty are one whole event.
            if len(lines) == 2 and not lines[1] and lines[0].startswith(b"data: "):
                return (("", lines[0][6:]),)
            if len(lines) == 3 and not lines[2] and lines[0].startswith(b"event: ") and lines[1].startswith(b"data: "):
                return ((lines[0][7:].decode("utf-8", "replace"), lines[1][6:]),)
        return self._read(chunk, lines)

    def close(self) -> Sequence[Event]:
        return ()

    @property
    def partial(self) -> bool:
        return bool(self._line or self._data or self._name or self._skipping)

    def _read(self, chunk: bytes, lines: list[bytes]) -> list[Event]:
        if self._at_start:
            chunk = self._without_bom(chunk)
            lines = chunk.splitlines()
        if not chunk:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            # The CR has already ended that line.
            del lines[0]
        self._after_cr = chunk.endswith(b"\r")
        rest = b"" if chunk.endswith((b"\n", b"\r")) else lines.pop()
        if lines and self._line:
            lines[0] = bytes(self._line) + lines[0]
            self._line.clear()
        events = self._take(lines)
        if rest:
            self._hold(rest)
        self._between = not self.partial
        return events

    def _without_bom(self, chunk: bytes) -> bytes:
        chunk = bytes(self._line) + chunk
        self._line.clear()
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._line += chunk
            return b""
        self._at_start = False
        return chunk.removeprefix(_BOM)

    def _take(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        for line in lines:
            if not line:
                if self._data and not self._skipping:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    events.append((self._name.decode("utf-8", "replace"), data))
                self._reset()
            elif line.startswith(_IGNORED) or self._skipping:
                continue
            elif self._size + len(line) > self._limit:
                self._skip()
            else:
                self._field(line)
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value[1:] if value.startswith(b" ") else value)
            self._size += len(line)
        elif name == b"event":
            self._name = value[1:] if value.startswith(b" ") else value
            self._size += len(line)

    def _hold(self, rest: bytes) -> None:
        """Keep the start of a line, unless the line will not be read."""
        line = self._line
        if line.startswith(_IGNORED):
            return
        line += rest
        if line.startswith(_IGNORED) or self._skipping:
            line[:] = _IGNORED
        elif self._size + len(line) > self._limit:
            self._skip()
            line[:] = _IGNORED

    def _skip(self) -> None:
        """Pass over the rest of this event."""
        self._reset()
        self._skipping = True

    def _reset(self) -> None:
        self._name = b""
        self._data = []
        self._size = 0
        self._skipping = False


class NdjsonReader:
    """Lines end with LF; a CR before it is white space of the JSON text; blank lines say nothing."""

    __slots__ = ("_limit", "_line", "_skipping")

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._line = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> Sequence[Event]:
        if (
            chunk.startswith(b"{")
            and chunk.find(b"\n") == len(chunk) - 1 <= self._limit
            and not self._line
            and not self._skipping
        ):
            return (("", chunk[:-1]),)
        return self._read(chunk)

    def close(self) -> Sequence[Event]:
        line = bytes(self._line)
        self._line.clear()
        return (("", line),) if line.strip() else ()

    @property
    def partial(self) -> bool:
        return bool(self._line or self._skipping)

    def _read(self, chunk: bytes) -> list[Event]:
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(self._line) + lines[0]
            self._line.clear()
            if self._skipping:
                # This was the end of the line that is passed over.
                del lines[0]
                self._skipping = False
        events = [("", line) for line in lines if len(line) <= self._limit and line.strip()]
        if not self._skipping:
            self._line += rest
            if len(self._line) > self._limit:
                self._line.clear()
                self._skipping = True
        return events

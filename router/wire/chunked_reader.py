"""A chunked request body: bytes of the connection in, bytes of the body out, and where it ends.

It is read by a parser of its own, started on a head that we wrote: the parser that read the client's head takes a
message with `Upgrade` for complete, whatever its framing says, and `Upgrade` is ignored here.

The parser does not say how many bytes it took, and would go on with the next request. But a chunked body ends with an
empty line, so what is fed is cut behind each one: the end of a body is then always the end of a cut. Trailers are
checked by the parser and dropped.
"""

from __future__ import annotations

from typing import Final

from httptools import HttpParserError, HttpRequestParser

EMPTY_LINE: Final = b"\r\n\r\n"
BETWEEN_LIMIT_BYTES: Final = 64 * 1024
"""Of chunk extensions and trailers without a byte of the body in between."""

_HEAD: Final = b"POST / HTTP/1.1\r\nHost: router\r\nTransfer-Encoding: chunked\r\n\r\n"


class ChunkedReader:
    """Feed it until it is `complete` or `broken`. Bytes of the body are appended to `pieces` as they come."""

    __slots__ = ("_between_bytes", "_parser", "_pieces", "_tail", "broken", "complete", "on_body")

    def __init__(self, pieces: list[bytes]) -> None:
        self.complete = False
        self.broken = ""
        """Why these bytes are no chunked body."""
        self.on_body = pieces.append
        self._pieces = pieces
        self._between_bytes = 0
        self._tail = b""
        self._parser: HttpRequestParser | None = HttpRequestParser(self)
        self._parser.feed_data(_HEAD)

    def on_message_complete(self) -> None:
        self.complete = True

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the connection; gives back those behind the end of the body."""
        at = 0
        while at < len(data) and not self.complete and not self.broken:
            end = behind_empty_line(self._tail, data, at)
            self._parse(data[at:end])
            at = end
        self._tail = (self._tail + data[-3:])[-3:]
        return data[at:]

    def release(self) -> None:
        """Cut the reference circle with the parser; nothing can be fed afterwards."""
        self._parser = None

    def _parse(self, part: bytes) -> None:
        assert self._parser is not None, "fed after the end"
        before = len(self._pieces)
        try:
            self._parser.feed_data(part)
        except HttpParserError as error:
            self.broken = str(error)
        if len(self._pieces) > before:
            self._between_bytes = 0
        else:
            self._between_bytes += len(part)
            if self._between_bytes > BETWEEN_LIMIT_BYTES:
                self.broken = f"more than {BETWEEN_LIMIT_BYTES} bytes of extensions or trailers"
        if self.complete or self.broken:
            self.release()


def behind_empty_line(tail: bytes, data: bytes, start: int = 0) -> int:
    """Position in `data` behind the first empty line at or after `start`, or the end of `data`.

    It may begin before `start`, and in `tail`, up to three bytes that came before `data`.
    """
    if start < 3 and tail:
        at = (tail + data[: start + 3]).find(EMPTY_LINE, max(0, start + len(tail) - 3))
        if at >= 0:
            return at + len(EMPTY_LINE) - len(tail)
    at = data.find(EMPTY_LINE, max(0, start - 3))
    return at + len(EMPTY_LINE) if at >= 0 else len(data)

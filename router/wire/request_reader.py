"""Bytes of a connection in, one request out. No socket, no clock.

The parser (llhttp) is strict: bare line feeds, folded fields, spaces before a colon, control bytes, two lengths, a
length beside `Transfer-Encoding`, chunk sizes that are not plain hexadecimal are refused there. What it does not do is
done here:

- It goes on to the next request in the same bytes and does not say where. A head ends with the first empty line, so
  the bytes are cut there, and a body of known length is counted without the parser.
- It takes a request with `Upgrade` for the last one in HTTP. Upgrades are ignored, as a server may.
- It accepts `Transfer-Encoding: gzip, chunked`, in one field or in two, the field in HTTP/1.0, versions 0.9 and 2.0,
  no `Host`, several, or one that is no host, and a target that belongs to another method or names a user.
- It has no limit on the size of anything, and leaves blanks at the end of values.
- Parts of a head stay in it until the rest has come. So each request gets a parser of its own (0.3 us).
"""

from __future__ import annotations

import re
import string
from http import HTTPStatus
from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from router.wire.chunked_reader import EMPTY_LINE, ChunkedReader, behind_empty_line
from router.wire.refusal import Refusal

HEAD_LIMIT_BYTES: Final = 256 * 1024
FIELDS_LIMIT: Final = 256

_BLANK: Final = b" \t"
_WRONG_VERSION: Final = Refusal(
    status=HTTPStatus.HTTP_VERSION_NOT_SUPPORTED,
    message="this port speaks HTTP/1.1 (and 1.0); send the request as such",
)
_UNKNOWN_CODING: Final = Refusal(
    status=HTTPStatus.NOT_IMPLEMENTED, message="the only transfer coding that is known here is `chunked`"
)
_HOST_BYTES: Final = b"".join((string.ascii_letters.encode(), string.digits.encode(), b"-._~", b"!$&'()*+,;=", b"%:[]"))
"""Of a host and a port, RFC 3986 section 3.2."""

_AUTHORITY_END: Final = re.compile(rb"[/?#]")

_NOT_SERVED: Final = {
    method: Refusal(status=HTTPStatus.NOT_IMPLEMENTED, message=f"{method} is not served here")
    for method in ("CONNECT", "TRACE")
}
"""One asks for a tunnel, the other for a copy of what a backend was sent, the key that it is called with included."""

_LONG_TARGET: Final = Refusal(status=HTTPStatus.REQUEST_URI_TOO_LONG, message="the request line is too long")

_COMPLAINTS: Final = {
    "Invalid HTTP version": _WRONG_VERSION,
    "Request has invalid `Transfer-Encoding`": _UNKNOWN_CODING,
}
"""Of the parser; all others are a 400 in its own words."""


class RequestReader:
    """Feed it until it is `complete` or `refusal` is set. What else it tells is valid once `head_done`."""

    __slots__ = (
        "_chunks",
        "_fields",
        "_head_bytes",
        "_left_bytes",
        "_line_bytes",
        "_max_header_bytes",
        "_parser",
        "_pieces",
        "_tail",
        "_target",
        "body_bytes",
        "complete",
        "head_done",
        "headers",
        "http10",
        "keep_alive",
        "length",
        "method",
        "on_url",
        "refusal",
    )

    method: str
    http10: bool
    keep_alive: bool
    """Whether the client wants to send another request on this connection."""

    length: int | None
    """Of the body; None for a chunked one."""

    def __init__(self, *, max_header_bytes: int) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        """As they came, less the blanks around values."""
        self.head_done = False
        self.complete = False
        self.refusal: Refusal | None = None
        self.body_bytes = 0
        """As many have come so far."""
        self._fields: dict[bytes, bytes]
        self._max_header_bytes = max_header_bytes
        self._head_bytes = 0
        self._line_bytes = 0
        self._tail = b""
        self._left_bytes = 0
        self._pieces: list[bytes] = []
        self._chunks: ChunkedReader | None = None
        self._target: list[bytes] = []
        self.on_url = self._target.append  # called by the parser, without a Python frame in between
        self._parser: HttpRequestParser | None = HttpRequestParser(self)

    @property
    def begun(self) -> bool:
        """Whether more than empty lines has come."""
        return self._head_bytes > 0

    @property
    def target(self) -> str:
        return b"".join(self._target).decode("latin-1")

    @property
    def expects_continue(self) -> bool:
        return not self.http10 and self._fields.get(b"expect", b"").lower() == b"100-continue"

    def header(self, name: str) -> str | None:
        """Value of the last field of that lower-case name."""
        value = self._fields.get(name.encode("latin-1"))
        return value.decode("latin-1") if value is not None else None

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the connection; gives back those behind the end of the request."""
        if not self.head_done:
            data = self._feed_head(data)
        if self.refusal is not None:
            return b""
        if self.complete or not data:
            return data
        if self._chunks is not None:
            return self._feed_chunks(self._chunks, data)
        return self._feed_counted(data)

    def take_body(self) -> bytes:
        """What has come of the body and was not taken yet, verbatim but for the chunks."""
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        return body

    def release(self) -> None:
        """Cut the reference circles with the parsers; nothing can be fed afterwards."""
        self._parser = None
        if self._chunks is not None:
            self._chunks.release()

    # --- the body

    def _feed_counted(self, data: bytes) -> bytes:
        left = self._left_bytes
        part, rest = (data, b"") if len(data) <= left else (data[:left], data[left:])
        self._pieces.append(part)
        self.body_bytes += len(part)
        self._left_bytes -= len(part)
        self.complete = not self._left_bytes
        return rest

    def _feed_chunks(self, chunks: ChunkedReader, data: bytes) -> bytes:
        pieces = self._pieces
        held = len(pieces)
        rest = chunks.feed(data)
        if len(pieces) > held:
            pieces[held:] = [b"".join(pieces[held:])]  # a million chunks of one byte are not a million objects
            self.body_bytes += len(pieces[-1])
        self.complete = chunks.complete and not chunks.broken
        if chunks.broken:
            self._refuse(HTTPStatus.BAD_REQUEST, f"the body is not validly chunked: {chunks.broken}")
        return rest

    # --- the head

    def _feed_head(self, data: bytes) -> bytes:
        """Gives back the bytes behind the head."""
        if not self._head_bytes and data[0] in b"\r\n":
            data = data.lstrip(b"\r\n")  # empty lines before a request mean nothing (RFC 9112, 2.2)
            if not data:
                return b""
        end = behind_empty_line(self._tail, data)
        part = data if end == len(data) else data[:end]
        self._head_bytes += len(part)
        if self._head_bytes > HEAD_LIMIT_BYTES:
            self._too_large(f"the head is larger than {HEAD_LIMIT_BYTES} bytes")
            return b""
        self._parse(part)
        if self.refusal is None and not self.head_done:
            self._note_unfinished(part)
        return data[end:]

    def _note_unfinished(self, part: bytes) -> None:
        """The head goes on in the next bytes; its last line may be too long already."""
        if (self._tail + part[-4:]).endswith(EMPTY_LINE):
            self.refusal = _WRONG_VERSION  # the preface of HTTP/2 is the only one that goes on behind an empty line
            return
        self._tail = (self._tail + part[-3:])[-3:]
        line_end = part.rfind(b"\n")
        self._line_bytes = self._line_bytes + len(part) if line_end < 0 else len(part) - line_end - 1
        if self._line_bytes > self._max_header_bytes:
            self._too_large(f"a line of the head is longer than {self._max_header_bytes} bytes (limits.max_header)")
        elif len(self.headers) > FIELDS_LIMIT:
            self._too_large(f"the head has more than {FIELDS_LIMIT} fields")

    def _parse(self, part: bytes) -> None:
        parser = self._parser
        assert parser is not None, "fed after the end"
        try:
            parser.feed_data(part)
        except HttpParserUpgrade:
            pass  # ignored: the head is complete, and read as that of any other request
        except HttpParserError as error:
            self.refusal = (
                self.refusal
                or _COMPLAINTS.get(str(error))
                or Refusal(status=HTTPStatus.BAD_REQUEST, message=f"the request is not valid HTTP/1.1: {error}")
            )
        if self.refusal is None and self.head_done:
            self._head_complete(parser)
            self._parser = None

    def _head_complete(self, parser: HttpRequestParser) -> None:
        version = parser.get_http_version()
        self.method = parser.get_method().decode("ascii")
        self.http10 = version == "1.0"
        self._fields = {name.lower(): value for name, value in self.headers}
        if version not in ("1.1", "1.0"):
            self.refusal = _WRONG_VERSION
        elif self.method in _NOT_SERVED:
            self.refusal = _NOT_SERVED[self.method]
        else:
            self._check_target()
            self._check_host()
            self._check_sizes()
            self._frame()

    def _check_target(self) -> None:
        if self._target[0][:1] == b"/":
            return
        scheme, _, behind = b"".join(self._target).partition(b"://")
        if scheme[:1] == b"*":
            if scheme != b"*" or self.method != "OPTIONS":
                self._refuse(HTTPStatus.BAD_REQUEST, "the target is no path; `*` alone belongs to OPTIONS")
        elif b"@" in _AUTHORITY_END.split(behind, 1)[0]:
            self._refuse(HTTPStatus.BAD_REQUEST, "the target names a user; send keys in a header field")

    def _check_host(self) -> None:
        fields = self._fields
        host = fields.get(b"host")
        if host is None:
            if not self.http10:
                self._refuse(HTTPStatus.BAD_REQUEST, "HTTP/1.1 requires a Host field")
        elif host.translate(None, _HOST_BYTES):
            self._refuse(HTTPStatus.BAD_REQUEST, "the Host field is not a host with or without a port")
        elif len(fields) < len(self.headers) and sum(name.lower() == b"host" for name, _ in self.headers) > 1:
            self._refuse(HTTPStatus.BAD_REQUEST, "there is more than one Host field")

    def _check_sizes(self) -> None:
        limit = self._max_header_bytes
        if len(self.headers) > FIELDS_LIMIT:
            self._too_large(f"the head has more than {FIELDS_LIMIT} fields")
        elif self._head_bytes > limit:
            if sum(map(len, self._target)) > limit:
                self.refusal = self.refusal or _LONG_TARGET
            elif any(len(name) + len(value) > limit for name, value in self.headers):
                self._too_large(f"a field of the head is longer than {limit} bytes (limits.max_header)")

    def _frame(self) -> None:
        """How the body ends."""
        if b"transfer-encoding" not in self._fields:
            self.length = self._left_bytes = int(self._fields.get(b"content-length", b"0"))
            self.complete = not self._left_bytes
        elif self.http10:
            self._refuse(HTTPStatus.BAD_REQUEST, "HTTP/1.0 has no Transfer-Encoding")
        elif [value.lower() for name, value in self.headers if name.lower() == b"transfer-encoding"] != [b"chunked"]:
            self.refusal = self.refusal or _UNKNOWN_CODING
        else:
            self.length = None
            self._chunks = ChunkedReader(self._pieces)

    def _too_large(self, message: str) -> None:
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, message)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """The first reason stays."""
        self.refusal = self.refusal or Refusal(status=status, message=message)

    # --- called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value.rstrip(_BLANK)))

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        self.head_done = True
        self.keep_alive = self._parser.should_keep_alive()  # forgotten by the end of a message

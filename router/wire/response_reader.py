"""Bytes of a connection in, one response out. No socket, no clock.

The parser (llhttp) is strict: bare line feeds, folded fields, two lengths, a length beside `Transfer-Encoding` are
refused there. What it does not know is kept here:

- It reports 1xx responses like any other; they are skipped, and 101 is refused, since nobody asked for it.
- It expects a body after the head of a HEAD response, since it does not see requests.
- It is never told of the end of the connection, which is the end of a body without length and chunks.
- It goes on to the next response in the same bytes. There can be none, so those bytes are surplus, and a connection
  that carried them is not used again.
- It unwraps `chunked` and passes other transfer codings through. We forward no `TE`, so a backend may use none.
- It leaves parts of a trailer behind for the next response. So each response gets a parser of its own (0.3 us).
"""

from __future__ import annotations

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

HEAD_LIMIT_BYTES = 64 * 1024
"""Of all heads up to that of the final response."""

_FRAMING_NAME_SIZES = frozenset(map(len, ("keep-alive", "content-length", "transfer-encoding")))


class _Unasked(Exception):
    """Valid HTTP that answers another request than ours."""


class ResponseReader:
    """Feed it until it is `complete` or `broken`."""

    __slots__ = (
        "_codings",
        "_head_bytes",
        "_own_pieces",
        "_parser",
        "_pieces",
        "_to_head_request",
        "_until_close",
        "between_chunks",
        "broken",
        "complete",
        "head_done",
        "headers",
        "keep_alive",
        "length",
        "on_body",
        "reason",
        "reusable",
        "status",
    )

    status: int
    """Valid, like `length`, `chunked` and `reusable`, once `head_done`."""

    reusable: bool
    """Whether the response leaves the connection ready for another one."""

    def __init__(self, *, to_head_request: bool = False) -> None:
        self.reason = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.length: int | None = None
        self.keep_alive = b""
        """Value of the `Keep-Alive` field."""
        self.head_done = False
        self.complete = False
        self.between_chunks = False
        """The next byte begins a chunk, or the end. One that is fed then changes nothing here, so it need not be."""
        self.broken = ""
        """Why these bytes are no response."""
        self._to_head_request = to_head_request
        self._codings = b""
        self._until_close = False
        self._head_bytes = 0
        self._own_pieces = 0
        self._pieces: list[bytes] = []
        self.on_body = self._pieces.append  # called by the parser, without a Python frame in between
        self._parser = HttpResponseParser(self)

    @property
    def heard(self) -> bool:
        """Whether a single byte has come."""
        return self._head_bytes > 0

    @property
    def chunked(self) -> bool:
        return self._codings == b"chunked"

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the connection, give those of the body as one piece. Not to be called after the end."""
        if self.head_done:
            try:  # as `_parse`, spared a call per token
                self._parser.feed_data(data)
            except (HttpParserError, HttpParserUpgrade) as error:
                self._refused(error)
        else:
            self._parse_head(data)
        pieces = self._pieces
        if self.complete and len(pieces) > self._own_pieces:
            del pieces[self._own_pieces :]
            self.reusable = False
        if not pieces:
            return b""
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        return body

    @property
    def framed(self) -> bool:
        """Whether the response says where it ends; else the end of the connection is its end."""
        return not self._until_close

    def end_of_connection(self) -> None:
        """Nothing more will come: the end of a close-delimited body."""
        if self.head_done and self._until_close and not self.broken:
            self.complete = True

    def release(self) -> None:
        """Cut the reference circle with the parser; nothing can be fed afterwards."""
        del self._parser

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._refused(error)

    def _refused(self, error: Exception) -> None:
        if self.complete:
            self.reusable = False
        else:
            self._break(str(error))

    def _parse_head(self, data: bytes) -> None:
        room = HEAD_LIMIT_BYTES - self._head_bytes
        self._head_bytes += len(data)
        if len(data) <= room:
            self._parse(data)
            return
        self._parse(data[:room])
        if self.complete:
            self.reusable = False
        elif self.head_done and not self.broken:
            self._parse(data[room:])
        else:
            self._break(f"its head is larger than {HEAD_LIMIT_BYTES} bytes")

    def _break(self, why: str) -> None:
        self.broken = self.broken or why

    def _unasked(self, why: str) -> _Unasked:
        """Raised in a callback it stops the parser there: what follows in the same bytes must not count."""
        self._break(why)
        return _Unasked(why)

    # --- called by the parser

    def on_message_begin(self) -> None:
        if self.complete:
            self.reusable = False

    def on_status(self, part: bytes) -> None:
        if not self.head_done:
            self.reason += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head_done:  # a trailer, or a second response
            return
        self.headers.append((name, value))
        if len(name) in _FRAMING_NAME_SIZES:
            self._note_framing(name.lower(), value)

    def _note_framing(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            self.length = int(value)
        elif name == b"transfer-encoding":
            coding = value.strip().lower()
            self._codings = b"%b,%b" % (self._codings, coding) if self._codings else coding
        elif name == b"keep-alive":
            self.keep_alive = value

    def on_headers_complete(self) -> None:
        if self.head_done:
            return
        parser = self._parser
        status = parser.get_status_code()
        if status < 200:
            if status < 100 or status == 101:
                raise self._unasked(f"status {status} was not asked for")
            return
        self.status = status
        self.head_done = True
        self.reusable = parser.should_keep_alive()
        if self._to_head_request:
            self.complete = True
        elif status in (204, 304):
            self.length = None
        elif self._codings in (b"", b"identity"):
            self._until_close = self.length is None
        elif self._codings != b"chunked":
            raise self._unasked("it uses transfer codings that were not asked for")

    def on_chunk_header(self) -> None:
        self.between_chunks = False

    def on_chunk_complete(self) -> None:
        self.between_chunks = True

    def on_message_complete(self) -> None:
        if not self.head_done:  # a 1xx response
            self._forget_head()
        elif not self.complete:
            self._own_pieces = len(self._pieces)
            self.complete = True

    def _forget_head(self) -> None:
        self.headers.clear()
        self.reason = self.keep_alive = self._codings = b""
        self.length = None

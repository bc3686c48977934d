"""A planned call: what is asked, how the client behaves, and the bytes that go out."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from bench.soak import order as orders
from bench.soak.apis import Api
from bench.soak.engines import MODEL
from bench.soak.order import Order

_PROSE = (
    b"Please read the notes of the last meeting and tell me which of the open points are still without an owner. "
    b"The second paragraph speaks of a delay of two weeks; the table below gives another date for the same step. "
    b"Keep the answer short, name the page for each fact, and say so where the documents do not settle a question. "
) * 1600
_CHUNK_BYTES = 16_000
_TOPICS = 97


class Manner(StrEnum):
    """How the client behaves."""

    PLAIN = "plain"
    SLOW_BODY = "slow_body"
    """The body comes in two halves with a pause between them."""
    CHUNKED_BODY = "chunked_body"
    EXPECT = "expect"
    """The body comes after `100 Continue`."""
    HTTP_1_0 = "http_1_0"
    SLOW_READER = "slow_reader"
    LEAVES_BEFORE_BODY = "leaves_before_body"
    """Half of the body has been sent."""
    LEAVES_WAITING = "leaves_waiting"
    """After a while, wherever the call is then: in the line, at a backend, or done."""
    LEAVES_MID = "leaves_mid"
    """Some of the answer has come."""


LEAVES = frozenset({Manner.LEAVES_BEFORE_BODY, Manner.LEAVES_WAITING, Manner.LEAVES_MID})


class Exit(StrEnum):
    """How it leaves."""

    CLOSE = "close"
    RESET = "reset"
    HALF = "half"
    """It ends its sending side and waits for the router to close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    api: Api
    order: Order
    manner: Manner = Manner.PLAIN
    leave_ms: int = 0
    """Until it leaves, and between halves of a slow body."""
    leave_bytes: int = 0
    """Of the answer, that it reads before it leaves."""
    exit: Exit = Exit.CLOSE
    read_pause_ms: int = 4
    """Of a slow reader, between two reads."""
    model: str = MODEL
    size_bytes: int = 600
    """About that much body."""
    gzip: bool = False
    call_class: str = ""
    session: str = ""

    @property
    def request_id(self) -> bytes:
        return b"soak-%d" % self.order.n

    def __str__(self) -> str:
        order = orders.written(self.order).decode()
        leaves = f" leave_ms={self.leave_ms} leave_bytes={self.leave_bytes} exit={self.exit}"
        return (
            f"{self.api.name} {order} {self.manner}{leaves if self.manner in LEAVES else ''} model={self.model} "
            f"size_bytes={self.size_bytes}{' gzip' * self.gzip} {self.call_class} {self.session}".rstrip()
        )

    def body(self) -> bytes:
        streams = b"true" if self.order.stream else b"false"
        begin = b'{"model":"%b",' % self.model.encode()
        fields = self.api.fields.replace(b"STREAM", streams).replace(b"TOPIC", b"topic %d" % (self.order.n % _TOPICS))
        before = begin + fields
        order = orders.written(self.order)
        room = max(0, self.size_bytes - len(before) - len(order) - 24)
        start = self.order.n * 7 % 512
        plain = orders.sealed(before + _PROSE[start : start + room], order, len(begin) - 1) + self.api.behind
        return gzip.compress(plain, 1, mtime=0) if self.gzip else plain

    def head(self, body: bytes) -> bytes:
        version = b"1.0" if self.manner is Manner.HTTP_1_0 else b"1.1"
        fields = [
            b"POST %b HTTP/%b" % (self.api.path.encode(), version),
            b"Host: router",
            b"Content-Type: application/json",
            b"X-Request-Id: " + self.request_id,
        ]
        if self.manner is Manner.CHUNKED_BODY:
            fields.append(b"Transfer-Encoding: chunked")
        else:
            fields.append(b"Content-Length: %d" % len(body))
        if self.manner is Manner.EXPECT:
            fields.append(b"Expect: 100-continue")
        if self.gzip:
            fields.append(b"Content-Encoding: gzip")
        if self.call_class:
            fields.append(b"X-Twolane-Class: " + self.call_class.encode())
        if self.session:
            fields.append(b"X-Session-Id: " + self.session.encode())
        return b"\r\n".join(fields) + b"\r\n\r\n"


def chunked(body: bytes) -> Iterator[bytes]:
    """The body as the chunks of a request."""
    for start in range(0, len(body), _CHUNK_BYTES):
        piece = body[start : start + _CHUNK_BYTES]
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"

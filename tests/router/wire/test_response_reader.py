"""Responses of backends, whole and torn at every byte, right and wrong."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable

import pytest

from router.wire.response_reader import HEAD_LIMIT_BYTES, ResponseReader

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def read(*reads: bytes, to_head_request: bool = False) -> tuple[ResponseReader, bytes]:
    """A reader that got these bytes until it had enough, and the body that it gave."""
    reader = ResponseReader(to_head_request=to_head_request)
    body = b""
    for data in reads:
        if reader.complete or reader.broken:
            break
        body += reader.feed(data)
    return reader, body


def single_bytes(data: bytes) -> Iterable[bytes]:
    return (data[at : at + 1] for at in range(len(data)))


RESPONSES = [
    (OK + b"Content-Length: 5\r\n\r\nhello", b"hello", True),
    (OK + b"Content-Length: 0\r\n\r\n", b"", True),
    (CHUNKED + b"3\r\nhel\r\n2;why=not\r\nlo\r\n0\r\n\r\n", b"hello", True),
    (CHUNKED + b"5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-End: 2\r\n\r\n", b"hello", True),
    (OK + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello", b"hello", False),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello", False),
    (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello", b"hello", True),
    (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
    (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", b"", True),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + CHUNKED + b"0\r\n\r\n", b"", True),
]


@pytest.mark.parametrize(("response", "body", "reusable"), RESPONSES)
def test_a_response_is_the_same_in_one_read_and_byte_by_byte(response: bytes, body: bytes, reusable: bool) -> None:
    for reads in ([response], single_bytes(response)):
        reader, got = read(*reads)
        assert (reader.complete, reader.broken) == (True, "")
        assert got == body
        assert reader.reusable is reusable


def test_the_head_is_kept_as_it_stood_on_the_wire() -> None:
    raw = b"HTTP/1.1 429 Too  Many\r\nset-cookie: a\r\nX-Empty:\r\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n"
    for reads in ([raw], single_bytes(raw)):
        reader, _ = read(*reads)
        assert (reader.status, reader.reason, reader.length) == (429, b"Too  Many", 0)
        assert reader.headers == [
            (b"set-cookie", b"a"),
            (b"X-Empty", b""),
            (b"Set-Cookie", b"b"),
            (b"Content-Length", b"0"),
        ]


def test_a_status_line_without_a_reason_is_accepted() -> None:
    reader, _ = read(b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n")
    assert (reader.status, reader.reason) == (200, b"")


def test_headers_of_early_responses_do_not_leak_into_the_final_one() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\nContent-Length: 9\r\nKeep-Alive: timeout=9\r\n\r\n"
    reader, body = read(early + OK + b"Content-Length: 2\r\n\r\nhi")
    assert (reader.status, reader.reason, reader.headers) == (200, b"OK", [(b"Content-Length", b"2")])
    assert (body, reader.keep_alive) == (b"hi", b"")


def test_trailers_are_dropped() -> None:
    reader, _ = read(CHUNKED + b"0\r\nX-Sum: 1\r\n\r\n")
    assert reader.headers == [(b"Transfer-Encoding", b"chunked")]


def test_chunks_of_one_read_are_joined() -> None:
    reader = ResponseReader()
    assert reader.feed(CHUNKED) == b""
    assert reader.feed(b"1\r\na\r\n1\r\nb\r\n1\r\nc\r\n") == b"abc"
    assert reader.feed(b"1\r\nd\r\n0\r\n\r\n") == b"d"
    assert reader.complete


def test_a_response_to_head_has_no_body_but_keeps_its_length() -> None:
    reader, body = read(OK + b"Content-Length: 5\r\n\r\n", to_head_request=True)
    assert (reader.complete, reader.length, body, reader.reusable) == (True, 5, b"", True)


def test_a_response_to_head_that_has_a_body_ends_the_connection() -> None:
    reader, body = read(OK + b"Content-Length: 5\r\n\r\nhello", to_head_request=True)
    assert (reader.complete, body, reader.reusable) == (True, b"", False)


@pytest.mark.parametrize("fields", [b"", b"Connection: keep-alive\r\n", b"Transfer-Encoding: identity\r\n"])
def test_without_length_and_chunks_the_end_of_the_connection_is_the_end(fields: bytes) -> None:
    reader, body = read(OK + fields + b"\r\nhel", b"lo")
    assert (body, reader.complete, reader.framed) == (b"hello", False, False)
    reader.end_of_connection()
    assert (reader.complete, reader.reusable, reader.length) == (True, False, None)


@pytest.mark.parametrize("start", [OK + b"Content-Length: 5\r\n\r\nhel", CHUNKED + b"3\r\nhel\r\n", OK, b"HTT"])
def test_elsewhere_the_end_of_the_connection_ends_nothing(start: bytes) -> None:
    reader, _ = read(start)
    reader.end_of_connection()
    assert (reader.complete, reader.framed) == (False, True)


@pytest.mark.parametrize(
    "surplus", [b"X", b"HTT", OK + b"Content-Length: 2\r\n\r\nyo", OK + b"\r\nforever", b"\0", b"5\r\nhello\r\n"]
)
@pytest.mark.parametrize("response", [OK + b"Content-Length: 2\r\n\r\nhi", CHUNKED + b"2\r\nhi\r\n0\r\n\r\n"])
def test_bytes_behind_a_response_never_reach_the_body_and_end_the_connection(response: bytes, surplus: bytes) -> None:
    reader, body = read(response + surplus)
    assert (reader.complete, reader.broken, body, reader.reusable) == (True, "", b"hi", False)
    assert reader.status == 200
    assert len(reader.headers) == 1


def test_surplus_behind_an_announced_close_is_no_error() -> None:
    reader, body = read(OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhiX")
    assert (reader.complete, body) == (True, b"hi")


@pytest.mark.parametrize(
    "response",
    [
        OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
        OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        OK + b"Content-Length: +5\r\n\r\n",
        OK + b"Content-Length: 5, 5\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: xchunked\r\n\r\n",
        OK + b"X-A : b\r\n\r\n",
        OK + b"X-A: a\r\n folded\r\n\r\n",
        OK + b"X-A: a\0b\r\n\r\n",
        OK.replace(b"\r\n", b"\n"),
        b"HTTP/1.1 101 Switching Protocols\r\n\r\nraw",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\nraw",
        b"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 1000 High\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"2\r\nhiX",
    ],
)
def test_what_two_readers_could_read_differently_is_broken(response: bytes) -> None:
    for reads in ([response], single_bytes(response)):
        reader, _ = read(*reads)
        assert reader.broken
        assert not reader.complete


def test_what_came_before_the_break_is_handed_on() -> None:
    reader, body = read(CHUNKED + b"2\r\nhi\r\nzz\r\n")
    assert (body, bool(reader.broken)) == (b"hi", True)


def test_a_large_head_is_accepted_up_to_the_limit() -> None:
    start, end = OK + b"X-Large: ", b"\r\nContent-Length: 2\r\n\r\n"
    filling = b"a" * (HEAD_LIMIT_BYTES - len(start) - len(end))
    reader, body = read(start + filling + end + b"hi")
    assert (reader.complete, body) == (True, b"hi")
    reader, _ = read(start + filling + b"a" + end + b"hi")
    assert "larger than" in reader.broken


def test_a_body_in_the_read_of_the_head_does_not_count_as_head() -> None:
    reader, body = read(CHUNKED + b"30000\r\n" + b"x" * 0x30000 + b"\r\n0\r\n\r\n")
    assert (reader.complete, len(body)) == (True, 0x30000)


def test_endless_early_responses_are_a_head_that_is_too_large() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    reader, _ = read(*[early] * (HEAD_LIMIT_BYTES // len(early) + 1))
    assert "larger than" in reader.broken


def test_a_read_reader_is_freed_without_the_garbage_collector() -> None:
    reader, _ = read(OK + b"Content-Length: 2\r\n\r\nhi")
    gone = weakref.finalize(_Canary.planted_in(reader), lambda: None)
    gc.disable()
    try:
        reader.release()
        del reader
        assert not gone.alive
    finally:
        gc.enable()


class _Canary:
    """Something that can be watched, in a place that only the reader refers to."""

    @classmethod
    def planted_in(cls, reader: ResponseReader) -> _Canary:
        canary = cls()
        reader.headers.append((b"canary", canary))  # type: ignore[arg-type]
        return canary

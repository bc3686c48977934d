"""Targets: bytes of connections, on the side of the clients and on that of the backends, and fields of heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final

from classifiers.api import CallClass, Features
from classifiers.chain import Chain
from classifiers.hints import affinity_key
from classifiers.structured import read_dictionary
from router.access.cors import Cors
from router.access.forwarding import FORWARDED, Forwarding
from router.heads import content_codings, hints, request_codings, to_backend, to_client
from router.wire.api import UpstreamRequest
from router.wire.chunked_reader import ChunkedReader
from router.wire.exchange import RawHeaders
from router.wire.request_head import request_head
from router.wire.request_reader import FIELDS_LIMIT, RequestReader
from router.wire.response_reader import ResponseReader
from tests.fuzz.pieces import Source, cut

LINE_LIMIT_BYTES: Final = 64 * 1024
_PEERS: Final = ("127.0.0.1", "192.0.2.7", "::1", "fe80::1%eth0", "")
_PAGE: Final = "http://localhost:5173"
_CHAIN: Final = Chain(header_names=("x-kind",))

Request = tuple[str, bool, bool, str, list[tuple[bytes, bytes]], bytes]


def read_requests(pieces: Sequence[bytes], max_header_bytes: int = LINE_LIMIT_BYTES) -> tuple[list[Request], bool]:
    """The requests that are complete in a connection's bytes, and whether the bytes behind them were refused."""
    found: list[Request] = []
    reader = RequestReader(max_header_bytes=max_header_bytes)
    for piece in pieces:
        rest = piece
        while rest:
            left = reader.feed(rest)
            assert rest.endswith(left)
            rest = left
            if reader.refusal is not None:
                assert reader.refusal.status >= HTTPStatus.BAD_REQUEST
                assert reader.refusal.answer().endswith(b"}")
                return found, True
            if reader.complete:
                head = (reader.method, reader.http10, reader.keep_alive, reader.target, reader.headers)
                body = reader.take_body()
                assert reader.body_bytes == len(body)
                assert reader.length in (None, len(body))
                found.append((*head, body))
                reader.release()
                reader = RequestReader(max_header_bytes=max_header_bytes)
            else:
                assert not rest
    return found, False


def check_requests(stream: bytes, sizes: Sequence[int]) -> None:
    """However a connection's bytes are cut, they are the same requests, or refused after the same ones."""
    at_once, refused = read_requests([stream])
    assert (at_once, refused) == read_requests(list(cut(stream, sizes)))
    read_requests(list(cut(stream, sizes)), max_header_bytes=20)


def check_chunks(stream: bytes, sizes: Sequence[int]) -> None:
    """However a chunked body is cut, it is the same, and ends at the same byte."""
    assert _read_chunks([stream]) == _read_chunks(list(cut(stream, sizes)))


def _read_chunks(pieces: Sequence[bytes]) -> tuple[bytes, bytes, bool, bool]:
    body: list[bytes] = []
    reader = ChunkedReader(body)
    for number, piece in enumerate(pieces):
        rest = reader.feed(piece)
        if reader.broken:
            return b"".join(body), b"", False, True
        if reader.complete:
            return b"".join(body), rest + b"".join(pieces[number + 1 :]), True, False
        assert not rest
    return b"".join(body), b"", False, False


def check_response(stream: bytes, sizes: Sequence[int], *, to_head_request: bool = False) -> None:
    """However a backend's bytes are cut, they are the same response, or as broken."""
    at_once = read_response([stream], to_head_request)
    in_parts = read_response(list(cut(stream, sizes)), to_head_request)
    *seen, reusable = at_once
    *seen_in_parts, reusable_in_parts = in_parts
    assert seen == seen_in_parts
    # Empty lines behind a response are swallowed with it, or are surplus where they come in a piece of their own.
    assert reusable or not reusable_in_parts


def read_response(pieces: Sequence[bytes], to_head_request: bool) -> tuple[object, ...]:
    reader = ResponseReader(to_head_request=to_head_request)
    body = b""
    surplus = False
    for piece in pieces:
        if reader.complete or reader.broken:
            surplus = True
            break
        body += reader.feed(piece)
    if not (reader.complete or reader.broken):
        reader.end_of_connection()
    assert not (reader.complete and reader.broken)
    if not reader.head_done:
        return (body, reader.complete, bool(reader.broken), False)
    assert reader.status >= HTTPStatus.OK
    if reader.complete and reader.length is not None and not to_head_request:
        assert len(body) == reader.length
    # What comes behind a response in a piece of its own is for the connection to notice.
    reusable = reader.complete and reader.reusable and not surplus
    head = (reader.status, reader.reason, reader.headers, reader.length, reader.chunked, reader.framed)
    return (*head, body, reader.complete, bool(reader.broken), reusable)


class _Asked:
    """As much of an exchange as CORS looks at."""

    path = query = ""
    peer = ""
    started = gone = tls = False
    stalls = 0
    straight: Callable[[bytes], None] | None = None

    def __init__(self, method: str, headers: RawHeaders) -> None:
        self.method = method
        self.raw_headers = headers

    def header(self, name: str) -> str | None:
        found = [value for own, value in self.raw_headers if own.lower() == name.encode()]
        return found[-1].decode("latin-1") if found else None

    async def body(self, limit_bytes: int) -> bytes:
        raise AssertionError("nothing is read")

    def start(self, status: int, reason: bytes, headers: RawHeaders, *, length: int | None) -> None:
        raise AssertionError("nothing is answered")

    def write(self, data: bytes) -> bool:
        raise AssertionError("nothing is answered")

    async def drained(self) -> None:
        raise AssertionError("nothing is answered")

    def finish(self) -> None:
        raise AssertionError("nothing is answered")

    def abort(self) -> None:
        raise AssertionError("nothing is answered")


def check_fields(method: str, target: str, fields: RawHeaders) -> None:
    """Whatever fields a request has that was accepted: they are understood or not, and no backend sees more of them."""
    seen = hints(fields)
    assert all(name == name.lower() for name in seen)
    features = Features(surface="openai_chat", headers=seen)
    assert _CHAIN.classify(features).call_class in CallClass
    for hint in _CHAIN.ignored(features):
        assert len(hint.value) <= 64
    _CHAIN.explain(features)
    assert len(affinity_key(features, ("x-mine",))) <= 64
    assert all(request_codings(fields))
    assert all(content_codings(seen.get("content-encoding")))
    for value in seen.values():
        read_dictionary(value)
    _check_cors(method, fields)
    for trusted in (("127.0.0.0/8", "::/0", "unix"), ()):
        forwarding = Forwarding(trusted)
        for peer in _PEERS:
            told = forwarding.fields(fields, peer, tls=False)
            assert {name.lower() for name, _ in told} <= FORWARDED
            _check_sent_head(target, to_backend(fields, api_key="k", request_id="r", forwarded=told))
    to_client(fields, [(b"Server-Timing", b"a")], stream=True)


def _check_cors(method: str, fields: RawHeaders) -> None:
    for cors in (Cors([_PAGE]), Cors(["*"])):
        asked = _Asked(method, fields)
        for name, value in [*cors.headers(asked.header("origin")), *(cors.preflight(asked) or ())]:
            assert b"\n" not in name + value


def _check_sent_head(target: str, fields: RawHeaders) -> None:
    """What a backend gets is one request, with these fields and no others."""
    sent = request_head(UpstreamRequest(method="POST", target=target, headers=fields, body=b"{}"), b"b:1") + b"{}"
    if len(fields) > FIELDS_LIMIT - 3:
        return
    (request,), refused = read_requests([sent], max_header_bytes=4 * LINE_LIMIT_BYTES)
    assert not refused
    assert request[3] == target
    assert request[4] == [(b"Host", b"b:1"), *_without_framing(fields), (b"Content-Length", b"2")]
    assert request[5] == b"{}"


def _without_framing(fields: RawHeaders) -> list[tuple[bytes, bytes]]:
    ours = (b"host", b"connection", b"content-length", b"transfer-encoding")
    return [(name, value.strip(b" \t")) for name, value in fields if name.lower() not in ours]


def fuzz_requests(data: bytes) -> None:
    source = Source(data)
    sizes = source.sizes()
    check_requests(source.rest(), sizes)


def fuzz_chunks(data: bytes) -> None:
    source = Source(data)
    sizes = source.sizes()
    check_chunks(source.rest(), sizes)


def fuzz_responses(data: bytes) -> None:
    source = Source(data)
    to_head_request = source.one_of([False, True])
    sizes = source.sizes()
    check_response(source.rest(), sizes, to_head_request=to_head_request)


def fuzz_fields(data: bytes) -> None:
    """Only heads that the reader lets in get this far."""
    for method in (b"GET", b"OPTIONS"):
        requests, _ = read_requests([b"%b /v1/models HTTP/1.1\r\nHost: r\r\n%b\r\n\r\n" % (method, data)])
        for name, _, _, target, fields, _ in requests:
            check_fields(name, target, fields)

"""Bytes in, one request out: limits, strictness, and the same requests however the bytes were cut."""

from __future__ import annotations

import time
import tracemalloc

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.wire.request_reader import FIELDS_LIMIT, HEAD_LIMIT_BYTES, RequestReader

HOST = b"Host: a\r\n"
LINE_LIMIT_BYTES = 1000


def read(*pieces: bytes) -> tuple[RequestReader, bytes]:
    """Feed until the request is complete or refused; gives back what came behind it."""
    reader = RequestReader(max_header_bytes=LINE_LIMIT_BYTES)
    for number, piece in enumerate(pieces):
        rest = reader.feed(piece)
        if reader.complete or reader.refusal is not None:
            return reader, rest + b"".join(pieces[number + 1 :])
    return reader, b""


def post(*fields: bytes, body: bytes = b"") -> bytes:
    return b"POST /p HTTP/1.1\r\nHost: a\r\n%b\r\n%b" % (b"".join(field + b"\r\n" for field in fields), body)


def chunked(body: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked", body=body)


def test_a_request_is_told_as_it_stood_on_the_wire() -> None:
    fields = b"Host: h:1\r\nX-a: 1\r\nx-A: \t two \t\r\nX-Utf: \xc5\xbc\r\nContent-Length: 3\r\n"
    head = b"POST /a%2Fb?q=%20 HTTP/1.1\r\n" + fields + b"\r\n"
    reader, rest = read(head + b"abcGET")
    assert (reader.method, reader.target, reader.length, reader.keep_alive) == ("POST", "/a%2Fb?q=%20", 3, True)
    assert reader.headers == [
        (b"Host", b"h:1"),
        (b"X-a", b"1"),
        (b"x-A", b"two"),
        (b"X-Utf", b"\xc5\xbc"),
        (b"Content-Length", b"3"),
    ]
    assert reader.header("x-a") == "two"
    assert reader.header("x-b") is None
    assert reader.take_body() == b"abc"
    assert rest == b"GET"


def test_a_body_that_came_in_one_piece_is_not_copied() -> None:
    body = b"x" * 5000
    reader, _ = read(post(b"Content-Length: 5000"), body)
    assert reader.take_body() is body


@pytest.mark.parametrize(
    ("body", "content", "behind"),
    [
        (b"0\r\n\r\n", b"", b""),
        (b"3\r\nabc\r\n0\r\n\r\nGET /", b"abc", b"GET /"),
        (b"3;name=value\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\nGET", b"abc0123456789", b"GET"),
        (b"4\r\n\r\n\r\n\r\n0\r\n\r\n\r\nGET", b"\r\n\r\n", b"\r\nGET"),
        (b"8\r\n0\r\n\r\nGET\r\n0\r\n\r\n", b"0\r\n\r\nGET", b""),
    ],
)
def test_a_chunked_body_is_unwrapped_and_ends_where_it_ends(body: bytes, content: bytes, behind: bytes) -> None:
    reader, rest = read(chunked(body))
    assert reader.complete
    assert (reader.take_body(), reader.body_bytes, rest) == (content, len(content), behind)
    assert reader.length is None


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True),
    ],
)
def test_the_client_says_whether_it_wants_to_go_on(head: bytes, keeps: bool) -> None:
    reader, _ = read(head)
    assert reader.complete
    assert reader.keep_alive is keeps


@pytest.mark.parametrize(
    "request_bytes",
    [
        post(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"Content-Length: 3", body=b"abc"),
        post(
            b"Connection: Upgrade", b"Upgrade: websocket", b"Transfer-Encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n"
        ),
    ],
)
def test_an_upgrade_is_ignored_and_the_body_is_read_all_the_same(request_bytes: bytes) -> None:
    reader, rest = read(request_bytes + b"GET /2")
    assert reader.complete
    assert (reader.take_body(), rest) == (b"abc", b"GET /2")


@pytest.mark.parametrize(
    ("method", "target", "host"),
    [
        (b"OPTIONS", b"*", b"a"),
        (b"GET", b"/a@b", b""),
        (b"GET", b"http://a/u@b", b"[::1]:80"),
        (b"GET", b"http://a?u@b", b"a.b-c_d:1"),
    ],
)
def test_targets_and_hosts_of_every_form_are_taken(method: bytes, target: bytes, host: bytes) -> None:
    reader, _ = read(b"%b %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (method, target, host))
    assert reader.complete
    assert reader.target == target.decode()


def test_empty_lines_before_a_request_mean_nothing() -> None:
    reader, _ = read(b"\r", b"\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert reader.complete


MALFORMED = {
    "length_and_coding": (post(b"Content-Length: 3", b"Transfer-Encoding: chunked"), 400),
    "coding_and_length": (post(b"Transfer-Encoding: chunked", b"Content-Length: 3"), 400),
    "two_lengths": (post(b"Content-Length: 3", b"Content-Length: 4"), 400),
    "the_same_length_twice": (post(b"Content-Length: 3", b"Content-Length: 3"), 400),
    "list_of_lengths": (post(b"Content-Length: 3, 3"), 400),
    "signed_length": (post(b"Content-Length: +3"), 400),
    "negative_length": (post(b"Content-Length: -3"), 400),
    "empty_length": (post(b"Content-Length:"), 400),
    "hexadecimal_length": (post(b"Content-Length: 0x3"), 400),
    "length_beyond_64_bits": (post(b"Content-Length: 99999999999999999999999"), 400),
    "unknown_coding": (post(b"Transfer-Encoding: gzip"), 501),
    "coding_before_chunked": (post(b"Transfer-Encoding: gzip, chunked"), 501),
    "coding_in_a_field_before": (post(b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked"), 501),
    "coding_after_chunked": (post(b"Transfer-Encoding: chunked, gzip"), 400),
    "almost_chunked": (post(b"Transfer-Encoding: xchunked"), 501),
    "chunked_behind_a_vertical_tab": (post(b"Transfer-Encoding: \x0bchunked"), 400),
    "chunked_twice": (post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"), 400),
    "identity": (post(b"Transfer-Encoding: identity"), 501),
    "empty_coding": (post(b"Transfer-Encoding:"), 400),
    "coding_in_http_1_0": (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    "folded_field": (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400),
    "folded_first_field": (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
    "bare_lf": (b"GET / HTTP/1.1\nHost: a\n\n", 400),
    "bare_lf_in_fields": (b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400),
    "bare_lf_at_the_end": (b"GET / HTTP/1.1\r\nHost: a\r\n\n", 400),
    "bare_cr": (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400),
    "space_before_colon": (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    "nul_in_value": (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 400),
    "nul_in_name": (b"GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n", 400),
    "control_in_value": (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x01\r\n\r\n", 400),
    "nameless_field": (b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400),
    "no_colon": (b"GET / HTTP/1.1\r\nHost: a\r\nfoo\r\n\r\n", 400),
    "no_host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two_hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nhOST: a\r\n\r\n", 400),
    "two_hosts_in_http_1_0": (b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400),
    "unknown_method": (b"FOO / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "method_in_small_letters": (b"get / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "space_in_target": (b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "tab_in_target": (b"GET /\ta HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "nul_in_target": (b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "high_byte_in_target": (b"GET /\xe9 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "relative_target": (b"GET foo HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "asterisk_with_get": (b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "more_than_an_asterisk": (b"OPTIONS *x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "user_in_target": (b"GET http://me:secret@a?x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "host_with_blank": (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
    "host_with_path": (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
    "host_with_user": (b"GET / HTTP/1.1\r\nHost: me@a\r\n\r\n", 400),
    "trace": (b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    "connect": (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    "http_0_9": (b"GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505),
    "http_1_2": (b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505),
    "http_2_0": (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    "http_3_0": (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
    "preface_of_http_2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "no_protocol": (b"GET / HTTQ/1.1\r\nHost: a\r\n\r\n", 400),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "long_field": (b"GET / HTTP/1.1\r\nHost: a\r\nX: %b\r\n\r\n" % (b"x" * LINE_LIMIT_BYTES), 431),
    "long_field_without_end": (b"GET / HTTP/1.1\r\nHost: a\r\nX: %b" % (b"x" * LINE_LIMIT_BYTES), 431),
    "long_target": (b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n" % (b"x" * LINE_LIMIT_BYTES), 414),
    "long_target_without_end": (b"GET /%b" % (b"x" * LINE_LIMIT_BYTES), 431),
    "many_fields": (b"GET / HTTP/1.1\r\nHost: a\r\n%b\r\n" % (b"X: a\r\n" * FIELDS_LIMIT), 431),
    "many_fields_without_end": (b"GET / HTTP/1.1\r\nHost: a\r\n%b" % (b"X: a\r\n" * (FIELDS_LIMIT + 1)), 431),
    "large_head": (b"GET / HTTP/1.1\r\n%b" % (b"X: %b\r\n" % (b"y" * 900) * 300), 431),
    "chunk_size_negative": (chunked(b"-3\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk_size_with_0x": (chunked(b"0x3\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk_size_with_blank": (chunked(b"3 \r\nabc\r\n0\r\n\r\n"), 400),
    "chunk_size_beyond_64_bits": (chunked(b"f" * 20 + b"\r\nabc\r\n"), 400),
    "chunk_size_with_bare_lf": (chunked(b"3\nabc\n0\n\n"), 400),
    "chunk_longer_than_its_size": (chunked(b"3\r\nabcde\r\n0\r\n\r\n"), 400),
    "chunk_extension_with_bare_lf": (chunked(b"3;a\nb\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk_extension_without_end": (chunked(b"3;" + b"a" * 70_000), 400),
    "length_in_trailer": (chunked(b"0\r\nContent-Length: 5\r\n\r\n"), 400),
    "coding_in_trailer": (chunked(b"0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400),
    "trailers_without_end": (chunked(b"0\r\n" + b"X: y\r\n" * 20_000), 400),
}


@pytest.mark.parametrize(("request_bytes", "status"), MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("piece_bytes", [1, 7, 1_000_000])
def test_what_could_be_read_in_two_ways_is_refused(request_bytes: bytes, status: int, piece_bytes: int) -> None:
    reader, _ = read(*(request_bytes[at : at + piece_bytes] for at in range(0, len(request_bytes), piece_bytes)))
    assert reader.refusal is not None
    long = (414, 431)  # which line it is may not be known before its end
    assert reader.refusal.status == status or (reader.refusal.status in long and status in long)
    assert not reader.complete or reader.head_done


def test_a_refusal_is_an_answer_that_ends_the_connection() -> None:
    reader, _ = read(MALFORMED["no_host"][0])
    assert reader.refusal is not None
    head, _, body = reader.refusal.answer().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\nConnection: close" in head
    assert b"\r\nContent-Length: %d" % len(body) in head
    assert orjson.loads(body) == {
        "error": {
            "message": "HTTP/1.1 requires a Host field",
            "type": "invalid_request_error",
            "param": None,
            "code": "malformed_request",
        }
    }


# --- any cut, any bytes

TOKEN = st.text("abcXYZ-_", min_size=1, max_size=8).map(str.encode)
VALUE = st.binary(max_size=20).map(lambda raw: bytes(byte for byte in raw if byte >= 0x20 and byte != 0x7F).strip())
BODY = st.one_of(st.binary(max_size=60), st.lists(st.sampled_from([b"\r\n", b"0", b"\r\n\r\n", b"a"])).map(b"".join))


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]:
    """Bytes of a request, and its target, own fields and body."""
    target = b"/" + draw(TOKEN)
    fields = [(b"X-" + name, value) for name, value in draw(st.lists(st.tuples(TOKEN, VALUE), max_size=4))]
    body = draw(BODY)
    if draw(st.booleans()):
        framing = b"Transfer-Encoding: chunked\r\n"
        size = draw(st.integers(1, 30))
        parts = [body[at : at + size] for at in range(0, len(body), size)]
        sent = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    else:
        framing = b"Content-Length: %d\r\n" % len(body)
        sent = body
    lines = b"".join(b"%b: %b\r\n" % field for field in fields)
    return b"POST %b HTTP/1.1\r\nHost: a\r\n%b%b\r\n%b" % (target, lines, framing, sent), target, fields, body


@given(st.lists(requests(), min_size=1, max_size=4), st.data())
@settings(deadline=None, max_examples=150)
def test_pipelined_requests_are_the_same_however_they_are_cut(
    wanted: list[tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]], data: st.DataObject
) -> None:
    stream = b"".join(request[0] for request in wanted)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(stream) - 1)), max_size=20)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True) if start < end]
    seen = []
    reader = RequestReader(max_header_bytes=LINE_LIMIT_BYTES)
    for piece in pieces:
        rest = piece
        while rest:
            rest = reader.feed(rest)
            assert reader.refusal is None
            if reader.complete:
                fields = [field for field in reader.headers if field[0].startswith(b"X-")]
                seen.append((reader.target.encode(), fields, reader.take_body()))
                reader = RequestReader(max_header_bytes=LINE_LIMIT_BYTES)
    assert seen == [request[1:] for request in wanted]


@given(st.lists(st.one_of(st.binary(min_size=1), st.sampled_from([b"\r\n", b"\r\n\r\n", b"GET / HTTP/1.1\r\n", HOST]))))
@settings(deadline=None, max_examples=300)
def test_garbage_is_refused_and_never_raises(pieces: list[bytes]) -> None:
    read(*pieces)


@given(st.lists(st.one_of(st.binary(min_size=1), st.sampled_from([b"\r\n", b"0\r\n", b"3\r\nabc\r\n", b"5;a=b\r\n"]))))
@settings(deadline=None, max_examples=300)
def test_garbage_in_chunks_is_refused_and_never_raises(pieces: list[bytes]) -> None:
    read(chunked(b""), *pieces)


@pytest.mark.parametrize("piece", [b"\r\n\r\n", b"a" * 4], ids=["empty_lines", "letters"])
def test_the_time_for_a_chunked_body_grows_with_its_size(piece: bytes) -> None:
    def seconds(size_bytes: int) -> float:
        body = piece * (size_bytes // len(piece))
        request = chunked(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        began_s = time.perf_counter()
        reader, _ = read(request)
        assert reader.complete
        return time.perf_counter() - began_s

    small_s = min(seconds(100_000) for _ in range(5))
    assert min(seconds(800_000) for _ in range(3)) < small_s * 8 * 4 + 0.01


def test_many_small_chunks_are_held_as_few_pieces() -> None:
    reader = RequestReader(max_header_bytes=LINE_LIMIT_BYTES)
    reader.feed(chunked(b""))
    tracemalloc.start()
    try:
        for _ in range(20):
            reader.feed(b"1\r\na\r\n" * 10_000)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reader.body_bytes == 200_000
    assert held_bytes < 400_000


def test_a_head_that_drips_costs_no_more_than_its_limits() -> None:
    reader = RequestReader(max_header_bytes=HEAD_LIMIT_BYTES)
    began_s = time.process_time()
    reader.feed(b"GET / HTTP/1.1\r\nX: ")
    fed = 0
    while reader.refusal is None:
        reader.feed(b"y" * 64)
        fed += 64
    assert fed <= HEAD_LIMIT_BYTES
    assert time.process_time() - began_s < 5.0

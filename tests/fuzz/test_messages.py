"""Connections: requests of clients, responses of backends, fields of heads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.structured import LONGEST_CHARS, read_dictionary
from router.wire.chunked_reader import BETWEEN_LIMIT_BYTES, ChunkedReader
from router.wire.request_reader import HEAD_LIMIT_BYTES, RequestReader
from router.wire.response_reader import ResponseReader
from tests.fuzz.budget import fuzzed
from tests.fuzz.cost import is_linear, peak_bytes
from tests.fuzz.messages import (
    check_chunks,
    check_fields,
    check_requests,
    check_response,
    fuzz_fields,
    read_requests,
    read_response,
)
from tests.fuzz.pieces import SIZES, cut, mutated
from tests.fuzz.seeds import CHUNKS, FIELD_FRAGMENTS, FIELDS, REQUESTS, RESPONSES, WIRE_FRAGMENTS

KIB: Final = 2**10


def nearly(seeds: list[bytes]) -> st.SearchStrategy[bytes]:
    several = st.lists(mutated(seeds, WIRE_FRAGMENTS), min_size=1, max_size=3).map(b"".join)
    return several | st.lists(st.sampled_from(WIRE_FRAGMENTS) | st.binary(max_size=8)).map(b"".join)


@fuzzed(250)
@given(nearly(REQUESTS), SIZES)
def test_requests_do_not_depend_on_cuts(stream: bytes, sizes: list[int]) -> None:
    check_requests(stream, sizes)


@fuzzed(250)
@given(nearly(CHUNKS), SIZES)
def test_chunked_bodies_do_not_depend_on_cuts(stream: bytes, sizes: list[int]) -> None:
    check_chunks(stream, sizes)


@fuzzed(250)
@given(nearly(RESPONSES), SIZES, st.booleans())
def test_responses_do_not_depend_on_cuts(stream: bytes, sizes: list[int], to_head_request: bool) -> None:
    check_response(stream, sizes, to_head_request=to_head_request)


@fuzzed(300)
@given(mutated(FIELDS, FIELD_FRAGMENTS))
def test_fields_that_were_let_in_are_understood_or_ignored(fields: bytes) -> None:
    fuzz_fields(fields)


@fuzzed(100)
@given(st.lists(st.tuples(st.sampled_from([b"X-A", b"Priority", b"Connection", b"Origin"]), st.binary(max_size=12))))
def test_a_backend_gets_the_fields_of_one_request(fields: list[tuple[bytes, bytes]]) -> None:
    lines = b"".join(b"%b: %b\r\n" % field for field in fields)
    for method, _, _, target, accepted, _ in read_requests([b"GET /a HTTP/1.1\r\nHost: r\r\n%b\r\n" % lines])[0]:
        check_fields(method, target, accepted)


@fuzzed(200)
@given(st.lists(st.sampled_from([b"content-type", b"x-api-key", *FIELD_FRAGMENTS])).map(b"".join))
def test_a_browser_may_ask_for_anything(names: bytes) -> None:
    fuzz_fields(b"Origin: http://a\r\nAccess-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: a" + names)


@fuzzed(300)
@given(st.text('ui=?01,; ()"\\:@%.-aA*\t\x00é', max_size=60))
def test_a_dictionary_is_read_or_void(text: str) -> None:
    members = read_dictionary(text)
    assert members is None or all(members.values())


# --- cost

HEAD: Final = b"GET / HTTP/1.1\r\nHost: a\r\n"
STATUS: Final = b"HTTP/1.1 200 OK\r\n"
CHUNKED: Final = b"Transfer-Encoding: chunked\r\n\r\n"


def feed_request(data: bytes, sizes: list[int]) -> None:
    read_requests(list(cut(data, sizes)), max_header_bytes=256 * KIB)


@pytest.mark.parametrize("sizes", [[1], [3, 50], [10**9]], ids=["bytes", "pieces", "whole"])
@pytest.mark.parametrize(
    ("start", "unit"),
    [
        (b"", b"\r\n"),
        (b"", b"a"),
        (b"GET /", b"a"),
        (HEAD, b"A: b\r\n"),
        (HEAD + b"A: ", b"b"),
        (HEAD + b"A: ", b" "),
        (HEAD, b"Transfer-Encoding: chunked\r\n"),
        (b"", HEAD + b"\r\n"),
        (HEAD + CHUNKED, b"1\r\na\r\n"),
        (HEAD + CHUNKED, b"1;a=b\r\n\n\r\n"),
        (HEAD + CHUNKED, b"4\r\n\r\n\r\n\r\n"),
        (HEAD + CHUNKED + b"1;", b"a"),
        (HEAD + CHUNKED + b"0\r\n", b"A: b\r\n"),
        (HEAD + b"Content-Length: 99999999\r\n\r\n", b"a"),
    ],
)
def test_requests_are_read_in_linear_time(start: bytes, unit: bytes, sizes: list[int]) -> None:
    def work(data: bytes) -> None:
        feed_request(data, sizes)

    assert is_linear(lambda size: start + unit * (size // len(unit)), work, largest_bytes=2**17)


@pytest.mark.parametrize("sizes", [[1], [3, 50], [10**9]], ids=["bytes", "pieces", "whole"])
@pytest.mark.parametrize(
    ("start", "unit"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (STATUS, b"A: b\r\n"),
        (STATUS, b"Transfer-Encoding: a\r\n"),
        (STATUS + b"A: ", b"b"),
        (b"HTTP/1.1 200 ", b"a"),
        (STATUS + CHUNKED, b"1\r\na\r\n"),
        (STATUS + CHUNKED + b"1;", b"a"),
        (STATUS + CHUNKED + b"0\r\n", b"A: b\r\n"),
        (STATUS + b"\r\n", b"a"),
        (b"", STATUS + b"Content-Length: 1\r\n\r\na"),
    ],
)
def test_responses_are_read_in_linear_time(start: bytes, unit: bytes, sizes: list[int]) -> None:
    def work(data: bytes) -> None:
        reader = ResponseReader()
        for piece in cut(data, sizes):
            if reader.complete or reader.broken:
                return
            reader.feed(piece)

    assert is_linear(lambda size: start + unit * (size // len(unit)), work, largest_bytes=2**17)


@pytest.mark.parametrize("start", [b"GET /", HEAD + b"A: ", HEAD, b""])
@pytest.mark.parametrize("unit", [b"a", b"A: b\r\n", b"\r\n", b"A: %b\r\n" % (b"b" * 200)])
def test_an_endless_head_of_a_request_is_held_up_to_its_limit(start: bytes, unit: bytes) -> None:
    def feed() -> None:
        reader = RequestReader(max_header_bytes=64 * KIB)
        reader.feed(start + unit)
        for _ in range(200):
            if reader.refusal is not None or reader.complete:
                return
            reader.feed(unit * (8 * KIB // len(unit)))
        assert not reader.begun

    assert peak_bytes(feed) < 20 * HEAD_LIMIT_BYTES


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 ", STATUS, STATUS + b"A: ", b""])
@pytest.mark.parametrize("unit", [b"a", b"A: b\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_an_endless_head_of_a_response_is_held_up_to_its_limit(start: bytes, unit: bytes) -> None:
    def feed() -> None:
        reader = ResponseReader()
        reader.feed(start + unit)
        for _ in range(200):
            if reader.broken or reader.head_done:
                return
            reader.feed(unit * (8 * KIB // len(unit)))
        raise AssertionError("endless")

    assert peak_bytes(feed) < 20 * 64 * KIB


@pytest.mark.parametrize("unit", [b"a", b"A: b\r\n", b";a=b", b'"'])
def test_endless_extensions_and_trailers_are_held_up_to_their_limit(unit: bytes) -> None:
    def feed(start: bytes) -> Callable[[], None]:
        def work() -> None:
            reader = ChunkedReader([])
            reader.feed(start)
            for _ in range(100):
                if not reader.broken:
                    reader.feed(unit * (8 * KIB // len(unit)))
            assert reader.broken

        return work

    for start in (b"5;a=", b"0\r\nA: ", b"0\r\n"):
        assert peak_bytes(feed(start)) < 10 * BETWEEN_LIMIT_BYTES


@pytest.mark.parametrize(
    "unit", ["(", "( ", "a ", ";a", '"', "a=(a ", ", ", "a=1;a=1 ", "a=1,", "a;a;a,", "a=(1 1),", "\\"]
)
@pytest.mark.parametrize("start", ["", "a=(", 'a="', "a;", "a=1.", "a=%"])
def test_a_dictionary_takes_no_longer_for_being_hostile(start: str, unit: str) -> None:
    def make(size: int) -> bytes:
        return (start + unit * size)[: min(size, LONGEST_CHARS)].encode()

    assert is_linear(make, lambda data: [read_dictionary(data.decode()) for _ in range(20)], largest_bytes=4 * KIB)


FIELD_UNITS: Final = [b",", b", ", b"a,", b" ", b";", b"a", b"gzip,", b"1.1.1.1, ", b'"', b"u=1,", b"\xff"]


@pytest.mark.parametrize("unit", FIELD_UNITS)
@pytest.mark.parametrize(
    "name",
    [
        b"Connection",
        b"Priority",
        b"X-Forwarded-For",
        b"Content-Encoding",
        b"X-Session-Id",
        b"X-Twolane-Class",
        b"Access-Control-Request-Headers",
        b"Origin",
        b"X-Twolane-Slo-Ttft-Ms",
        b"Cache-Control",
    ],
)
def test_a_field_of_any_length_is_read_in_linear_time(name: bytes, unit: bytes) -> None:
    def make(size: int) -> bytes:
        return unit * (size // len(unit))

    def work(data: bytes) -> None:
        asked = [(b"Origin", b"http://a"), (b"Access-Control-Request-Method", b"POST"), (name, data)]
        check_fields("OPTIONS", "/", asked)

    assert is_linear(make, work, largest_bytes=2**16)


def test_a_response_is_read_as_its_seeds_say() -> None:
    """The targets would find nothing in seeds that are all refused."""
    complete = [read_response([data], False)[-3:-1] for data in RESPONSES]
    assert complete.count((True, False)) >= 5
    assert sum(len(read_requests([data])[0]) for data in REQUESTS) >= 7

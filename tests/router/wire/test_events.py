"""Streams cut into events: the rules of the formats, and that no way of cutting the bytes matters."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.wire.events import Event, EventReader, NdjsonReader, SseReader, ndjson_reader, sse_reader

CHUNK = b'{"choices":[{"index":0,"delta":{"content":" hi"}}]}'


def read(reader: EventReader, pieces: Iterable[bytes]) -> list[Event]:
    events: list[Event] = []
    for piece in pieces:
        events += reader.feed(piece)
    events += reader.close()
    return events


def sse(*pieces: bytes) -> list[Event]:
    return read(sse_reader(), pieces)


def ndjson(*pieces: bytes) -> list[Event]:
    return read(ndjson_reader(), pieces)


def single_bytes(stream: bytes) -> list[bytes]:
    return [stream[i : i + 1] for i in range(len(stream))]


def cut(stream: bytes, places: Sequence[int]) -> list[bytes]:
    borders = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in pairwise(borders)]


def sse_by_the_book(stream: bytes) -> list[Event]:
    """The rules of the standard, on a stream that is there as a whole."""
    events: list[Event] = []
    name, data = b"", b""
    *lines, _open = re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf"))
    for line in lines:
        if not line:
            if data:
                events.append((name.decode("utf-8", "replace"), data[:-1]))
            name, data = b"", b""
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data += value + b"\n"
        elif field == b"event":
            name = value
    return events


# --- server-sent events


def test_one_piece_with_one_event_is_that_event() -> None:
    assert sse(b"data: " + CHUNK + b"\n\n") == [("", CHUNK)]


def test_a_named_event_keeps_its_name() -> None:
    stream = b"event: message_stop\ndata: {}\n\n"
    assert sse(b": hello\n\n", stream) == [("message_stop", b"{}")]
    assert sse(*single_bytes(stream)) == [("message_stop", b"{}")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("space", [b" ", b""])
def test_every_line_end_and_the_space_after_the_colon_are_optional(end: bytes, space: bytes) -> None:
    stream = b"data:" + space + CHUNK + end + end + b"data:" + space + b"[DONE]" + end + end
    expected = [("", CHUNK), ("", b"[DONE]")]
    assert sse(stream) == expected
    assert sse(*single_bytes(stream)) == expected


def test_characters_that_straddle_pieces_arrive_whole() -> None:
    data = '{"delta":{"content":"渐😀é—"}}'.encode()
    assert sse(*single_bytes(b"data: " + data + b"\n\n")) == [("", data)]


def test_a_cr_at_the_end_of_one_piece_and_its_lf_in_the_next_are_one_line_end() -> None:
    assert sse(b"data: a\r", b"\ndata: b\r\n\r", b"\ndata: c\r\n\r\n") == [("", b"a\nb"), ("", b"c")]


def test_several_data_lines_are_joined_with_line_feeds() -> None:
    assert sse(b"data: a\ndata:\ndata: b\n\n") == [("", b"a\n\nb")]


def test_only_one_space_after_the_colon_is_dropped() -> None:
    assert sse(b"data:  a\n\n") == [("", b" a")]


def test_comments_are_no_events_and_interrupt_none() -> None:
    assert sse(b":\n\n", b": ping\n\n", b"data: a\n: ping\ndata: b\n\n") == [("", b"a\nb")]


def test_a_field_without_a_colon_has_an_empty_value() -> None:
    assert sse(b"data\n\n") == [("", b"")]
    assert sse(b"event: x\nevent\ndata: a\n\n") == [("", b"a")]


def test_an_event_without_data_is_none_and_its_name_does_not_linger() -> None:
    assert sse(b"event: ping\n\ndata: a\n\n") == [("", b"a")]


def test_id_retry_and_unknown_fields_say_nothing() -> None:
    assert sse(b"id: 7\nretry: 10\ndatax: no\n data: no\ndata: a\n\n") == [("", b"a")]


def test_a_byte_order_mark_is_dropped_at_the_start_alone() -> None:
    stream = b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n"
    assert sse(stream) == [("", b"a"), ("", b"c")]
    assert sse(*single_bytes(stream)) == [("", b"a"), ("", b"c")]


@pytest.mark.parametrize("tail", [b"data: b", b"data: b\n", b"d", b"event: x\n", b": half a comm"])
def test_a_last_event_without_its_blank_line_is_partial(tail: bytes) -> None:
    reader = sse_reader()
    assert read(reader, [b"data: a\n\n" + tail]) == [("", b"a")]
    assert reader.partial


@pytest.mark.parametrize("stream", [b"", b"data: a\n\n", b"data: a\r\r", b"data: a\n\n: ping\n", b"data: a\n\n\n"])
def test_a_stream_that_ends_between_events_is_not_partial(stream: bytes) -> None:
    reader = sse_reader()
    read(reader, [stream])
    assert not reader.partial


def test_partial_is_known_at_any_time() -> None:
    reader = sse_reader()
    known = []
    for piece in (b"data: a\n\n", b"data: b", b"\n\n"):
        reader.feed(piece)
        known.append(reader.partial)
    assert known == [False, True, False]


@pytest.mark.parametrize("pieces", [1, 7, 4096])
def test_an_event_over_the_limit_is_passed_over_and_reading_goes_on(pieces: int) -> None:
    stream = b"event: big\ndata: " + b"x" * 500 + b"\ndata: y\n\nevent: small\ndata: a\n\n"
    chunks = [stream[i : i + pieces] for i in range(0, len(stream), pieces)]
    assert read(SseReader(limit_bytes=100), chunks) == [("small", b"a")]


def test_many_short_data_lines_also_reach_the_limit() -> None:
    assert read(SseReader(limit_bytes=100), [b"data: 123456\n" * 20 + b"\n", b"data: a\n\n"]) == [("", b"a")]


def test_a_comment_over_the_limit_does_not_cost_the_event() -> None:
    stream = b"data: a\n:" + b"x" * 500 + b"\ndata: b\n\n"
    assert read(SseReader(limit_bytes=100), [stream]) == [("", b"a\nb")]
    assert read(SseReader(limit_bytes=100), single_bytes(stream)) == [("", b"a\nb")]


@pytest.mark.parametrize("start", [b"data: ", b": ", b"event: ", b"{"])
@pytest.mark.parametrize("kind", [SseReader, NdjsonReader])
def test_memory_stays_flat_however_long_an_event_is(kind: type[SseReader | NdjsonReader], start: bytes) -> None:
    reader = kind(limit_bytes=10_000)
    reader.feed(start)
    piece = b"x" * 1000
    tracemalloc.start()
    for _ in range(2000):
        reader.feed(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


FIELDS = (b"data: ", b"data:", b"data", b"event: ", b"event:", b"id: 1", b": ping", b"{}", b"[DONE]", b"x y")
BORDERS = (b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"data: {}\n\n", b"event: e\ndata: {}\n\n")
FRAGMENTS = st.sampled_from([*FIELDS, *BORDERS, "é😀".encode(), b"\xef\xbb\xbf", b"\xff"])
STREAMS = st.lists(FRAGMENTS, max_size=40).map(b"".join)
CUTS = st.lists(st.integers(0, 1000), max_size=12)


@given(STREAMS, CUTS)
def test_any_split_gives_what_the_standard_says(stream: bytes, cuts: list[int]) -> None:
    assert sse(*cut(stream, cuts)) == sse_by_the_book(stream)


@given(STREAMS, CUTS, st.integers(0, 30))
def test_any_split_gives_the_same_events_at_any_limit(stream: bytes, cuts: list[int], limit_bytes: int) -> None:
    whole, parts = SseReader(limit_bytes), SseReader(limit_bytes)
    assert read(whole, [stream]) == read(parts, cut(stream, cuts))
    assert whole.partial == parts.partial


# --- one JSON text per line


def test_lines_are_events_however_they_are_cut() -> None:
    pieces = [b'{"message":{"content', b'":"a"},"done":false}\n', b'{"a":1}\n{"b":2}\n', b'{"done":true}']
    assert [data for _, data in ndjson(*pieces)] == [
        b'{"message":{"content":"a"},"done":false}',
        b'{"a":1}',
        b'{"b":2}',
        b'{"done":true}',
    ]


def test_a_last_line_without_its_line_end_counts_at_close() -> None:
    reader = ndjson_reader()
    assert list(reader.feed(b'{"a":1}')) == []
    assert reader.partial
    assert list(reader.close()) == [("", b'{"a":1}')]


def test_blank_lines_are_no_events() -> None:
    assert ndjson(b'\n\r\n{"a":1}\n  \n') == [("", b'{"a":1}')]


def test_a_line_over_the_limit_is_passed_over_and_reading_goes_on() -> None:
    stream = b'{"a":"' + b"x" * 500 + b'"}\n{"b":1}\n'
    assert read(NdjsonReader(limit_bytes=100), [stream]) == [("", b'{"b":1}')]
    assert read(NdjsonReader(limit_bytes=100), single_bytes(stream)) == [("", b'{"b":1}')]


LINES = st.lists(st.sampled_from([b'{"a":1}', b"{}", b"\n", b"\r\n", b" ", b'{"b":"\xc3\xa9"}', b"{}\n"]), max_size=30)


@given(LINES.map(b"".join), CUTS, st.integers(0, 30))
def test_any_split_gives_the_same_lines_at_any_limit(stream: bytes, cuts: list[int], limit_bytes: int) -> None:
    expected = [("", line) for line in stream.split(b"\n") if line.strip() and len(line) <= limit_bytes]
    assert read(NdjsonReader(limit_bytes), cut(stream, cuts)) == expected

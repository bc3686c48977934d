"""Answers of backends: events, tokens, codings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.surfaces import SURFACES
from router.surfaces.api import Framing, Surface
from router.wire.coding import decoder
from router.wire.events import Event, EventReader, ndjson_reader, sse_reader
from tests.fuzz.budget import fuzzed
from tests.fuzz.cost import is_linear, peak_bytes
from tests.fuzz.pieces import SIZES, cut, documents, mutated
from tests.fuzz.seeds import CODED, CODED_FRAGMENTS, STREAM_FRAGMENTS, STREAMS
from tests.fuzz.streams import CODINGS, STREAMED, check_coding, check_events, check_tokens, check_watch, check_whole

KIB: Final = 2**10
NEARLY_STREAMS: Final = mutated(list(STREAMS.values()), STREAM_FRAGMENTS)
ANY_STREAM: Final = NEARLY_STREAMS | st.lists(st.sampled_from(STREAM_FRAGMENTS) | st.binary(max_size=8)).map(b"".join)
WORDS: Final = (
    "choices delta content text reasoning tool_calls function arguments name finish_reason usage prompt_tokens timings "
    "completion_tokens prompt_tokens_details cached_tokens error code type id message content_block input_tokens "
    "output_tokens response item done eval_count stop tokens_predicted cache_n prompt_n predicted_n thinking index"
)
VALUES: Final = [
    "content_block_delta",
    "message_start",
    "error",
    "response.completed",
    "x.delta",
    "server_error",
    [],
    {},
]
NAMES: Final = st.sampled_from(
    ["", "error", "message_start", "response.output_text.delta", "response.completed", "ping"]
)


def events_of(surface: Surface, stream: bytes) -> list[Event]:
    reader = sse_reader() if surface.framing is Framing.SSE else ndjson_reader()
    return [*reader.feed(stream), *reader.close()]


@fuzzed()
@given(st.sampled_from(list(Framing)), ANY_STREAM, SIZES, st.sampled_from([2**22, 0, 7, 60]))
def test_the_events_of_a_stream_do_not_depend_on_its_cuts(
    framing: Framing, stream: bytes, sizes: list[int], limit_bytes: int
) -> None:
    check_events(framing, stream, sizes, limit_bytes)


@pytest.mark.parametrize("surface", STREAMED, ids=lambda surface: surface.name)
@fuzzed(60)
@given(data=st.data(), run_lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_what_is_taken_in_at_once_is_what_would_have_been_taken_in_one_by_one(
    surface: Surface, data: st.DataObject, run_lengths: list[int]
) -> None:
    own = STREAMS.get(surface.name, STREAMS["openai_chat"])
    pool = [("", b"{}"), *events_of(surface, own), *events_of(surface, data.draw(mutated([own], STREAM_FRAGMENTS)))]
    check_tokens(surface, data.draw(st.lists(st.sampled_from(pool), max_size=25)), run_lengths)


@pytest.mark.parametrize("surface", STREAMED, ids=lambda surface: surface.name)
@fuzzed(60)
@given(st.lists(st.tuples(NAMES, documents(WORDS.split(), VALUES).map(lambda value: as_json(value))), max_size=5))
def test_no_json_whatever_makes_a_reader_of_tokens_raise(surface: Surface, events: list[Event]) -> None:
    check_tokens(surface, events, [1])
    for _, data in events:
        check_whole(surface, data)


def as_json(value: Any) -> bytes:
    """With what orjson would not write, a surrogate for one, left to be no JSON."""
    try:
        return orjson.dumps(value)
    except (orjson.JSONEncodeError, UnicodeEncodeError):
        return repr(value).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("surface", STREAMED, ids=lambda surface: surface.name)
@fuzzed(40)
@given(stream=ANY_STREAM, sizes=SIZES)
def test_no_answer_stops_the_looking(surface: Surface, stream: bytes, sizes: list[int]) -> None:
    check_watch(surface, STREAMS.get(surface.name, b"") + stream, sizes)
    check_whole(surface, stream)


@pytest.mark.parametrize("coding", CODINGS)
@fuzzed(60)
@given(data=mutated(CODED, CODED_FRAGMENTS), sizes=SIZES)
def test_a_body_of_any_coding_is_decoded_or_refused(coding: str, data: bytes, sizes: list[int]) -> None:
    check_coding(coding, data, sizes)
    check_watch(SURFACES["openai_chat"], data, sizes, coding)


# --- cost

READERS: Final = {"sse": sse_reader, "ndjson": ndjson_reader}
UNITS: Final = [
    b"\n",
    b"\r",
    b"\r\n",
    b"data\n",
    b"data:\n",
    b"data: a\n",
    b"data: a\n\n",
    b"event: a\n",
    b": a\n",
    b":",
    b"a",
    b"id\n\n",
    b"{}\n",
    b" \n",
    b"\xef\xbb\xbf",
    b"data: {}\r\n\r\n",
    b'{"a":"\\n"}\n',
]


def read(make: Callable[[], EventReader], data: bytes, sizes: list[int]) -> None:
    reader = make()
    for piece in cut(data, sizes):
        reader.feed(piece)
    reader.close()


@pytest.mark.parametrize("make", READERS.values(), ids=READERS)
@pytest.mark.parametrize("sizes", [[1], [7, 1, 400], [10**9]], ids=["bytes", "pieces", "whole"])
@pytest.mark.parametrize("unit", UNITS)
def test_events_are_read_in_linear_time(make: Callable[[], EventReader], sizes: list[int], unit: bytes) -> None:
    assert is_linear(lambda size: unit * (size // len(unit)), lambda data: read(make, data, sizes), largest_bytes=2**16)


@pytest.mark.parametrize("make", READERS.values(), ids=READERS)
@pytest.mark.parametrize("unit", [b"data: abc\n", b"data\n", b"a", b": a", b"event: a\n", b"{", b"data: a\n\n"])
def test_an_endless_event_is_held_up_to_the_limit_and_no_further(
    make: Callable[[int], EventReader], unit: bytes
) -> None:
    piece = unit * (8 * KIB // len(unit))

    def feed(pieces: int) -> None:
        reader = make(64 * KIB)
        for _ in range(pieces):
            reader.feed(piece)

    at_the_limit = peak_bytes(lambda: feed(12))
    assert at_the_limit < 20 * 64 * KIB
    assert peak_bytes(lambda: feed(60)) < at_the_limit + 128 * KIB


DATA: Final = [
    b'"content":"',
    b'"content":""',
    b'{"content":',
    b"[",
    b'{"a":',
    b'"choices":[{"delta":{"content":"a"}}],',
    b"\\",
    b'"usage":{',
    b'"usage":{{}',
    b'"usage" ',
    b'"usage":{a}',
    b'{"usage":{}',
    b"a",
    b'"',
]

FIRST: Final = b'{"choices":[{"delta":{"content":"a"}}],"message":{"content":"a"},"content":"a"}'


@pytest.mark.parametrize("surface", STREAMED, ids=lambda surface: surface.name)
@pytest.mark.parametrize("unit", DATA)
def test_an_event_and_an_answer_of_any_length_are_read_in_linear_time(surface: Surface, unit: bytes) -> None:
    def look(data: bytes) -> None:
        reader = surface.reader()
        reader.event("", FIRST)
        reader.event("", b"{" + data)
        reader.only_output(data, 5)
        surface.read_whole(b"{" + data)

    assert is_linear(lambda size: unit * (size // len(unit)), look, largest_bytes=2**18)


@pytest.mark.parametrize("coding", CODINGS)
def test_what_inflates_without_end_fills_no_memory(coding: str) -> None:
    bombs = [data for data in CODED if len(data) < 2000] * 40
    undo = decoder(coding)
    assert undo is not None
    assert peak_bytes(lambda: undo.feed(b"".join(bombs))) < 64 * KIB * KIB

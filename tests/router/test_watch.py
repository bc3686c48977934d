"""The watch beside a stream sees the same however the stream is cut, and when it sees it."""

from __future__ import annotations

import gzip
import zlib

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from router.errors import BackendBroke
from router.fleet.ledger import Account
from router.surfaces import SURFACES
from router.surfaces.api import Progress
from router.watch import StreamWatch, WholeWatch, may_say_in_band, watch_for

CHAT = SURFACES["openai_chat"]


def event(document: object, end: bytes = b"\n\n") -> bytes:
    return b"data: " + orjson.dumps(document) + end


def delta(**fields: object) -> dict[str, object]:
    return {"id": "c1", "choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def token(text: str) -> bytes:
    return event(delta(content=text))


USAGE = event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 70, "total_tokens": 75}})
DONE = b"data: [DONE]\n\n"


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def watch(clock: Clock, content_type: str = "text/event-stream", *codings: str) -> StreamWatch:
    made = watch_for(CHAT, content_type, codings, Account(), clock)
    assert isinstance(made, StreamWatch)
    return made


def test_the_first_token_is_neither_the_role_nor_a_ping() -> None:
    clock = Clock()
    seen = watch(clock)
    for now_s, piece in enumerate((b":\n\n", event(delta(role="assistant", content="")), token("a"), token("b")), 1):
        clock.now_s = float(now_s)
        seen.feed(piece)
    assert seen.first_token_s == 3.0
    assert seen.progress.tokens == 2


def test_the_mean_gap_is_over_the_tokens_after_the_first() -> None:
    clock = Clock()
    seen = watch(clock)
    for number in range(101):
        clock.now_s = 10.0 + number * 0.02
        seen.feed(token("x"))
    clock.now_s = 99.0
    seen.feed(DONE)
    seen.end()
    assert seen.progress.tokens == 101
    assert seen.tpot_s() == pytest.approx(0.02)
    assert seen.progress.ended


def test_a_stream_without_a_token_has_no_time_to_first_token() -> None:
    seen = watch(Clock())
    seen.feed(event(delta(role="assistant", content="")) + DONE)
    seen.end()
    assert seen.first_token_s is None
    assert seen.tpot_s() is None


def test_the_engines_own_count_replaces_ours() -> None:
    seen = watch(Clock())
    for _ in range(40):
        seen.feed(token("two words"))
    seen.feed(USAGE + DONE)
    seen.end()
    assert (seen.progress.prompt_tokens, seen.progress.output_tokens) == (5, 70)


def test_an_error_late_in_the_stream_is_found() -> None:
    seen = watch(Clock())
    for _ in range(50):
        seen.feed(token("x"))
    seen.feed(event({"error": {"message": "out of memory"}}))
    seen.end()
    assert seen.progress.failed


def test_a_compressed_stream_is_read_event_by_event() -> None:
    clock = Clock()
    seen = watch(clock, "text/event-stream", "gzip")
    packer = zlib.compressobj(wbits=31)
    for number in range(5):
        clock.now_s = float(number)
        seen.feed(packer.compress(token("x")) + packer.flush(zlib.Z_SYNC_FLUSH))
    assert seen.first_token_s == 0.0
    assert seen.progress.tokens == 5


def test_nothing_is_said_inside_an_event_or_inside_compressed_bytes() -> None:
    error = BackendBroke("it broke")
    seen = watch(Clock())
    seen.feed(token("a"))
    assert b'"error"' in may_say_in_band(seen, CHAT, error)
    seen.feed(b'data: {"cho')
    assert may_say_in_band(seen, CHAT, error) == b""
    packed = watch(Clock(), "text/event-stream", "gzip")
    assert may_say_in_band(packed, CHAT, error) == b""


def test_an_answer_in_one_piece_is_read_at_its_end_also_if_compressed() -> None:
    body = orjson.dumps({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
    for codings, sent in (((), body), (("gzip",), gzip.compress(body))):
        seen = watch_for(CHAT, "application/json", codings, Account(), Clock())
        assert isinstance(seen, WholeWatch)
        for start in range(0, len(sent), 7):
            seen.feed(sent[start : start + 7])
        seen.end()
        assert (seen.progress.prompt_tokens, seen.progress.output_tokens) == (3, 4)


def test_a_huge_answer_in_one_piece_is_not_kept() -> None:
    seen = watch_for(CHAT, "application/json", (), Account(), Clock())
    for _ in range(100):
        seen.feed(b"x" * 10_000)
    seen.end()
    assert seen.progress == Progress()


PARTS = st.sampled_from(
    [
        token("a"),
        token('"content":"'),
        token(""),
        token("żółć 😀"),
        event(delta(role="assistant", content="")),
        event(delta(reasoning_content="hm")),
        event(delta(content="crlf"), b"\r\n\r\n"),
        event({"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]}),
        event({"choices": [{"index": 0, "delta": {"content": "c"}}], "usage": {"completion_tokens": 9}}),
        b": ping\n\n",
        USAGE,
        DONE,
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PARTS, max_size=120), st.lists(st.integers(1, 400), min_size=1, max_size=30))
@example(parts=[token("a"), event(delta(content="crlf"), b"\r\n\r\n"), event(delta(reasoning_content="hm"))], cuts=[1])
def test_however_a_stream_is_cut_the_counts_are_the_same(parts: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(parts)
    whole, cut, by_event = watch(Clock()), watch(Clock()), watch(Clock())
    whole.feed(stream)
    at = number = 0
    while at < len(stream):
        size = cuts[number % len(cuts)]
        cut.feed(stream[at : at + size])
        at, number = at + size, number + 1
    for part in parts:
        by_event.feed(part)
    for seen in (whole, cut, by_event):
        seen.end()
    assert whole.progress == cut.progress == by_event.progress


@pytest.mark.parametrize(
    ("pieces", "ended", "cut_off"),
    [
        ([], False, True),
        ([token("a")], False, True),
        ([token("a"), DONE], True, False),
        ([token("a"), DONE.rstrip()], False, True),
        ([token("a"), event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})], False, False),
    ],
)
def test_whether_a_stream_came_to_its_end(pieces: list[bytes], ended: bool, cut_off: bool) -> None:
    seen = watch(Clock())
    for piece in pieces:
        seen.feed(piece)
    for _ in range(2):
        seen.end()
        assert (seen.ended, seen.cut_off) == (ended, cut_off)
    seen.look_away()
    assert not seen.cut_off


def test_what_could_not_be_decoded_is_not_called_cut_off() -> None:
    seen = watch(Clock(), "text/event-stream", "gzip")
    seen.feed(b"this is no gzip")
    seen.end()
    assert not seen.cut_off


def test_nothing_is_said_in_band_after_the_end_mark_nor_in_the_middle_of_a_last_line() -> None:
    error = BackendBroke("it broke")
    done = watch(Clock())
    done.feed(token("a") + DONE)
    assert may_say_in_band(done, CHAT, error) == b""
    lines = watch_for(SURFACES["ollama_chat"], "application/x-ndjson", (), Account(), Clock())
    lines.feed(b'{"message":{"content":"a"},"done":false}\n')
    assert may_say_in_band(lines, SURFACES["ollama_chat"], error) != b""
    lines.feed(b'{"message":{"content":"b"}')
    lines.end()
    assert may_say_in_band(lines, SURFACES["ollama_chat"], error) == b""

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
from router.watch import StreamWatch, Watch, WholeWatch, may_say_in_band, watch_for

CHAT = SURFACES["openai_chat"]


def event(document: object, end: bytes = b"\n\n") -> bytes:
    return b"data: " + orjson.dumps(document) + end


def delta(**fields: object) -> dict[str, object]:
    return {"id": "c1", "choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def token(text: str) -> bytes:
    return event(delta(content=text))


USAGE = event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 70, "total_tokens": 75}})
DONE = b"data: [DONE]\n\n"


def watch(content_type: str = "text/event-stream", *codings: str) -> StreamWatch:
    made = watch_for(CHAT, content_type, codings, Account())
    assert isinstance(made, StreamWatch)
    return made


def show(seen: Watch, piece: bytes, at_s: float = 0.0) -> None:
    seen.see([piece], [at_s])


def test_the_first_token_is_neither_the_role_nor_a_ping() -> None:
    seen = watch()
    pieces = (b":\n\n", event(delta(role="assistant", content="")), token("a"), token("b"))
    kept_s = [seen.see([piece], [float(at_s)]) for at_s, piece in enumerate(pieces, 1)]
    assert kept_s[:2] == [0.0, 0.0], "what may be the first token is shown at once"
    assert kept_s[2] > 0.0
    assert seen.first_token_s == 3.0
    assert seen.progress.tokens == 2


def test_the_mean_gap_is_over_the_tokens_after_the_first() -> None:
    seen = watch()
    show(seen, token("x"), 10.0)
    for number in range(1, 101, 20):
        seen.see([token("x")] * 20, [10.0 + at * 0.02 for at in range(number, number + 20)])
    show(seen, DONE, 99.0)
    seen.end()
    assert seen.progress.tokens == 101
    assert seen.tpot_s() == pytest.approx(0.02)
    assert seen.progress.ended


def test_a_stream_without_a_token_has_no_time_to_first_token() -> None:
    seen = watch()
    show(seen, event(delta(role="assistant", content="")) + DONE)
    seen.end()
    assert seen.first_token_s is None
    assert seen.tpot_s() is None


def test_the_engines_own_count_replaces_ours() -> None:
    seen = watch()
    for _ in range(40):
        show(seen, token("two words"))
    show(seen, USAGE + DONE)
    seen.end()
    assert (seen.progress.prompt_tokens, seen.progress.output_tokens) == (5, 70)


def test_an_error_late_in_the_stream_is_found() -> None:
    seen = watch()
    for _ in range(50):
        show(seen, token("x"))
    show(seen, event({"error": {"message": "out of memory"}}))
    seen.end()
    assert seen.progress.failed


def test_a_compressed_stream_is_read_event_by_event() -> None:
    seen = watch("text/event-stream", "gzip")
    packer = zlib.compressobj(wbits=31)
    for number in range(5):
        show(seen, packer.compress(token("x")) + packer.flush(zlib.Z_SYNC_FLUSH), float(number))
    assert seen.first_token_s == 0.0
    assert seen.progress.tokens == 5


def test_nothing_is_said_inside_an_event_or_inside_compressed_bytes() -> None:
    error = BackendBroke("it broke")
    seen = watch()
    show(seen, token("a"))
    assert b'"error"' in may_say_in_band(seen, CHAT, error)
    show(seen, b'data: {"cho')
    assert may_say_in_band(seen, CHAT, error) == b""
    packed = watch("text/event-stream", "gzip")
    assert may_say_in_band(packed, CHAT, error) == b""


def test_an_answer_in_one_piece_is_read_at_its_end_also_if_compressed() -> None:
    body = orjson.dumps({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
    for codings, sent in (((), body), (("gzip",), gzip.compress(body))):
        seen = watch_for(CHAT, "application/json", codings, Account())
        assert isinstance(seen, WholeWatch)
        for start in range(0, len(sent), 7):
            show(seen, sent[start : start + 7])
        seen.end()
        assert (seen.progress.prompt_tokens, seen.progress.output_tokens) == (3, 4)


def test_a_huge_answer_in_one_piece_is_not_kept() -> None:
    seen = watch_for(CHAT, "application/json", (), Account())
    for _ in range(100):
        show(seen, b"x" * 10_000)
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
    whole, cut, by_event, by_run = watch(), watch(), watch(), watch()
    show(whole, stream)
    at = number = 0
    while at < len(stream):
        size = cuts[number % len(cuts)]
        show(cut, stream[at : at + size])
        at, number = at + size, number + 1
    for part in parts:
        show(by_event, part)
    for start in range(0, len(parts), cuts[0]):
        run = parts[start : start + cuts[0]]
        by_run.see(run, [0.0] * len(run))
    for seen in (whole, cut, by_event, by_run):
        seen.end()
    assert whole.progress == cut.progress == by_event.progress == by_run.progress


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
    seen = watch()
    for piece in pieces:
        show(seen, piece)
    for _ in range(2):
        seen.end()
        assert (seen.ended, seen.cut_off) == (ended, cut_off)
    seen.look_away()
    assert not seen.cut_off


def test_what_could_not_be_decoded_is_not_called_cut_off() -> None:
    seen = watch("text/event-stream", "gzip")
    show(seen, b"this is no gzip")
    seen.end()
    assert not seen.cut_off


def test_nothing_is_said_in_band_after_the_end_mark_nor_in_the_middle_of_a_last_line() -> None:
    error = BackendBroke("it broke")
    done = watch()
    show(done, token("a") + DONE)
    assert may_say_in_band(done, CHAT, error) == b""
    lines = watch_for(SURFACES["ollama_chat"], "application/x-ndjson", (), Account())
    show(lines, b'{"message":{"content":"a"},"done":false}\n')
    assert may_say_in_band(lines, SURFACES["ollama_chat"], error) != b""
    show(lines, b'{"message":{"content":"b"}')
    lines.end()
    assert may_say_in_band(lines, SURFACES["ollama_chat"], error) == b""


def test_the_gaps_are_those_between_pieces_that_carried_output() -> None:
    seen = watch()
    for piece, at_s in ((event(delta(role="assistant", content="")), 1.0), (token("a"), 2.0), (b":\n\n", 2.5)):
        show(seen, piece, at_s)
    seen.see([token("b"), token("c"), token("d")], [3.0, 3.1, 3.2])
    show(seen, token("e") + token("f"), 4.0)
    show(seen, DONE, 9.0)
    flow = seen.gaps.flow()
    assert flow is not None
    assert flow.mean_s == pytest.approx(0.5)
    assert flow.longest_s == pytest.approx(1.0)

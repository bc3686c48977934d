"""Targets: the bytes of an answer on their way past the readers that look at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from router.errors import BackendBroke, BadRequest, TooLarge, UnsupportedCoding
from router.fleet.ledger import Account
from router.surfaces import SURFACES
from router.surfaces.api import Framing, Progress, Surface
from router.watch import StreamWatch, may_say_in_band, watch_for
from router.wire.coding import decode_body, decoder
from router.wire.events import LIMIT_BYTES, Event, EventReader, ndjson_reader, sse_reader
from tests.fuzz.pieces import Source, cut

STREAMED: Final = [
    surface
    for name, surface in SURFACES.items()
    if name.startswith(("openai_chat", "openai_comp", "openai_resp", "openai_audio", "anthropic_mess"))
    or name in ("ollama_chat", "ollama_generate", "llamacpp_completion", "llamacpp_infill", "openai_embeddings")
]
CODINGS: Final = ("gzip", "deflate", "br", "zstd", "x-gzip")
_BODY_LIMIT_BYTES: Final = 100_000
_TYPES: Final = {Framing.SSE: "text/event-stream", Framing.NDJSON: "application/x-ndjson"}


def check_events(framing: Framing, stream: bytes, sizes: Sequence[int], limit_bytes: int = LIMIT_BYTES) -> None:
    """However a stream is cut, the same events come out, and it ends the same."""
    make = sse_reader if framing is Framing.SSE else ndjson_reader
    whole, parted = make(limit_bytes), make(limit_bytes)
    assert _all(whole, [stream]) == _all(parted, cut(stream, sizes))
    assert whole.partial == parted.partial
    assert list(whole.close()) == list(parted.close())


def _all(reader: EventReader, pieces: object) -> list[Event]:
    return [event for piece in pieces for event in reader.feed(piece)]  # type: ignore[attr-defined]


def check_tokens(surface: Surface, events: Sequence[Event], run_lengths: Sequence[int]) -> None:
    """No event makes a reader raise, and what it takes in at once it would have taken in one by one."""
    reader, by_event = surface.reader(), surface.reader()
    at = number = 0
    while at < len(events):
        run = events[at : at + run_lengths[number % len(run_lengths)]]
        before = _counts(reader.progress)
        at_once = all(map(_is_one_line, run)) and reader.only_output(_written(surface, run), len(run))
        carried = [by_event.event(*event) for event in run]
        if at_once:
            assert all(carried)
        else:
            assert _counts(reader.progress) == before
            for event in run:
                reader.event(*event)
        _check_counts(reader.progress)
        assert _counts(reader.progress) == _counts(by_event.progress)
        at += len(run)
        number += 1


def _is_one_line(event: Event) -> bool:
    name, data = event
    return not any(end in data for end in (b"\n", b"\r")) and not any(char in name for char in '\n\r"')


def _written(surface: Surface, run: Sequence[Event]) -> bytes:
    if surface.framing is Framing.NDJSON:
        return b"".join(data + b"\n" for _, data in run)
    return b"".join((b"event: %b\n" % name.encode() if name else b"") + b"data: %b\n\n" % data for name, data in run)


def _counts(progress: Progress) -> tuple[object, ...]:
    return tuple(getattr(progress, name) for name in Progress.__slots__)


def _check_counts(progress: Progress) -> None:
    for count in (progress.prompt_tokens, progress.cached_tokens, progress.output_tokens):
        assert count is None or (type(count) is int and count >= 0)
    assert type(progress.tokens) is int
    assert progress.tokens >= 0
    assert type(progress.response_id) is str
    flags = (progress.ended, progress.finished, progress.failed, progress.at_fault)
    assert all(type(flag) is bool for flag in flags)


def check_whole(surface: Surface, body: bytes) -> None:
    """An answer in one piece is read, or not, and never raises."""
    _check_counts(surface.read_whole(body))


def check_watch(surface: Surface, stream: bytes, sizes: Sequence[int], coding: str = "") -> None:
    """Nothing in an answer stops the looking with an exception, or has an event of ours put into one of its own."""
    codings = (coding,) if coding else ()
    watch = watch_for(surface, _TYPES[surface.framing], codings, Account())
    assert isinstance(watch, StreamWatch)
    for piece in cut(stream, sizes):
        watch.see([piece], [1.0])
        said = may_say_in_band(watch, surface, BackendBroke("it broke"))
        assert not said or not codings
    watch.end()
    watch.end()
    _check_counts(watch.progress)
    assert (watch.tpot_s() or 0.0) == 0.0
    assert watch.cut_off in (True, False)


def check_coding(coding: str, data: bytes, sizes: Sequence[int]) -> None:
    """Bytes of a coding, or not: the same comes out however they are cut, and errors are the router's own."""
    whole, parted = decoder(coding), decoder(coding)
    assert whole is not None
    assert parted is not None
    at_once = whole.feed(data)
    in_parts = b"".join([parted.feed(piece) for piece in cut(data, sizes)])
    assert whole.broken == parted.broken
    if not whole.broken:
        assert at_once == in_parts
        assert whole.complete == parted.complete
    try:
        body = decode_body(data, [coding], _BODY_LIMIT_BYTES)
    except (BadRequest, TooLarge, UnsupportedCoding):
        return
    assert len(body) <= _BODY_LIMIT_BYTES
    assert body == at_once


def fuzz_events(data: bytes) -> None:
    source = Source(data)
    framing = source.one_of(list(Framing))
    limit_bytes = source.one_of([LIMIT_BYTES, 0, 5, 40])
    sizes = source.sizes()
    check_events(framing, source.rest(), sizes, limit_bytes)


def fuzz_tokens(data: bytes) -> None:
    source = Source(data)
    surface = source.one_of(STREAMED)
    run_lengths = [1 + source.below(5), 1 + source.below(5)]
    reader = sse_reader() if surface.framing is Framing.SSE else ndjson_reader()
    stream = source.rest()
    check_tokens(surface, [*reader.feed(stream), *reader.close()], run_lengths)
    check_whole(surface, stream)


def fuzz_watch(data: bytes) -> None:
    source = Source(data)
    surface = source.one_of(STREAMED)
    sizes = [*source.sizes(), 200]
    check_watch(surface, source.rest(), sizes)


def fuzz_coding(data: bytes) -> None:
    source = Source(data)
    coding = source.one_of(CODINGS)
    sizes = source.sizes()
    check_coding(coding, source.rest(), sizes)

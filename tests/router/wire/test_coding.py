"""Content codings: what is seen of a stream, what a request body may contain, and what is refused."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from router.errors import BadRequest, TooLarge, UnsupportedCoding
from router.wire.coding import Decoder, decode_body, decoder

CODINGS = ("gzip", "deflate", "br", "zstd")
BODY = b'{"model":"m","messages":[{"role":"user","content":"hello hello hello"}]}'
EVENTS = [b'data: {"n":%d}\n\n' % n for n in range(5)]


def raw_deflate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeeze.compress(data) + squeeze.flush()


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=3),
    "zstd": zstandard.ZstdCompressor().compress,
}


def flushed(coding: str, parts: Sequence[bytes]) -> Iterator[bytes]:
    """Each part compressed and flushed, as a server does that streams."""
    if coding == "br":
        squeeze = brotli.Compressor()
        for part in parts:
            yield squeeze.process(part) + squeeze.flush()
    elif coding == "zstd":
        frame = zstandard.ZstdCompressor().compressobj()
        for part in parts:
            yield frame.compress(part) + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    else:
        deflate = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
        for part in parts:
            yield deflate.compress(part) + deflate.flush(zlib.Z_SYNC_FLUSH)


def known(coding: str) -> Decoder:
    found = decoder(coding)
    assert found is not None
    return found


@pytest.mark.parametrize("coding", CODINGS)
def test_a_stream_flushed_per_event_is_seen_event_by_event(coding: str) -> None:
    undo = known(coding)
    assert [undo.feed(part) for part in flushed(coding, EVENTS)] == EVENTS
    assert not undo.complete
    assert not undo.broken


@pytest.mark.parametrize("coding", CODINGS)
def test_bytes_may_come_one_at_a_time(coding: str) -> None:
    undo = known(coding)
    data = COMPRESS[coding](BODY)
    assert b"".join(undo.feed(data[i : i + 1]) for i in range(len(data))) == BODY
    assert undo.complete


def test_an_unknown_coding_has_no_decoder() -> None:
    assert decoder("compress") is None
    assert decoder("") is None


@pytest.mark.parametrize("name", ["GZIP", " gzip ", "x-gzip"])
def test_names_are_read_without_regard_to_case_and_space(name: str) -> None:
    assert known(name).feed(gzip.compress(BODY)) == BODY


@pytest.mark.parametrize("coding", CODINGS)
def test_looking_at_garbage_gives_nothing_and_never_raises(coding: str) -> None:
    undo = known(coding)
    assert undo.feed(b"\xde\xad\xbe\xef" * 100) == b""
    assert undo.broken
    assert undo.feed(COMPRESS[coding](BODY)) == b""


@pytest.mark.parametrize("coding", CODINGS)
def test_looking_at_a_bomb_gives_up(coding: str) -> None:
    undo = known(coding)
    assert undo.feed(COMPRESS[coding](bytes(2**25))) == b""
    assert undo.broken


@pytest.mark.parametrize("coding", CODINGS)
def test_a_request_body_is_decoded(coding: str) -> None:
    assert decode_body(COMPRESS[coding](BODY), [coding], 1000) == BODY


@pytest.mark.parametrize("coding", CODINGS)
def test_a_large_body_of_mixed_content_is_decoded(coding: str) -> None:
    body = random.Random(1).randbytes(2**20) + BODY * 40_000
    assert decode_body(COMPRESS[coding](body), [coding], len(body)) == body


def test_deflate_without_its_wrapper_is_understood() -> None:
    assert decode_body(raw_deflate(BODY), ["deflate"], 1000) == BODY


def test_codings_are_undone_last_first() -> None:
    assert decode_body(brotli.compress(gzip.compress(BODY)), ["gzip", "identity", "br"], 1000) == BODY


def test_no_coding_changes_nothing() -> None:
    assert decode_body(BODY, [], 10) == BODY
    assert decode_body(BODY, ["identity"], 10) == BODY


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_several_members_are_one_body(coding: str) -> None:
    compress = COMPRESS[coding]
    assert decode_body(compress(BODY[:30]) + compress(BODY[30:]), [coding], 1000) == BODY


def test_what_follows_a_brotli_body_is_corrupt_in_one_piece_and_in_two() -> None:
    packed = brotli.compress(BODY)
    undo = decoder("br")
    assert undo is not None
    assert undo.feed(packed) == BODY
    assert undo.feed(packed) == b""
    assert undo.broken
    with pytest.raises(BadRequest):
        decode_body(packed * 2, ["br"], 10**6)


@pytest.mark.parametrize("codings", [["compress"], ["gzip", "aes128gcm"], ["gzip"] * 5])
def test_unknown_or_too_many_codings_are_unsupported(codings: list[str]) -> None:
    with pytest.raises(UnsupportedCoding, match="Content-Encoding"):
        decode_body(gzip.compress(BODY), codings, 1000)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("lost", [1, 5, 15])
def test_a_body_that_is_cut_off_is_a_bad_request(coding: str, lost: int) -> None:
    with pytest.raises(BadRequest, match="too early"):
        decode_body(COMPRESS[coding](BODY)[:-lost], [coding], 1000)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("body", [b"not compressed at all, just text", BODY])
def test_a_corrupt_body_is_a_bad_request(coding: str, body: bytes) -> None:
    with pytest.raises(BadRequest, match="not valid"):
        decode_body(body, [coding], 1000)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_garbage_after_the_end_is_a_bad_request(coding: str) -> None:
    with pytest.raises(BadRequest):
        decode_body(COMPRESS[coding](BODY) + b"garbage", [coding], 1000)


@pytest.mark.parametrize("coding", CODINGS)
def test_an_empty_body_with_a_coding_is_a_bad_request(coding: str) -> None:
    with pytest.raises(BadRequest):
        decode_body(b"", [coding], 1000)


@pytest.mark.parametrize("coding", CODINGS)
def test_the_limit_is_exact(coding: str) -> None:
    data = COMPRESS[coding](BODY)
    assert decode_body(data, [coding], len(BODY)) == BODY
    with pytest.raises(TooLarge, match="decompressed"):
        decode_body(data, [coding], len(BODY) - 1)


@pytest.mark.parametrize("coding", CODINGS)
def test_a_bomb_is_refused_with_flat_memory(coding: str) -> None:
    bomb = COMPRESS[coding](bytes(2**28))
    tracemalloc.start()
    with pytest.raises(TooLarge):
        decode_body(bomb, [coding], 2**20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 * 2**20


@pytest.mark.parametrize("coding", CODINGS)
def test_what_no_text_could_be_is_refused_long_before_the_limit(coding: str) -> None:
    bomb = COMPRESS[coding](bytes(2**26))
    tracemalloc.start()
    with pytest.raises(TooLarge, match="not compressed"):
        decode_body(bomb, [coding], 2**30)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < max(200 * len(bomb), 4 * 2**20) + 32 * 2**20


def test_a_megabyte_may_be_as_small_as_it_likes() -> None:
    assert decode_body(gzip.compress(bytes(2**20)), ["gzip"], 2**30) == bytes(2**20)


def test_a_zstd_body_that_asks_for_a_giant_window_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    greedy = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = greedy.compress(BODY) + greedy.flush()
    with pytest.raises(BadRequest):
        decode_body(body, ["zstd"], 1000)


@given(st.sampled_from(CODINGS), st.binary(max_size=3000), st.lists(st.integers(0, 3000), max_size=5))
def test_any_body_comes_back_however_it_is_cut(coding: str, body: bytes, cuts: list[int]) -> None:
    data = COMPRESS[coding](body)
    undo = known(coding)
    borders = [0, *sorted(min(place, len(data)) for place in cuts), len(data)]
    parts = [undo.feed(data[a:b]) for a, b in pairwise(borders)]
    assert b"".join(parts) == body == decode_body(data, [coding], 3000)

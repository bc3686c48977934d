"""One whole chunk, told from its ends."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from router.wire.whole_chunk import HEAD_OF_SIZE, WHOLE_CHUNK_BYTES


def is_whole_chunk(piece: bytes) -> bool:
    return piece.startswith(HEAD_OF_SIZE[len(piece)]) and piece.endswith(b"\r\n")


def test_a_chunk_of_any_size_is_one() -> None:
    for body_bytes in range(1, WHOLE_CHUNK_BYTES - 10):
        assert is_whole_chunk(b"%x\r\n%b\r\n" % (body_bytes, b"x" * body_bytes))


@given(st.binary(max_size=40), st.sampled_from([b"", b"\r\n"]))
@example(b"\r", b"\r\n")
@example(b"", b"\r\n")
@example(b"0\r\n", b"\r\n")
@example(b"\r" * 19, b"\r\n")
@example(b"F\r\n" + b"x" * 15, b"\r\n")
def test_whatever_is_taken_for_one_is_one(start: bytes, end: bytes) -> None:
    piece = start + end
    if is_whole_chunk(piece):
        size, line_end, rest = piece.partition(b"\r\n")
        assert line_end
        assert size == b"%x" % int(size, 16)
        assert int(size, 16) > 0
        assert len(rest) == int(size, 16) + 2


def test_sizes_that_no_chunk_has_begin_with_nothing() -> None:
    for piece in (b"\r\n", b"\r" * 19 + b"\r\n", b"\r" * 4000 + b"\r\n"):
        assert not is_whole_chunk(piece)

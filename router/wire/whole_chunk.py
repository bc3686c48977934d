"""How one whole chunk looks: told from its size and both ends, without a parser.

A piece of a chunked body that has N bytes is one whole chunk, written as everybody writes it, if it begins with
`HEAD_OF_SIZE[N]` and ends with a line end: what stands between has just the length that the head says.
"""

from __future__ import annotations

from typing import Final

WHOLE_CHUNK_BYTES: Final = 4 * 1024
"""Chunks are told from smaller pieces only."""


def _heads() -> tuple[bytes, ...]:
    none = b"\r" * WHOLE_CHUNK_BYTES  # longer than any piece, so that none begins with it
    heads = [none] * WHOLE_CHUNK_BYTES
    for body_bytes in range(1, WHOLE_CHUNK_BYTES):
        head = b"%x\r\n" % body_bytes
        size = len(head) + body_bytes + len(b"\r\n")
        if size < WHOLE_CHUNK_BYTES:
            heads[size] = head
    return tuple(heads)


HEAD_OF_SIZE: Final = _heads()

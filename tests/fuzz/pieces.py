"""Inputs as strategies and as plain bytes: what hypothesis draws, and what a coverage-guided fuzzer changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

Chosen = TypeVar("Chosen")
Target = Callable[[bytes], None]
"""Takes any bytes whatever; raises where a promise is broken."""

SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=12)
"""Of the pieces in which a stream comes."""


class Source:
    """Reads decisions from the front of an input; an input that is used up decides everywhere for the first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, bound: int) -> int:
        value = self._data[self._at] % bound if self._at < len(self._data) else 0
        self._at += 1
        return value

    def one_of(self, items: Sequence[Chosen]) -> Chosen:
        return items[self.below(len(items))]

    def sizes(self) -> list[int]:
        return [1 + self.below(64) for _ in range(1 + self.below(4))]

    def rest(self) -> bytes:
        return self._data[self._at :]


def cut(data: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    """`data` in pieces of these sizes, over and over."""
    at = number = 0
    while at < len(data):
        size = sizes[number % len(sizes)]
        yield data[at : at + size]
        at += size
        number += 1


def mutated(seeds: Sequence[bytes], fragments: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Inputs that are nearly right: a few bytes are lost, doubled, or replaced by fragments that mean something."""

    @st.composite
    def draw(drawn: st.DrawFn) -> bytes:
        data = drawn(st.sampled_from(seeds))
        for _ in range(drawn(st.integers(0, 5))):
            start = drawn(st.integers(0, len(data)))
            end = min(len(data), start + drawn(st.sampled_from([0, 0, 0, 1, 1, 2, 8, 40])))
            new = drawn(st.sampled_from([*fragments, data[start:end] * 2]) | st.binary(max_size=4))
            data = data[:start] + new + data[end:]
        return data

    return draw()


def documents(words: Sequence[str], texts: Sequence[object]) -> st.SearchStrategy[Any]:
    """Values of JSON in which the words that a reader knows stand at any place, with any value."""
    known = st.sampled_from(words)
    leaves = st.one_of(
        st.sampled_from([*texts, None, True, False, 0, -1, 7, 2**63, 2**70, 1.5, "", "x", "\ud83d", "é😀"]), known
    )
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(known | st.text(max_size=3), inner, max_size=5),
        max_leaves=16,
    )

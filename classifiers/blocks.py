"""A prompt as chained hashes of its blocks: two prompts are the same up to the last hash that they have in common.

Servers keep what they have computed for a prompt and need not compute it again for a later one that begins alike, so
what a router wants to know of two prompts is how far they are the same. A prompt is taken in the order in which chat
templates write it (system text, tools, messages), so that the next turn of a conversation begins with this one.

    hash of a block = hash(hash of the block before, its text)

Blocks end at fixed places, a sixteenth further than what came before and at least 256 characters, so that a prompt of a
million characters has some two hundred of them and not four thousand; before each answer of the model, so that the end
of one turn is found again in the next one; and where system text or a long part of a message ends, since others may go
on in another way there. Python's own keyed hash serves: nothing but equality within one process is ever asked. No text
is kept.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from classifiers.marks import Message, joined

BLOCK_CHARS: Final = 256
_LONGEST_CHARS: Final = 2**31
_MOST_BORDERS: Final = 1024
"""Beside the fixed places; of a conversation with more answers the later ones are no ends of blocks."""
_HEADERS: Final = {"s": "<|system|>\n", "u": "\n<|user|>\n", "a": "\n<|assistant|>\n", "t": "\n<|tool|>\n"}
"""As many characters as the tokens are worth that templates write before a message, about."""
_OTHER: Final = "\n<|other|>\n"


def _places() -> Iterator[int]:
    at = 0
    while at < _LONGEST_CHARS:
        yield at
        at += max(BLOCK_CHARS, at >> 4)


_PLACES: Final = tuple(_places())


@dataclass(frozen=True, slots=True)
class Blocks:
    """One prompt, cut."""

    hashes: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    """Characters up to the end of each block."""
    answers: tuple[tuple[int, int], ...] = ()
    """Where answers of the model begin, and how long they are, in characters."""
    chars: int = 0
    """Of the whole prompt."""
    whole: bool = False
    """All of it was compared. False: the blocks end where an image or something else that is no text begins."""

    def answer_at(self, chars: int) -> int:
        """Characters of the answer that begins there; 0: none does."""
        index = bisect_left(self.answers, (chars, 0))
        return self.answers[index][1] if index < len(self.answers) and self.answers[index][0] == chars else 0


NO_BLOCKS: Final = Blocks()


def cut(seed: str, messages: Iterable[Message], *, of_chars: int | None = None) -> Blocks:
    """`seed`: what else must be the same, such as the model. `messages` from the first one on.

    `of_chars`: characters of the whole prompt, where that is more than text; None: `messages` are all of it.
    """
    parts: list[str] = []
    answers: list[tuple[int, int]] = []
    borders: set[int] = set()
    size, last_role = 0, ""
    for role, texts in messages:
        header = _HEADERS.get(role, _OTHER)
        said = joined(texts)
        if role != last_role and len(borders) < _MOST_BORDERS:
            if role == "a" and size:
                answers.append((size, len(said)))
                borders.add(size)
            elif last_role == "s":
                borders.add(size)
        parts += (header, said)
        size += len(header)
        if len(texts) > 1 and len(borders) < _MOST_BORDERS:
            borders.update(_after_long_parts(texts, size))
        size += len(said)
        last_role = role
    if not size:
        return NO_BLOCKS
    text = "".join(parts)
    cuts = [*_PLACES[: bisect_right(_PLACES, size - 1)], size]
    if borders:
        cuts = sorted(borders.union(cuts))
    chain = hash(seed)
    hashes = [chain := hash((chain, text[start:end])) for start, end in pairwise(cuts)]
    return Blocks(tuple(hashes), tuple(cuts[1:]), tuple(answers), max(size, of_chars or 0), whole=of_chars is None)


def _after_long_parts(texts: Sequence[str], at: int) -> Iterator[int]:
    """Where the parts of a message end which begins there, but for the last one."""
    for text in texts[:-1]:
        at += len(text) + 1
        if len(text) >= BLOCK_CHARS:
            yield at


def in_order(system: Sequence[str], tools: str, messages: Sequence[Message]) -> Iterator[Message]:
    """As chat templates write a prompt: what the system says, tools, then what was said.

    `system`: what stands beside the messages, `tools` as JSON.
    """
    leading = next((index for index, (role, _) in enumerate(messages) if role != "s"), len(messages))
    if system:
        yield "s", system
    yield from messages[:leading]
    if tools:
        yield "s", (tools,)
    yield from messages[leading:]


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many leading blocks two prompts share. By halves, since what is the same at a place is the same before it."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high) // 2
        if one[middle] == other[middle]:
            low = middle + 1
        else:
            high = middle
    return low

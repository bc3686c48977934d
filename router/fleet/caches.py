"""What one backend is likely to have of the prompts that it was sent: a model of its cache, without its tokens.

Two kinds, as there are two kinds of engines. Those with slots (llama.cpp) keep in each slot the prompt and answer that
it worked on last; a new call goes to the free slot that shares most with it, if that is a tenth of it, else to the one
that is free for longest. Those that batch (vLLM) keep blocks of all prompts in one store, least recently used blocks
make room, and the end of a prompt goes before its beginning.

Both remember a bounded number of blocks beyond what the cache should hold (`Match.faded`): some servers keep more than
can be known from outside (llama.cpp in main memory), and only what they report tells.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from classifiers.blocks import Blocks, common

_SIMILAR_0_1: Final = 0.1
"""llama.cpp's `--slot-prompt-similarity`."""
_FADED_PROMPTS: Final = 32
_ANSWER_KEPT_0_1: Final = 0.7
"""An answer of which the next turn repeats less, in tokens, was changed by the client, which leaves out reasoning."""


class Match(NamedTuple):
    """Share of a prompt that a backend should have."""

    held_0_1: float
    faded_0_1: float
    """With what it should have dropped by now; never less than `held_0_1`."""


NO_MATCH: Final = Match(0.0, 0.0)


class Cache(Protocol):
    version: int
    """Another one whenever matches may have changed."""

    def match(self, blocks: Blocks, prompt_tokens: int) -> Match: ...

    def sent(self, blocks: Blocks, prompt_tokens: int) -> object:
        """A call with this prompt goes there; give what is returned to one of the others when it is over."""
        ...

    def ended(self, sent: object, answer_tokens: int) -> None:
        """The prompt was worked on; `answer_tokens` 0: the answer was not complete."""
        ...

    def turned_away(self, sent: object) -> None:
        """The server did not begin on it."""
        ...

    def resize(self, tokens: int) -> None:
        """The server has said how much it holds."""
        ...


def _share(blocks: Blocks, depth: int, prompt_tokens: int, answer_tokens: int) -> float:
    """Share of the prompt up to a block, and of the answer behind it where that is the one that the server gave."""
    if not depth:
        return 0.0
    chars, total = blocks.ends[depth - 1], blocks.chars
    answer = blocks.answer_at(chars) if answer_tokens else 0
    if answer and answer * prompt_tokens >= _ANSWER_KEPT_0_1 * answer_tokens * total:
        chars += answer
    return min(chars, total) / total


class _Slot:
    """The last prompt of one slot."""

    __slots__ = ("answer_tokens", "busy", "former", "hashes")

    def __init__(self, hashes: tuple[int, ...]) -> None:
        self.hashes = hashes
        self.answer_tokens = 0
        self.busy = True
        self.former: _Slot | None = None
        """What it held before; until it is sure that the server began."""


class Slots:
    """At most `slots` prompts and those that run, and the newest `_FADED_PROMPTS` that had to go."""

    def __init__(self, slots: int) -> None:
        self.version = 0
        self._slots = slots
        self._kept: OrderedDict[_Slot, None] = OrderedDict()
        """Longest idle first, those that run at any place."""
        self._faded: OrderedDict[_Slot, None] = OrderedDict()

    def __len__(self) -> int:
        """Blocks remembered."""
        return sum(len(slot.hashes) for slot in (*self._kept, *self._faded))

    def match(self, blocks: Blocks, prompt_tokens: int) -> Match:
        slot, depth = self._place(blocks)
        held = _share(blocks, depth, prompt_tokens, _answered(slot, depth))
        older, deep = _closest(self._faded, blocks.hashes)
        return Match(held, max(held, _share(blocks, deep, prompt_tokens, _answered(older, deep))))

    def sent(self, blocks: Blocks, prompt_tokens: int) -> object:
        former, _ = self._place(blocks)
        slot = _Slot(blocks.hashes)
        slot.former = former
        if former is not None:
            del self._kept[former]
        self._kept[slot] = None
        self.version += 1
        return slot

    def ended(self, sent: object, answer_tokens: int) -> None:
        assert isinstance(sent, _Slot)
        former, sent.former, sent.busy, sent.answer_tokens = sent.former, None, False, answer_tokens
        self._kept.move_to_end(sent)
        if former is not None and common(former.hashes, sent.hashes) < len(former.hashes):
            self._fade(former)
        while len(self._kept) > self._slots and (idle := self._longest_idle()) is not None:
            del self._kept[idle]
            self._fade(idle)
        self.version += 1

    def turned_away(self, sent: object) -> None:
        assert isinstance(sent, _Slot)
        del self._kept[sent]
        if sent.former is not None:
            self._kept[sent.former] = None
        self.version += 1

    def resize(self, tokens: int) -> None:
        pass

    def _place(self, blocks: Blocks) -> tuple[_Slot | None, int]:
        """The slot that the server would take, and how many blocks it shares. None: one of which nothing is known."""
        idle = [slot for slot in self._kept if not slot.busy]
        slot, depth = _closest(idle, blocks.hashes)
        if depth and blocks.ends[depth - 1] > _SIMILAR_0_1 * blocks.chars:
            return slot, depth
        if len(self._kept) < self._slots or not idle:
            return None, 0
        return idle[0], common(idle[0].hashes, blocks.hashes)

    def _longest_idle(self) -> _Slot | None:
        return next((slot for slot in self._kept if not slot.busy), None)

    def _fade(self, slot: _Slot) -> None:
        self._faded[slot] = None
        if len(self._faded) > _FADED_PROMPTS:
            self._faded.popitem(last=False)


def _closest(slots: Iterable[_Slot], hashes: Sequence[int]) -> tuple[_Slot | None, int]:
    """The one that shares most blocks, of equals the first, and how many."""
    best, most, length = None, 0, len(hashes)
    for slot in slots:
        # What is the same at a place is the same before it: who differs at the next place shares no more.
        if most < len(slot.hashes) and most < length and slot.hashes[most] == hashes[most]:
            best, most = slot, common(slot.hashes, hashes)
    return best, most


def _answered(slot: _Slot | None, depth: int) -> int:
    """Tokens of the answer that a slot holds behind its prompt, where all of that is matched."""
    return slot.answer_tokens if slot is not None and depth == len(slot.hashes) else 0


class _Stored(NamedTuple):
    """A prompt that went to a store."""

    hashes: tuple[int, ...]
    new: tuple[int, ...]
    """Those that were not there before."""


class Store:
    """Blocks of `capacity_tokens` together, and the newest others up to `most_blocks`."""

    def __init__(self, capacity_tokens: int, most_blocks: int) -> None:
        self.version = 0
        self._capacity_tokens = capacity_tokens
        self._most_blocks = most_blocks
        self._held: OrderedDict[int, int] = OrderedDict()
        """Tokens of each block with the answer behind it, least recently used first."""
        self._tokens = 0
        self._faded: OrderedDict[int, None] = OrderedDict()
        self._answers: dict[int, int] = {}
        """Tokens of the answer behind the last block of a prompt."""

    def __len__(self) -> int:
        """Blocks remembered."""
        return len(self._held) + len(self._faded)

    def match(self, blocks: Blocks, prompt_tokens: int) -> Match:
        hashes = blocks.hashes
        if not hashes or (hashes[0] not in self._held and hashes[0] not in self._faded):
            return NO_MATCH
        held = _depth(hashes, self._held)
        deep = held
        while deep < len(hashes) and (hashes[deep] in self._faded or hashes[deep] in self._held):
            deep += 1
        return Match(self._reach(blocks, held, prompt_tokens), self._reach(blocks, deep, prompt_tokens))

    def _reach(self, blocks: Blocks, depth: int, prompt_tokens: int) -> float:
        answer = self._answers.get(blocks.hashes[depth - 1], 0) if depth else 0
        return _share(blocks, depth, prompt_tokens, answer)

    def sent(self, blocks: Blocks, prompt_tokens: int) -> object:
        held, hashes, ends = self._held, blocks.hashes, blocks.ends
        rate = prompt_tokens / blocks.chars
        new = []
        for index in range(len(hashes) - 1, -1, -1):  # the beginning is used last, so it is kept for longest
            block = hashes[index]
            if block in held:
                held.move_to_end(block)
                continue
            new.append(block)
            self._faded.pop(block, None)
            self._answers.pop(block, None)
            held[block] = tokens = round(rate * (ends[index] - (ends[index - 1] if index else 0)))
            self._tokens += tokens
        self._make_room()
        self.version += 1
        return _Stored(hashes, tuple(new))

    def ended(self, sent: object, answer_tokens: int) -> None:
        assert isinstance(sent, _Stored)
        last = sent.hashes[-1]
        if answer_tokens and last in self._held:
            grown = answer_tokens - self._answers.get(last, 0)
            self._answers[last] = answer_tokens
            self._held[last] += grown
            self._tokens += grown
            self._make_room()
        self.version += 1

    def turned_away(self, sent: object) -> None:
        assert isinstance(sent, _Stored)
        for block in sent.new:
            self._tokens -= self._held.pop(block, 0)
            self._answers.pop(block, None)
        self.version += 1

    def resize(self, tokens: int) -> None:
        self._capacity_tokens = tokens
        self._make_room()
        self.version += 1

    def _make_room(self) -> None:
        held, faded = self._held, self._faded
        while held and (self._tokens > self._capacity_tokens or len(held) > self._most_blocks):
            block, tokens = held.popitem(last=False)
            self._tokens -= tokens
            faded[block] = None
        while faded and len(held) + len(faded) > self._most_blocks:
            block, _ = faded.popitem(last=False)
            self._answers.pop(block, None)


def _depth(hashes: Sequence[int], there: Collection[int]) -> int:
    """How many leading blocks are there. By halves: what is there was used with all that comes before it."""
    low, high = 0, len(hashes)
    while low < high:
        middle = (low + high) // 2
        if hashes[middle] in there:
            low = middle + 1
        else:
            high = middle
    return low

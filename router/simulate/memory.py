"""What a modelled engine remembers of prompts, and how much fits: slots of llama.cpp, blocks of vLLM.

Prompts are compared by chained hashes of their blocks: two prompts with the same hash at a place are the same up to
there. Nothing here knows time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence as Items
from typing import Protocol

from router.simulate.pace import EngineSpec
from router.simulate.sequence import Sequence


class Memory(Protocol):
    def admit(self, sequence: Sequence) -> int | None:
        """Cached tokens of the prompt, whose place is held from now on; None: it does not fit now."""
        ...

    def computed(self, sequence: Sequence) -> None:
        """A piece of the prompt was prefilled: others find what is complete of it."""
        ...

    def fitting_steps(self, decoding: int) -> int | None:
        """How many tokens each of so many sequences can still get; None: no limit."""
        ...

    def grow(self, tokens: int) -> None:
        """So many tokens were decoded, by all together."""
        ...

    def release(self, sequence: Sequence, decoded_tokens: int, *, complete: bool) -> None:
        """It ended or left after so many tokens; `complete`: its prompt is there as a whole."""
        ...

    @property
    def used_0_1(self) -> float:
        """Share that running sequences hold."""
        ...


def common(one: Items[int], other: Items[int]) -> int:
    """How many leading blocks two prompts share."""
    count = 0
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        count += 1
    return count


class Slots:
    """Each slot keeps what it worked on last; a new call may continue it (llama.cpp, `get_available_slot`)."""

    def __init__(self, spec: EngineSpec) -> None:
        self._spec = spec
        self._kept: list[Items[int]] = [()] * spec.sequences
        self._idle: OrderedDict[int, None] = OrderedDict.fromkeys(range(spec.sequences))
        """Longest idle first."""
        self._tokens = 0

    def admit(self, sequence: Sequence) -> int | None:
        if not self._idle:
            return None
        best, most = next(iter(self._idle)), 0
        for slot in self._idle:
            if self._kept[slot] and (shared := common(sequence.blocks, self._kept[slot])) > most:
                best, most = slot, shared
        if most * self._spec.block_tokens <= self._spec.min_similarity_0_1 * sequence.prompt_tokens:
            best = next(iter(self._idle))
            most = common(sequence.blocks, self._kept[best])
        del self._idle[best]
        self._kept[best] = ()
        sequence.room = [best]
        self._tokens += sequence.prefill_tokens
        return most * self._spec.block_tokens

    def computed(self, sequence: Sequence) -> None:
        pass

    def fitting_steps(self, decoding: int) -> int | None:
        return None

    def grow(self, tokens: int) -> None:
        self._tokens += tokens

    def release(self, sequence: Sequence, decoded_tokens: int, *, complete: bool) -> None:
        slot = sequence.room[0]
        done = sequence.prefill_tokens - sequence.left_tokens
        kept = sequence.full_blocks[: (done + decoded_tokens) // self._spec.block_tokens]
        self._kept[slot] = kept if complete else kept[: len(sequence.blocks)]
        self._idle[slot] = None
        self._tokens -= sequence.prefill_tokens + decoded_tokens

    @property
    def used_0_1(self) -> float:
        return self._tokens / (self._spec.sequences * self._spec.context_tokens)


class Blocks:
    """One store for all: blocks of ended calls stay until others need the room, least recently used first.

    What no other call can share (the open end of a prompt, tokens that are being generated) is counted in tokens.
    """

    def __init__(self, spec: EngineSpec) -> None:
        self._size = spec.block_tokens
        self._capacity = spec.cache_tokens
        self._users: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()
        self._held = 0
        """Tokens that running sequences hold, shared blocks counted once."""

    def admit(self, sequence: Sequence) -> int | None:
        found = self._leading(sequence)
        newly_held = sum(self._size for block in found if block not in self._users)
        own = sequence.prefill_tokens - len(found) * self._size
        if self._held and self._held + newly_held + own > self._capacity:
            return None  # a call that is alone is let in whatever it needs, or it would wait for ever
        for block in found:
            self._users[block] = self._users.get(block, 0) + 1
            self._idle.pop(block, None)
        self._held += newly_held + own
        sequence.room = found
        self._evict()
        return len(found) * self._size

    def _leading(self, sequence: Sequence) -> list[int]:
        """Blocks of the prompt that are here, from its beginning; one token at least is left to compute."""
        found = []
        for block in sequence.blocks[: (sequence.prompt_tokens - 1) // self._size]:
            if block not in self._users and block not in self._idle:
                break
            found.append(block)
        return found

    def computed(self, sequence: Sequence) -> None:
        complete = (sequence.prefill_tokens - sequence.left_tokens) // self._size
        for block in sequence.blocks[len(sequence.room) : complete]:
            if block in self._users:
                break  # another call has computed the same at the same time: this copy stays private
            self._idle.pop(block, None)
            self._users[block] = 1
            sequence.room.append(block)

    def fitting_steps(self, decoding: int) -> int | None:
        return (self._capacity - self._held) // decoding

    def grow(self, tokens: int) -> None:
        self._held += tokens
        self._evict()

    def release(self, sequence: Sequence, decoded_tokens: int, *, complete: bool) -> None:
        self._held -= sequence.prefill_tokens + decoded_tokens - len(sequence.room) * self._size
        if complete:
            tokens = sequence.prefill_tokens + decoded_tokens
            for block in reversed(sequence.full_blocks[len(sequence.blocks) : tokens // self._size]):
                if block not in self._users:
                    self._idle[block] = None
        for block in reversed(sequence.room):  # the end of a prompt is of less use to others than its beginning
            if self._users[block] > 1:
                self._users[block] -= 1
                continue
            del self._users[block]
            self._idle[block] = None
            self._held -= self._size
        sequence.room = []
        self._evict()

    def _evict(self) -> None:
        while self._idle and self._held + len(self._idle) * self._size > self._capacity:
            self._idle.popitem(last=False)

    @property
    def used_0_1(self) -> float:
        return self._held / self._capacity

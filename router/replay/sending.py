"""Recorded calls as they arrive again. No text is left of them, so what prompts share is reconstructed.

Blocks of a trace are taken as they are. Of a log it is known which calls are of one conversation: its prompts are taken
to grow, each beginning with all of the one before. Where the engine had tokens in its cache although nothing came
before, calls of the same client begin alike for so many tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from itertools import chain
from typing import Final

from classifiers.api import Features
from classifiers.blocks import Blocks
from router.replay.recorded import Recorded
from router.simulate.calls import Arriving

BLOCK_TOKENS: Final = 64
_TOKEN_CHARS: Final = 4
"""Of a token, where characters are counted; only their shares of the prompt matter."""
_ROOM: Final = 24
"""Bits for the places of blocks of one beginning."""


class Sharing:
    """Which blocks prompts have in common. Sees the calls in the order of their arrival."""

    def __init__(self, block_tokens: int = BLOCK_TOKENS) -> None:
        self.block_tokens = block_tokens
        self._sessions: set[str] = set()

    def blocks(self, call: Recorded) -> tuple[Sequence[int], Sequence[int]]:
        """Of the prompt, and of prompt and answer."""
        if call.blocks:
            whole = call.blocks[: call.prompt_tokens // self.block_tokens]
            return whole, whole
        head = self._head(call)
        if not call.session:
            return head, head
        self._sessions.add(call.session)
        base = _base(f"session {call.session}")
        asked, answered = call.prompt_tokens, call.prompt_tokens + call.output_tokens
        return self._grown(head, base, asked), self._grown(head, base, answered)

    def _head(self, call: Recorded) -> range:
        """What it has in common with calls of other conversations."""
        base = _base(f"head {call.client} {call.system}")
        system = call.asked.get("system_tokens", 0)
        if system >= self.block_tokens:
            base = _base(f"head {call.client} {call.system or system}")
        cached = call.logged.cached_tokens if call.logged is not None else None
        first = not call.session or call.session not in self._sessions
        tokens = max(system, cached or 0) if first else system
        return range(base, base + min(tokens, call.prompt_tokens) // self.block_tokens)

    def _grown(self, head: range, base: int, tokens: int) -> Sequence[int]:
        count = tokens // self.block_tokens
        if not head:
            return range(base, base + count)
        return tuple(chain(head, range(base + len(head), base + count)))


def _base(name: str) -> int:
    return (1 + int.from_bytes(blake2b(name.encode(), digest_size=4).digest())) << _ROOM


def arriving(calls: Sequence[Recorded], sharing: Sharing) -> Iterator[Arriving]:
    """The calls, each made anew, since what the router knows of a call changes as it goes."""
    for call in calls:
        blocks, full_blocks = sharing.blocks(call)
        features = features_of(call)
        if blocks:
            features.uncut = partial(seen_by_router, blocks, call.prompt_tokens, sharing.block_tokens)
        yield Arriving(
            at_s=call.at_s,
            client=call.client,
            path="",
            headers=[],
            prompt_tokens=call.prompt_tokens,
            output_tokens=call.output_tokens,
            blocks=blocks,
            full_blocks=full_blocks,
            leaves_after_s=call.leaves_after_s,
            features=features,
            verdict=call.verdict,
        )


def seen_by_router(blocks: Sequence[int], prompt_tokens: int, block_tokens: int) -> Blocks:
    """The same blocks as the router would cut them: ever longer ones, so that a long prompt has few."""
    places, at = [], 0
    while at < len(blocks):
        places.append(at)
        at += max(1, at // 16)
    return Blocks(
        hashes=tuple(blocks[place] for place in places),
        ends=tuple((place + 1) * block_tokens * _TOKEN_CHARS for place in places),
        chars=prompt_tokens * _TOKEN_CHARS,
        whole=True,
    )


def features_of(call: Recorded) -> Features:
    """What is known of it without its text. The model is left out: in a log it is a hash."""
    features = Features(surface=call.surface, stream=call.stream, max_tokens=call.max_tokens, opening_key=call.session)
    for name, count in call.asked.items():
        setattr(features, name, count)
    if not features.prompt_tokens:
        features.prompt_tokens = call.prompt_tokens
    return features

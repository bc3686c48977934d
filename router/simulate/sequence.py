"""One call inside a modelled engine."""

from __future__ import annotations

from collections.abc import Sequence as Items
from enum import Enum


class Stage(Enum):
    WAITING = "waiting"
    PREFILL = "prefill"
    DECODE = "decode"
    ENDED = "ended"
    CANCELLED = "cancelled"


class Sequence:
    """What the engine was given and how far it is. Times are those of the engine, in seconds; None: not yet.

    Only the engine writes here.
    """

    __slots__ = (
        "admitted_s",
        "blocks",
        "cached_tokens",
        "decode_from",
        "end_s",
        "end_step",
        "first_s",
        "full_blocks",
        "left_tokens",
        "order",
        "output_tokens",
        "prefill_tokens",
        "priority",
        "prompt_tokens",
        "recomputed_tokens",
        "room",
        "stage",
        "submitted_s",
        "tag",
    )

    def __init__(
        self,
        *,
        prompt_tokens: int,
        output_tokens: int,
        blocks: Items[int],
        full_blocks: Items[int],
        priority: int,
        tag: object,
        order: int,
        submitted_s: float,
    ) -> None:
        self.prompt_tokens = prompt_tokens
        self.output_tokens = output_tokens
        self.blocks = blocks
        self.full_blocks = full_blocks
        self.priority = priority
        self.tag = tag
        """Of the caller; never looked at."""
        self.order = order
        self.submitted_s = submitted_s
        self.stage = Stage.WAITING
        self.admitted_s: float | None = None
        self.first_s: float | None = None
        self.end_s: float | None = None
        self.cached_tokens = 0
        """Of the prompt, found in the cache when it was admitted last."""
        self.left_tokens = 0
        """Of the prompt, still to be prefilled."""
        self.prefill_tokens = prompt_tokens
        """Prompt, and after a preemption also what had been generated before."""
        self.recomputed_tokens = 0
        """Generated before the last preemption."""
        self.decode_from = 0
        """Number of the step after which it began to decode."""
        self.end_step = -1
        """Number of the step with which it ends; -1: it does not decode."""
        self.room: list[int] = []
        """Of the memory that holds it: its blocks, or its slot."""

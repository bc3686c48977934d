"""One of our calls on one backend: what it was promised, and how far it is by the count of the engine's steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from policies.api import Ask
from policies.outlook import Outlook, lengths, sequences, uncached_tokens

_TAIL: Final = 0.4
"""A lognormal length that has passed its median m goes on for about as long again as it is, times (p90 / m)^0.4 - 1."""
_LONGEST_TAIL: Final = 8.0
SOON_TOKENS: Final = 8.0
"""An answer is taken to go on for at least as long, where its mean time between tokens is to be kept."""
KEPT_0_1: Final = 0.9
"""Share of a promised time between tokens that may be used up; the rest is kept in hand."""


class Mark(NamedTuple):
    """How far a backend was at one instant: all counts since it was first seen."""

    at_s: float
    steps: float
    row_steps: float
    """Sequences decoding, summed over steps."""
    prefilled_tokens: float


class Running:
    """One of our calls on one backend. What every view asks for is worked out when something happens to it."""

    __slots__ = (
        "ahead_tokens",
        "ask",
        "began",
        "call_class",
        "count",
        "decoding_beside",
        "due_s",
        "ends_after",
        "first",
        "first_s",
        "from_step",
        "had_place",
        "left_tokens",
        "most_tokens",
        "others",
        "p10_tokens",
        "p50_tokens",
        "p90_tokens",
        "predicted",
        "promised",
        "sequences",
        "streams",
        "sure_after",
        "tail",
        "tpot_slo_s",
        "uncached_tokens",
    )

    def __init__(self, ask: Ask, backend: str, began: Mark) -> None:
        expected = lengths(ask)
        features = ask.features
        self.ask = ask
        self.call_class = ask.verdict.call_class
        self.began = began
        self.first: Mark | None = None
        """When it began to decode; None: not yet."""
        self.count: Callable[[], int] | None = None
        """Tokens of its answer that have come; None: nobody counts them."""
        self.streams = features.stream
        self.sequences = sequences(ask)
        self.uncached_tokens = uncached_tokens(ask, backend)
        self.left_tokens = float(self.uncached_tokens)
        """Of its prompt, to be prefilled."""
        self.ahead_tokens = 0.0
        """Of prompts before it, when it came."""
        self.decoding_beside = 0.0
        """Sequences, when it came."""
        self.predicted: Outlook | None = None
        """What it was expected to see when it was sent."""
        self.had_place = True
        """There was a free place inside the engine when it was sent."""
        self.others = 0.0
        """Calls of other clients that were there then."""
        most, p50, p90 = float(features.max_tokens or math.inf), expected.p50_tokens, expected.p90_tokens
        self.most_tokens = most
        self.p50_tokens = min(float(p50), most)
        self.p90_tokens = min(float(max(p90, p50)), most)
        self.p10_tokens = self.p50_tokens**2 / max(1.0, self.p90_tokens)
        grows = min(_LONGEST_TAIL, p90 / max(1, p50))
        self.tail = max(0.0, math.pow(grows, _TAIL) - 1.0)
        self.from_step = 0.0
        """When it began, by the count of steps."""
        self.ends_after = self.p50_tokens - 1.0
        """Steps after its first token, if it is as long as expected."""
        self.sure_after = self.p50_tokens / (1.0 + self.tail) - 1.0
        """Steps up to which it is expected to be of the median length."""
        self._promise(ask)

    def _promise(self, ask: Ask) -> None:
        rules = ask.rules
        due_s = math.inf if rules.slo_complete_s is None else ask.arrived_s + rules.slo_complete_s
        if ask.due_s is not None:
            due_s = min(due_s, ask.due_s)
        if ask.hoped_s is not None:
            due_s = min(due_s, ask.hoped_s)
        self.due_s = due_s
        """When it has to be complete; infinite: whenever."""
        slo_s = rules.slo_tpot_s if self.streams else None
        self.tpot_slo_s = slo_s or 0.0
        self.first_s = math.inf
        """When its first token came, since which it is to keep `tpot_slo_s`; infinite: nothing of the kind promised."""
        self.promised = slo_s is not None or due_s < math.inf

    def begins(self, mark: Mark) -> None:
        """It has its first token."""
        self.first = mark
        self.left_tokens = 0.0
        self.from_step = mark.steps
        if self.tpot_slo_s:
            self.first_s = mark.at_s

    def got(self, steps: float) -> float:
        """Tokens after its first one, when the backend has made so many steps: as many as were counted; where nobody
        counts, one for each step.
        """
        got = steps - self.from_step
        if self.count is not None and self.tpot_slo_s:
            came = self.count()
            if 2 * came >= 1.0 + got:  # else events of several tokens
                got = came - 1.0
                self.from_step = steps - got
        return got

    def left(self, got: float) -> float:
        """Tokens of its answer that are still to come, when it has got so many after its first one."""
        if got < self.sure_after:
            return self.ends_after - got
        tokens = 1.0 + got
        return max(0.5, min(self.tail * tokens, self.most_tokens - tokens))

    def promised_each_s(self, token_s: float) -> float:
        """By how much it would keep the promised time between tokens, before it has begun."""
        return (self.tpot_slo_s - token_s) * self.p50_tokens if self.tpot_slo_s else math.inf

    def sure_s(self, got: float, left: float, from_s: float, token_s: float) -> float:
        """What is left of its promise also where a stream ends early, so that little evens out what held it up, or
        where another answer is a long one. `from_s`: when all that is to be prefilled has been.
        """
        due_s = self.due_s - from_s - max(left, self.p90_tokens - got) * token_s
        if not self.tpot_slo_s:
            return due_s
        near = min(left, max(SOON_TOKENS, self.p10_tokens - got))
        each_s = self.first_s + KEPT_0_1 * self.tpot_slo_s * (got + near) - from_s - near * token_s
        return min(due_s, each_s)

    def sure_before_s(self, begins_s: float, from_s: float, token_s: float) -> float:
        """The same before it has begun, which it does at `begins_s`."""
        due_s = self.due_s - from_s - self.p90_tokens * token_s
        if not self.tpot_slo_s:
            return due_s
        near = max(SOON_TOKENS, self.p10_tokens)
        each_s = near * (KEPT_0_1 * self.tpot_slo_s - token_s) - max(0.0, from_s - begins_s)
        first_s = self.ask.rules.slo_ttft_s
        if first_s is None:
            return min(due_s, each_s)
        # What comes behind it fills up the step with which its prompt ends, which is its first token's.
        return min(due_s, each_s, self.ask.arrived_s + first_s - begins_s)

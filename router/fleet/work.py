"""What our own calls on one backend still need, and how far the engine has come with them.

An engine tells of a call only its first token (where it streams) and its end. In between it is followed by a clock that
counts the engine's steps: as long as prompts wait to be prefilled the steps are those of the prefill, first come, first
served, then each is as long as `step_s + sequence_s x sequences`. A sequence that began to decode at step k has, at
step m, m - k tokens, so nothing has to be counted for each token, and one event costs the same however many calls run.
(That is the virtual time of processor sharing: Parekh and Gallager, IEEE/ACM ToN 1 (3), 1993.)

The same clock says what a call had beside it between two of its events: `Mark`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from policies.api import NO_WORK, UNKNOWN_PACE, Ask, Pace, Protected, Work
from policies.outlook import Outlook, lengths, sequences, uncached_tokens

_LEFT_UNTIL_SEEN: Final = 0.1
"""Of the prompt of a call that streams, while its first token has not come: it cannot have been prefilled."""
_NO_TOKEN: Final = 1e-6
"""What rounding may leave of a prompt."""
_TAIL: Final = 0.4
"""A lognormal length that has passed its median m goes on for about as long again as it is, times (p90 / m)^0.4 - 1."""
_SOON_TOKENS: Final = 8.0
"""An answer is taken to go on for at least as long, where its mean time between tokens is to be kept."""
_SURE_0_1: Final = 0.1
"""Share of a promised time between tokens that is kept in hand."""
_LONGEST_TAIL: Final = 8.0

_LATELY_S: Final = 4.0
"""How long it takes until what was prefilled counts for a third: about as long as an answer."""


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
        "count",
        "decoding_beside",
        "due_s",
        "end_step",
        "first",
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
        "sure_step",
        "tail",
        "tpot_from_s",
        "tpot_slo_s",
        "uncached_tokens",
    )

    def __init__(self, ask: Ask, backend: str, began: Mark) -> None:
        expected = lengths(ask)
        features = ask.features
        self.ask = ask
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
        self.most_tokens = float(features.max_tokens or math.inf)
        self.p50_tokens = min(float(expected.p50_tokens), self.most_tokens)
        self.p90_tokens = min(float(max(expected.p90_tokens, expected.p50_tokens)), self.most_tokens)
        self.p10_tokens = self.p50_tokens**2 / max(1.0, self.p90_tokens)
        grows = min(_LONGEST_TAIL, expected.p90_tokens / max(1, expected.p50_tokens))
        self.tail = max(0.0, math.pow(grows, _TAIL) - 1.0)
        self.from_step = self.end_step = self.sure_step = 0.0
        """When it began, by the count of steps; when it ends; up to when it is expected to be of the median length."""
        self._promise(ask)

    def _promise(self, ask: Ask) -> None:
        rules = ask.rules
        promised_s = math.inf if rules.slo_complete_s is None else ask.arrived_s + rules.slo_complete_s
        self.due_s = min([promised_s, *[each for each in (ask.due_s, ask.hoped_s) if each is not None]])
        """When it has to be complete; infinite: whenever."""
        slo_s = rules.slo_tpot_s if self.streams else None
        self.tpot_slo_s = slo_s or 0.0
        self.tpot_from_s = math.inf
        """When step 0 would have been, had all up to its first token kept `tpot_slo_s`; infinite: nothing promised."""
        self.promised = slo_s is not None or self.due_s < math.inf

    def begins(self, mark: Mark) -> None:
        """It has its first token."""
        self.first = mark
        self.left_tokens = 0.0
        self.from_step = mark.steps
        self.end_step = mark.steps + self.p50_tokens - 1.0
        self.sure_step = mark.steps + self.p50_tokens / (1.0 + self.tail) - 1.0
        if self.tpot_slo_s:
            self.tpot_from_s = mark.at_s - self.tpot_slo_s * mark.steps

    def counted(self, steps: float) -> None:
        """Take the tokens that came in place of those that so many steps should have given."""
        expected = 1.0 + steps - self.from_step
        came = 0 if self.count is None else self.count()
        if 2 * came < expected:
            return  # events of several tokens
        off = expected - came
        self.from_step += off
        self.end_step += off
        self.sure_step += off
        self.tpot_from_s -= self.tpot_slo_s * off

    def promised_each_s(self, token_s: float) -> float:
        """By how much it would keep the promised time between tokens, before it has begun."""
        return (self.tpot_slo_s - token_s) * self.p50_tokens if self.tpot_slo_s else math.inf

    def sure_s(self, steps: float, left: float, from_s: float, token_s: float) -> float:
        """What is left of its promise also where a stream ends early, so that little evens out what held it up, or
        where another answer is a long one. `from_s`: when all that is to be prefilled has been.
        """
        got = steps - self.from_step
        near = min(left, max(_SOON_TOKENS, self.p10_tokens - got))
        due_s = self.due_s - from_s - max(left, self.p90_tokens - got) * token_s
        each_s = self.tpot_from_s + self.tpot_slo_s * (steps + near) - from_s - near * token_s
        return min(due_s, each_s - _SURE_0_1 * self.tpot_slo_s * (got + near))

    def sure_before_s(self, begins_s: float, from_s: float, token_s: float) -> float:
        """The same before it has begun, which it does at `begins_s`."""
        due_s = self.due_s - from_s - self.p90_tokens * token_s
        if not self.tpot_slo_s:
            return due_s
        near = max(_SOON_TOKENS, self.p10_tokens)
        each_s = near * ((1.0 - _SURE_0_1) * self.tpot_slo_s - token_s) - max(0.0, from_s - begins_s)
        first_s = self.ask.rules.slo_ttft_s
        if first_s is None:
            return min(due_s, each_s)
        # What comes behind it fills up the step with which its prompt ends, which is its first token's.
        return min(due_s, each_s, self.ask.arrived_s + first_s - begins_s)

    def tokens_left(self, steps: float) -> float:
        """Of its answer, when the backend has made so many steps since it began to decode."""
        got = 1.0 + steps - self.from_step
        left = max(self.p50_tokens - got, self.tail * got)
        return max(0.5, min(left, self.most_tokens - got))


class WorkBook:
    """Owner of the running calls of one backend. Time is an argument and may stand still, never go back."""

    def __init__(self) -> None:
        self.pace: Pace = UNKNOWN_PACE
        self.beside = 0.0
        """Sequences of other clients, decoding."""
        self._prefilling: dict[Running, None] = {}
        """In the order of their coming."""
        self._decoding: dict[Running, None] = {}
        self._rows = 0
        self._at_s = -math.inf
        self._steps = 0.0
        self._row_steps = 0.0
        self._prefilled_tokens = 0.0
        self._lately_s = 0.0
        """Spent with prompts, fading with age."""

    def __repr__(self) -> str:
        return f"<WorkBook {len(self._decoding)} decoding, {len(self._prefilling)} before their first token>"

    def __len__(self) -> int:
        return len(self._decoding) + len(self._prefilling)

    def __contains__(self, running: Running) -> bool:
        return running in self._decoding or running in self._prefilling

    # --- events

    def sent(self, ask: Ask, backend: str, now_s: float) -> Running:
        """A call of ours was sent there."""
        self._advance(now_s)
        running = Running(ask, backend, self.mark())
        running.ahead_tokens = self._waiting_tokens()
        running.decoding_beside = self._rows + self.beside
        self._prefilling[running] = None
        return running

    def first_token(self, running: Running, now_s: float) -> None:
        """Its first token came. Those that came before it and do not stream have begun by now as well."""
        if running not in self._prefilling:
            return
        self._advance(now_s)
        for other in tuple(self._prefilling):
            if other is running:
                break
            if not other.streams:
                self._begins(other)
        if running in self._prefilling:
            self._begins(running)

    def ended(self, running: Running, now_s: float) -> Mark:
        """It is gone, for whatever reason."""
        self._advance(now_s)
        if running in self._prefilling:
            del self._prefilling[running]
        elif running in self._decoding:
            del self._decoding[running]
            self._rows -= running.sequences
        return self.mark()

    def mark(self) -> Mark:
        return Mark(self._at_s, self._steps, self._row_steps, self._prefilled_tokens)

    # --- the clock

    def _advance(self, now_s: float) -> None:
        left_s = now_s - self._at_s
        if left_s <= 0:
            return
        self._at_s = now_s
        self._lately_s *= math.exp(-left_s / _LATELY_S)
        if not self._prefilling and not self._decoding:
            return
        for running in tuple(self._prefilling):
            if left_s <= 0:
                return
            left_s = self._prefill(running, left_s)
        rows = self._rows + self.beside
        if self._rows:
            self._count(left_s / (self.pace.step_s + self.pace.sequence_s * rows), rows)

    def _prefill(self, running: Running, most_s: float) -> float:
        """Work on its prompt for at most so long; returns what is left of the time."""
        pace, rows = self.pace, self._rows + self.beside
        least = _LEFT_UNTIL_SEEN * running.uncached_tokens if running.streams else 0.0
        tokens = max(0.0, running.left_tokens - least)
        token_s = pace.prefill_token_s + (pace.step_s + pace.sequence_s * rows) / pace.step_tokens
        spent_s = min(most_s, tokens * token_s)
        done = spent_s / token_s
        running.left_tokens -= done
        self._prefilled_tokens += done
        self._lately_s += done * pace.prefill_token_s
        self._count(done / pace.step_tokens, rows)
        if not running.streams and running.left_tokens < _NO_TOKEN:
            self._begins(running)
        return most_s - spent_s

    def _count(self, steps: float, rows: float) -> None:
        self._steps += steps
        self._row_steps += steps * rows

    def _begins(self, running: Running) -> None:
        del self._prefilling[running]
        self._prefilled_tokens += running.left_tokens
        self._lately_s += running.left_tokens * self.pace.prefill_token_s
        self._decoding[running] = None
        self._rows += running.sequences
        running.begins(self.mark())

    def _waiting_tokens(self) -> float:
        return sum([running.left_tokens for running in self._prefilling])

    # --- what policies see

    def work(self, now_s: float) -> Work:
        """Everything in O(n log n) of the running calls."""
        self._advance(now_s)
        if not self._prefilling and not self._decoding:
            return NO_WORK._replace(at_s=now_s, prefill_0_1=self._prefill_0_1())
        backlog_tokens = self._waiting_tokens()
        ends_s, protected = self._ends(now_s)
        rows, prefilling = float(self._rows), len(self._prefilling)
        return Work(now_s, rows, prefilling, backlog_tokens, ends_s, protected, self._prefill_0_1())

    def _prefill_0_1(self) -> float:
        return min(1.0, self._lately_s / _LATELY_S)

    def _ends(self, now_s: float) -> tuple[list[float], list[Protected]]:
        """When each ends if each answer is as long as expected and whoever ends is followed by another one.

        Steps that prefill are longer by what is prefilled in them; all that are there wait for that.
        """
        pace, steps = self.pace, self._steps
        for one in self._decoding:
            if one.tpot_slo_s:
                one.counted(steps)
        behind_tokens = self._waiting_tokens()
        rows = self._rows + self.beside + sum([running.sequences for running in self._prefilling])
        token_s = pace.step_s + pace.sequence_s * rows
        from_s = now_s + behind_tokens * pace.prefill_token_s
        begun = self._decoding
        lefts = [one.end_step - steps if steps < one.sure_step else one.tokens_left(steps) for one in begun]
        ends_s = [from_s + left * token_s for left in lefts]
        protected = [
            _protected(
                (
                    min(one.tpot_from_s + one.tpot_slo_s * (steps + left), one.due_s) - end_s,
                    left,
                    one.sure_s(steps, left, from_s, token_s),
                    one.ask.verdict.call_class,
                )
            )
            for one, left, end_s in zip(begun, lefts, ends_s, strict=True)
            if one.promised
        ]
        behind_tokens = 0.0
        for one in self._prefilling:
            behind_tokens += one.left_tokens
            begins_s = now_s + behind_tokens * (pace.prefill_token_s + token_s / pace.step_tokens)
            end_s = max(from_s, begins_s) + one.p50_tokens * token_s
            ends_s.append(end_s)
            if one.promised:
                slack_s = min(one.due_s - end_s, one.promised_each_s(token_s))
                sure_s = min(slack_s, one.sure_before_s(begins_s, from_s, token_s))
                protected.append(_protected((slack_s, one.p50_tokens, sure_s, one.ask.verdict.call_class)))
        ends_s.sort()
        return ends_s, protected


_protected = partial(tuple.__new__, Protected)
"""A third of the time of calling it, for one is made for each running call and view."""

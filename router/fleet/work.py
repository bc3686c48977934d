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
from typing import Final, NamedTuple

from policies.api import NO_WORK, UNKNOWN_PACE, Ask, Pace, Protected, Work
from policies.outlook import lengths, sequences, uncached_tokens

_LEFT_UNTIL_SEEN: Final = 0.1
"""Of the prompt of a call that streams, while its first token has not come: it cannot have been prefilled."""
_TAIL: Final = 0.4
"""A lognormal length that has passed its median m goes on for about as long again as it is, times (p90 / m)^0.4 - 1."""
_LONGEST_TAIL: Final = 8.0


class Mark(NamedTuple):
    """How far a backend was at one instant: all counts since it was first seen."""

    at_s: float
    steps: float
    row_steps: float
    """Sequences decoding, summed over steps."""
    prefilled_tokens: float


class Running:
    """One of our calls on one backend."""

    __slots__ = (
        "ahead_tokens",
        "ask",
        "began",
        "decoding_beside",
        "due_s",
        "first",
        "left_tokens",
        "most_tokens",
        "p50_tokens",
        "prefilling",
        "sequences",
        "streams",
        "tail",
        "tpot_slo_s",
        "uncached_tokens",
    )

    def __init__(self, ask: Ask, backend: str, began: Mark) -> None:
        expected = lengths(ask)
        features, rules = ask.features, ask.rules
        self.ask = ask
        self.began = began
        self.first: Mark | None = None
        """When it began to decode; None: not yet."""
        self.streams = features.stream
        self.sequences = sequences(ask)
        self.uncached_tokens = uncached_tokens(ask, backend)
        self.left_tokens = float(self.uncached_tokens)
        """Of its prompt, to be prefilled."""
        self.ahead_tokens = 0.0
        """Of prompts before it, when it came."""
        self.decoding_beside = 0.0
        """Sequences, when it came."""
        self.p50_tokens = float(expected.p50_tokens)
        self.most_tokens = float(features.max_tokens or math.inf)
        grows = min(_LONGEST_TAIL, expected.p90_tokens / max(1, expected.p50_tokens))
        self.tail = max(0.0, math.pow(grows, _TAIL) - 1.0)
        self.tpot_slo_s = rules.slo_tpot_s if features.stream else None
        promised_s = None if rules.slo_complete_s is None else ask.arrived_s + rules.slo_complete_s
        known = [due_s for due_s in (ask.due_s, promised_s) if due_s is not None]
        self.due_s = min(known) if known else None

    def tokens_left(self, steps: float) -> float:
        """Of its answer, when the backend has made so many steps."""
        if self.first is None:
            return self.p50_tokens
        got = 1.0 + steps - self.first.steps
        left = max(self.p50_tokens - got, self.tail * got, 1.0)
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

    def __repr__(self) -> str:
        return f"<WorkBook {len(self._decoding)} decoding, {len(self._prefilling)} before their first token>"

    def __len__(self) -> int:
        return len(self._decoding) + len(self._prefilling)

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
        self._count(done / pace.step_tokens, rows)
        if not running.streams and done >= tokens:
            self._begins(running)
        return most_s - spent_s

    def _count(self, steps: float, rows: float) -> None:
        self._steps += steps
        self._row_steps += steps * rows

    def _begins(self, running: Running) -> None:
        del self._prefilling[running]
        self._prefilled_tokens += running.left_tokens
        running.left_tokens = 0.0
        self._decoding[running] = None
        self._rows += running.sequences
        running.first = self.mark()

    def _waiting_tokens(self) -> float:
        return sum([running.left_tokens for running in self._prefilling])

    # --- what policies see

    def work(self, now_s: float) -> Work:
        """Everything in O(n log n) of the running calls."""
        self._advance(now_s)
        if not self._prefilling and not self._decoding:
            return NO_WORK
        backlog_tokens = self._waiting_tokens()
        ends_s, protected = self._ends(now_s)
        return Work(now_s, float(self._rows), len(self._prefilling), backlog_tokens, ends_s, protected)

    def _ends(self, now_s: float) -> tuple[list[float], list[Protected]]:
        """When each ends, if nothing comes and each answer is as long as expected: who has least left ends first."""
        pace, steps = self.pace, self._steps
        lefts = [(running.tokens_left(steps), running) for running in self._decoding]
        rows = self._rows + self.beside
        behind_tokens = 0.0
        for running in self._prefilling:
            behind_tokens += running.left_tokens
            rows += running.sequences
            lefts.append((running.p50_tokens + behind_tokens / pace.step_tokens, running))
        lefts.sort(key=_left)
        # Steps that prefill are longer by what is prefilled in them; all that are there now wait for that.
        at_s, gone = now_s + behind_tokens * pace.prefill_token_s, 0.0
        ends_s, protected = [], []
        for left, running in lefts:
            at_s += (left - gone) * (pace.step_s + pace.sequence_s * rows)
            gone = left
            rows -= running.sequences
            ends_s.append(at_s)
            slack_s = self._slack_s(running, at_s, left)
            if slack_s is not None:
                protected.append(Protected(slack_s, left))
        return ends_s, protected

    def _slack_s(self, running: Running, end_s: float, left: float) -> float | None:
        """By how much it keeps what it was promised, as far as that can still be changed; None: nothing was."""
        slack_s = None if running.due_s is None else running.due_s - end_s
        if running.tpot_slo_s is None:
            return slack_s
        if running.first is None:
            token_s = self.pace.step_s + self.pace.sequence_s * (self._rows + self.beside + len(self._prefilling))
            of_tokens_s = (running.tpot_slo_s - token_s) * running.p50_tokens
        else:
            tokens = self._steps - running.first.steps + left
            of_tokens_s = running.first.at_s + running.tpot_slo_s * tokens - end_s
        return of_tokens_s if slack_s is None else min(slack_s, of_tokens_s)


def _left(item: tuple[float, Running]) -> float:
    return item[0]

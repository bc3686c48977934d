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
from typing import Final

from policies.api import NO_WORK, UNKNOWN_PACE, Ask, Pace, Work
from router.fleet.glance import Glance, Later
from router.fleet.running import Mark, Running

_LEFT_UNTIL_SEEN: Final = 0.1
"""Of the prompt of a call that streams, while its first token has not come: it cannot have been prefilled."""
_NO_TOKEN: Final = 1e-6
"""What rounding may leave of a prompt."""
_LATELY_S: Final = 4.0
"""How long it takes until what was prefilled counts for a third: about as long as an answer."""


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
        tokens = running.left_tokens - least
        if tokens <= 0.0:
            return most_s  # it waits for its first token to be seen
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
        """In the time that it takes to copy the lists of running calls; see `Glance` for the rest."""
        self._advance(now_s)
        if not self._prefilling and not self._decoding:
            return NO_WORK._replace(at_s=now_s, prefill_0_1=self._prefill_0_1())
        rows, backlog_tokens = self._rows + self.beside, self._waiting_tokens()
        before = [(running, running.left_tokens) for running in self._prefilling]
        glance = Glance(now_s, self._steps, self.pace, rows, backlog_tokens, tuple(self._decoding), before)
        ends_s, protected = Later(glance.ends_s), Later(glance.promises)
        return Work(now_s, float(self._rows), len(before), backlog_tokens, ends_s, protected, self._prefill_0_1())

    def _prefill_0_1(self) -> float:
        return min(1.0, self._lately_s / _LATELY_S)

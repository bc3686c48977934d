"""An inference server in virtual time: continuous batching with chunked prefill, a waiting line, a prompt cache.

No I/O, no clock, no chance: time is an argument and never goes back. Whoever drives it asks `next_s`, goes there and
calls `run`; or, if tokens have to be seen one by one, goes from `step_end_s` to `step_end_s`.

Between two moments at which anything but one more token happens, steps are alike: the same sequences decode, each step
takes `growth_s` longer than the one before (contexts grow). Such a stretch is one event, however many steps it has.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence as Items
from typing import NamedTuple

from router.simulate.memory import Blocks, Memory, Slots
from router.simulate.pace import EngineSpec, Flavour
from router.simulate.sequence import Sequence, Stage

_EARLY = 1e-9
"""Share of a step by which rounding may bring its end forward."""


class Load(NamedTuple):
    """What the engines' own metrics say."""

    running: int
    waiting: int
    cache_used_0_1: float


class SimulatedEngine:
    """One engine. All times in seconds on one virtual clock."""

    def __init__(self, spec: EngineSpec) -> None:
        self.spec = spec
        self._memory: Memory = Slots(spec) if spec.flavour is Flavour.SLOTS else Blocks(spec)
        self._limit = spec.sequences
        self._speed = 1.0
        self._waiting: list[tuple[int, int, Sequence]] = []
        self._waiting_calls = 0
        self._prefilling: list[Sequence] = []
        self._decoding: dict[int, Sequence] = {}
        """By order; the last is the youngest."""
        self._ends: list[tuple[int, int, Sequence]] = []
        """Number of the step with which a decoding sequence ends; those that left early are passed over."""
        self._context_tokens = 0
        """Of all that decode."""
        self._order = 0
        self._step = 0
        """Steps that have ended."""
        self._start_s = 0.0
        """When the stretch began, or what of it is left."""
        self._steps = 0
        """Of the stretch; 0: nothing to do."""
        self._first_s = 0.0
        self._growth_s = 0.0
        self._ran_s = -math.inf
        """Up to when everything has happened."""
        self._chunks: list[tuple[Sequence, int]] = []
        """What the step prefills; a stretch with any is one step."""
        self._told: list[Sequence] = []
        self.preemptions = 0
        self.prefilled_tokens = 0
        self.decoded_tokens = 0

    # --- what goes in

    def submit(
        self,
        now_s: float,
        *,
        prompt_tokens: int,
        output_tokens: int,
        blocks: Items[int] = (),
        full_blocks: Items[int] = (),
        priority: int = 0,
        tag: object = None,
    ) -> Sequence:
        """A call arrives.

        `blocks`: chained hashes of the complete blocks of the prompt, `full_blocks`: the same of prompt and answer,
        for a prompt that will continue both. The answer ends where the context does. Raises `ValueError` for a prompt
        that is empty or does not fit.
        """
        if not 0 < prompt_tokens < self.spec.context_tokens or output_tokens < 1:
            raise ValueError(f"{prompt_tokens} + {output_tokens} tokens in {self.spec.context_tokens}")
        sequence = Sequence(
            prompt_tokens=prompt_tokens,
            output_tokens=min(output_tokens, self.spec.context_tokens - prompt_tokens),
            blocks=blocks,
            full_blocks=full_blocks if len(full_blocks) >= len(blocks) else blocks,
            priority=priority if self.spec.by_priority else 0,
            tag=tag,
            order=self._order,
            submitted_s=now_s,
        )
        self._order += 1
        self._run(now_s)
        self._queue(sequence)
        if not self._steps:
            self._start_s = max(self._start_s, now_s)
            self._plan()
        elif self._running() < self._limit and self._head() is sequence:
            self._steps = 1  # it joins when the running step ends
        return sequence

    def cancel(self, sequence: Sequence, now_s: float) -> None:
        """The client has left. Its place is free when the running step ends; nothing happens if it has ended."""
        self._run(now_s)
        stage = sequence.stage
        if stage is Stage.WAITING:
            self._waiting_calls -= 1
            sequence.stage = Stage.CANCELLED
        elif stage is Stage.PREFILL:
            self._prefilling.remove(sequence)
            self._let_go(sequence, Stage.CANCELLED)
        elif stage is Stage.DECODE:
            self._let_go(sequence, Stage.CANCELLED)
        if stage is not Stage.ENDED and self._steps:
            self._steps = 1  # somebody who waits may fit now

    def resize(self, sequences: int, now_s: float) -> None:
        """From now on at most so many at once, and never more than it was made for; those that run stay."""
        self._run(now_s)
        self._limit = min(sequences, self.spec.sequences)
        self._replan(now_s)

    def change_speed(self, speed: float, now_s: float) -> None:
        """From the next step on `speed` times as fast as its specification says."""
        self._run(now_s)
        self._speed = speed
        self._replan(now_s)

    # --- what comes out

    def load(self) -> Load:
        return Load(self._running(), self._waiting_calls, self._memory.used_0_1)

    def next_s(self) -> float:
        """When something happens other than one more token; now, if it has and was not told; infinite when idle."""
        if self._told:
            return self._ran_s
        return self._start_s + self._lasts_s(self._steps) if self._steps else math.inf

    def step_end_s(self) -> float:
        """When the next step ends; infinite when idle."""
        return self._start_s + self._first_s if self._steps else math.inf

    def tokens_out(self, sequence: Sequence) -> int:
        """Tokens that it has generated, as of the last `run`."""
        if sequence.stage is Stage.ENDED:
            return sequence.output_tokens
        return sequence.recomputed_tokens + self._decoded(sequence)

    def tokens_at(self, sequence: Sequence, now_s: float) -> int:
        """The same as of `now_s`. What happens until then is told by the next `run`."""
        if now_s != self._ran_s:  # all that run are asked at one instant
            self._run(now_s)
        if sequence.stage is Stage.DECODE:
            return sequence.recomputed_tokens + 1 + self._step - sequence.decode_from
        return self.tokens_out(sequence)

    def running(self) -> Items[Sequence]:
        """Those that were admitted and have not ended."""
        return [*self._prefilling, *self._decoding.values()]

    def decoding(self) -> Items[Sequence]:
        """Those that get a token with each step, the longest running first."""
        return list(self._decoding.values())

    def run(self, now_s: float) -> list[Sequence]:
        """Everything up to and including `now_s`.

        Returns what got its first token or its end since the last call of `run`, in the order of time; what got both,
        twice. A preempted sequence gets no second first token.
        """
        self._run(now_s)
        told, self._told = self._told, []
        return told

    # --- steps

    def _run(self, now_s: float) -> None:
        self._ran_s = now_s
        while self._steps:
            lasts_s = self._lasts_s(self._steps)
            if self._start_s + lasts_s > now_s:
                self._catch_up(now_s)
                return
            self._start_s += lasts_s
            self._advance(self._steps)
            self._complete()
            self._plan()

    def _replan(self, now_s: float) -> None:
        if self._steps:
            self._steps = 1
        else:
            self._start_s = max(self._start_s, now_s)
            self._plan()

    def _lasts_s(self, steps: int) -> float:
        return steps * self._first_s + self._growth_s * (steps * (steps - 1) / 2)

    def _catch_up(self, now_s: float) -> None:
        """Count the steps of the stretch that have ended; the last one has not."""
        if self._steps == 1 or (elapsed_s := now_s - self._start_s) < self._first_s * (1 - _EARLY):
            return
        if self._growth_s:
            half = self._first_s / self._growth_s - 0.5
            steps = int(math.sqrt(half * half + 2 * elapsed_s / self._growth_s) - half + _EARLY)
        else:
            steps = int(elapsed_s / self._first_s + _EARLY)
        steps = min(max(steps, 1), self._steps - 1)
        self._start_s += self._lasts_s(steps)
        self._first_s += steps * self._growth_s
        self._steps -= steps
        self._advance(steps)

    def _advance(self, steps: int) -> None:
        tokens = steps * len(self._decoding)
        self._step += steps
        self._context_tokens += tokens
        self.decoded_tokens += tokens
        self._memory.grow(tokens)

    def _complete(self) -> None:
        """The stretch has ended: who has its first token, and who its last."""
        for sequence, tokens in self._chunks:
            if sequence.stage is not Stage.PREFILL:
                continue  # it left while the step ran
            sequence.left_tokens -= tokens
            self.prefilled_tokens += tokens
            self._memory.computed(sequence)
            if not sequence.left_tokens:
                self._prefilling.remove(sequence)
                self._begin_decoding(sequence)
        while self._ends and self._ends[0][0] <= self._step:
            number, _, sequence = heapq.heappop(self._ends)
            if sequence.end_step == number:
                sequence.end_s = self._start_s
                self._let_go(sequence, Stage.ENDED)
                self._told.append(sequence)

    def _begin_decoding(self, sequence: Sequence) -> None:
        sequence.stage = Stage.DECODE
        sequence.decode_from = self._step
        self._decoding[sequence.order] = sequence
        self._context_tokens += sequence.prefill_tokens + 1
        self.decoded_tokens += 1
        self._memory.grow(1)
        sequence.end_step = self._step + sequence.output_tokens - sequence.recomputed_tokens - 1
        heapq.heappush(self._ends, (sequence.end_step, sequence.order, sequence))
        if sequence.first_s is None:
            sequence.first_s = self._start_s
            self._told.append(sequence)

    def _decoded(self, sequence: Sequence) -> int:
        """Tokens since it was admitted last."""
        return 1 + self._step - sequence.decode_from if sequence.stage is Stage.DECODE else 0

    def _let_go(self, sequence: Sequence, stage: Stage) -> None:
        decoded = self._decoded(sequence)
        if sequence.stage is Stage.DECODE:
            del self._decoding[sequence.order]
            self._context_tokens -= sequence.prefill_tokens + decoded
        self._memory.release(sequence, decoded, complete=stage is Stage.ENDED)
        sequence.recomputed_tokens += decoded
        sequence.end_step = -1
        sequence.stage = stage

    # --- who is next

    def _running(self) -> int:
        return len(self._prefilling) + len(self._decoding)

    def _queue(self, sequence: Sequence) -> None:
        heapq.heappush(self._waiting, (sequence.priority, sequence.order, sequence))
        self._waiting_calls += 1

    def _head(self) -> Sequence | None:
        while self._waiting:
            sequence = self._waiting[0][2]
            if sequence.stage is Stage.WAITING:
                return sequence
            heapq.heappop(self._waiting)
        return None

    def _plan(self) -> None:
        """The next stretch, from the moment at which the last one ended."""
        admits = self._make_room()
        pace, decoding = self.spec.pace, len(self._decoding)
        self._chunks = self._fill(pace.step_tokens - decoding, admits=admits)
        if not self._chunks and not decoding:
            self._steps = 0
            return
        self._first_s = (
            pace.step_s
            + pace.sequence_s * decoding
            + pace.context_token_s * self._context_tokens
            + (self._prefill_s(self._chunks) if self._chunks else 0.0)
        ) / self._speed
        self._growth_s = pace.context_token_s * decoding / self._speed
        self._steps = 1 if self._chunks else self._steps_alike(decoding)

    def _prefill_s(self, chunks: Items[tuple[Sequence, int]]) -> float:
        pace = self.spec.pace
        took_s = sum(tokens for _, tokens in chunks) / pace.prefill_tokens_per_s + pace.prefill_step_s
        if pace.prefill_pair_s:
            pairs = sum(tokens * (each.prefill_tokens - each.left_tokens + tokens / 2) for each, tokens in chunks)
            took_s += pace.prefill_pair_s * pairs
        return took_s

    def _steps_alike(self, decoding: int) -> int:
        while self._ends[0][2].end_step != self._ends[0][0]:
            heapq.heappop(self._ends)
        steps = self._ends[0][0] - self._step
        room = self._memory.fitting_steps(decoding)
        return steps if room is None else max(1, min(steps, room))

    def _fill(self, budget_tokens: int, *, admits: bool) -> list[tuple[Sequence, int]]:
        """What the next step prefills: prompts that are begun, then those that wait."""
        chunks: list[tuple[Sequence, int]] = []
        for sequence in self._prefilling:
            if budget_tokens <= 0:
                return chunks
            tokens = min(sequence.left_tokens, budget_tokens)
            chunks.append((sequence, tokens))
            budget_tokens -= tokens
        limit = self._limit if admits else 0
        while budget_tokens > 0 and self._running() < limit and (head := self._head()) is not None:
            cached_tokens = self._memory.admit(head)
            if cached_tokens is None:
                break
            self._admit(head, cached_tokens)
            tokens = min(head.left_tokens, budget_tokens)
            chunks.append((head, tokens))
            budget_tokens -= tokens
        return chunks

    def _admit(self, sequence: Sequence, cached_tokens: int) -> None:
        heapq.heappop(self._waiting)
        self._waiting_calls -= 1
        sequence.stage = Stage.PREFILL
        sequence.cached_tokens = min(cached_tokens, sequence.prompt_tokens - 1)
        sequence.left_tokens = sequence.prefill_tokens - sequence.cached_tokens
        if sequence.admitted_s is None:
            sequence.admitted_s = self._start_s
        self._prefilling.append(sequence)

    def _make_room(self) -> bool:
        """Where the next token does not fit for all, the youngest waits again and is computed anew later, as in vLLM.

        Returns whether it was not so: nobody is let in with the same step.
        """
        enough = True
        while self._running() > 1 and self._decoding:
            room = self._memory.fitting_steps(len(self._decoding))
            if room is None or room > 0:
                break
            enough = False
            victim = max(self.running(), key=lambda each: (each.priority, each.order))
            if victim.stage is Stage.PREFILL:
                self._prefilling.remove(victim)
            self._let_go(victim, Stage.WAITING)
            victim.prefill_tokens = victim.prompt_tokens + victim.recomputed_tokens
            self._queue(victim)
            self.preemptions += 1
        return enough

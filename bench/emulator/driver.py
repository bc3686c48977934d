"""A modelled engine on the real clock: one timer, set to the next moment at which somebody has to be told something."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Protocol, cast

from router.simulate.engine import SimulatedEngine
from router.simulate.sequence import Sequence, Stage

_SHORTEST_S = 0.0005


class Listener(Protocol):
    """Whoever waits for a call; the tag of its sequence."""

    follows: bool
    """Wants each token when it is there."""

    def tokens(self, count: int) -> None:
        """So many tokens of the answer are there."""
        ...

    def ended(self, done: Sequence) -> None: ...


class Driver:
    """All times that the engine sees are seconds since this object was made."""

    def __init__(self, engine: SimulatedEngine, ended: Callable[[Sequence], None]) -> None:
        """`ended` hears of each call that got its whole answer, before its client does."""
        self.engine = engine
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._began_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._followed = 0

    def now_s(self) -> float:
        return self._loop.time() - self._began_s

    def submit(
        self,
        listener: Listener,
        *,
        prompt_tokens: int,
        output_tokens: int,
        blocks: tuple[int, ...],
        full_blocks: tuple[int, ...],
        priority: int,
    ) -> Sequence:
        """Raises `ValueError` where it does not fit the context."""
        sequence = self.engine.submit(
            self.now_s(),
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            blocks=blocks,
            full_blocks=full_blocks,
            priority=priority,
            tag=listener,
        )
        self._followed += listener.follows
        self._set_timer()
        return sequence

    def leave(self, sequence: Sequence, listener: Listener) -> None:
        """The client has gone; nothing is told any more."""
        if sequence.stage in (Stage.ENDED, Stage.CANCELLED):
            return
        self._followed -= listener.follows
        self.engine.cancel(sequence, self.now_s())
        self._set_timer()

    def catch_up(self) -> None:
        """Bring the engine to this moment, for somebody who looks at it."""
        self._tick()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due_s = self.engine.step_end_s() if self._followed else self.engine.next_s()
        if due_s < math.inf:
            when_s = max(self._began_s + due_s, self._loop.time() + _SHORTEST_S)
            self._timer = self._loop.call_at(when_s, self._tick)
        else:
            self._timer = None

    def _tick(self) -> None:
        for sequence in self.engine.run(self.now_s()):
            if sequence.stage is Stage.ENDED:
                self._end(sequence)
        if self._followed:
            for sequence in self.engine.decoding():
                listener = cast(Listener, sequence.tag)
                if listener.follows:
                    listener.tokens(self.engine.tokens_out(sequence))
        self._set_timer()

    def _end(self, sequence: Sequence) -> None:
        """Told once, though what had its first token since the last tick is in the list twice."""
        if sequence.tag is None:
            return
        listener = cast(Listener, sequence.tag)
        sequence.tag = None
        self._followed -= listener.follows
        self._ended(sequence)
        listener.tokens(sequence.output_tokens)
        listener.ended(sequence)

"""Clients that call a modelled engine one after another through a backend's own books, in virtual time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from random import Random

from classifiers.api import CallClass, Features, Source, Verdict
from classifiers.lengths import Lengths
from policies.api import Ask, ClassRules, Lane, Pace
from policies.outlook import Outlook
from router.engines.api import Identity, Ready
from router.fleet.backend import Backend
from router.fleet.evidence import Answered
from router.fleet.fleet import Fleet
from router.fleet.ledger import Lease, Outcome
from router.settings.model import Settings
from router.simulate.engine import SimulatedEngine
from router.simulate.pace import EngineSpec, Flavour
from router.simulate.sequence import Sequence, Stage


@dataclass(slots=True)
class Went:
    """One call: what was predicted when it was sent, and what it saw, in seconds since then."""

    ask: Ask
    lease: Lease
    sequence: Sequence
    stream: bool
    pace: Pace

    @property
    def predicted(self) -> Outlook:
        assert self.lease.running is not None
        assert self.lease.running.predicted is not None
        return self.lease.running.predicted

    @property
    def first_s(self) -> float:
        assert self.sequence.first_s is not None
        return self.sequence.first_s

    @property
    def end_s(self) -> float:
        assert self.sequence.end_s is not None
        return self.sequence.end_s

    @property
    def first_ratio(self) -> float:
        return (self.first_s - self.lease.opened_s) / self.predicted.first_s

    @property
    def tpot_ratio(self) -> float:
        return (self.end_s - self.first_s) / (self.sequence.output_tokens - 1) / self.predicted.tpot_s

    @property
    def whole_ratio(self) -> float:
        """Had the length of the answer been known."""
        expected_s = self.predicted.first_s + (self.sequence.output_tokens - 1) * self.predicted.tpot_s
        return (self.end_s - self.lease.opened_s) / expected_s


class Loop:
    """`at_once` clients; each thinks for a moment, then calls."""

    def __init__(self, spec: EngineSpec, *, at_once: int, seed: int = 0, streams: float = 0.5, pause_s: float = 0.2):
        self.spec = spec
        self.engine = SimulatedEngine(spec)
        self.fleet = Fleet(Settings.model_validate({"backends": [{"name": "it", "url": "http://127.0.0.1:1"}]}))
        self.backend: Backend = self.fleet.backends()[0]
        slots = spec.sequences if spec.flavour is Flavour.SLOTS else None
        self.fleet.identified(self.backend, Identity(engine=spec.flavour.value, slots=slots, models=("m",)))
        self.fleet.probed(self.backend, Ready(), None, since_s=0.0, now_s=0.0)
        self.went: list[Went] = []
        self.late: Callable[[float], float] = lambda seconds: seconds
        """What the router believes to have seen, for outliers."""
        self._chance = Random(seed)
        self._streams = streams
        self._pause_s = pause_s
        self._order = count()
        self._calls: list[tuple[float, int]] = []
        for _ in range(at_once):
            self._soon(0.0)

    def _soon(self, now_s: float) -> None:
        heapq.heappush(self._calls, (now_s + self._chance.expovariate(1 / self._pause_s), next(self._order)))

    def run(self, calls: int) -> list[Went]:
        """Until so many more have ended. They are returned in that order."""
        before = len(self.went)
        while len(self.went) < before + calls:
            call_s = self._calls[0][0] if self._calls else math.inf
            if call_s <= self.engine.next_s():
                heapq.heappop(self._calls)
                self._serve(call_s)
                self._call(call_s)
            else:
                self._serve(self.engine.next_s())
        return self.went[before : before + calls]

    def _call(self, now_s: float) -> None:
        chance = self._chance
        prompt_tokens = min(8_000, max(8, round(chance.lognormvariate(math.log(300), 0.9))))
        output_tokens = max(2, round(chance.lognormvariate(math.log(90), 0.5)))
        stream = chance.random() < self._streams
        ask = Ask(
            features=Features(surface="openai_chat", stream=stream, prompt_tokens=prompt_tokens),
            verdict=Verdict(call_class=CallClass.TTFT, confidence=1.0, source=Source.HEADER, reasons=()),
            rules=ClassRules(lanes=(Lane.LATENCY,), max_wait_s=1.0, slo_ttft_s=0.5, slo_tpot_s=0.05),
            arrived_s=now_s,
            lengths=Lengths(90, 170),
        )
        view = self.backend.view(now_s)
        lease = self.fleet.lease(self.backend, CallClass.TTFT, now_s, slot=True, ask=ask)
        sequence = self.engine.submit(now_s, prompt_tokens=prompt_tokens, output_tokens=output_tokens)
        sequence.tag = Went(ask, lease, sequence, stream, view.pace)

    def _serve(self, now_s: float) -> None:
        for sequence in self.engine.run(now_s):
            went = sequence.tag
            assert isinstance(went, Went)
            if sequence.stage is not Stage.ENDED:
                if went.stream:
                    went.lease.first_token(self.late(went.first_s))
                continue
            if went.lease.closed is not None:
                continue
            end_s = went.end_s
            tells = self.spec.flavour is Flavour.SLOTS
            answered = Answered(
                last_s=end_s if went.stream else None,
                prompt_tokens=sequence.prompt_tokens,
                cached_tokens=sequence.cached_tokens,
                output_tokens=sequence.output_tokens,
                prompt_s=went.first_s - (sequence.admitted_s or 0.0) if tells else None,
                decode_s=end_s - went.first_s if tells else None,
            )
            went.lease.close(Outcome.COMPLETED, end_s, answered)
            self.went.append(went)
            self._soon(end_s)

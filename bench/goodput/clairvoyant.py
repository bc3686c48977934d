"""What can be reached by somebody who knows everything: a schedule found by search, after the fact.

A schedule says for each call which engine gets it and when. It begins as the best of what routers and sketches did and
is then changed at random for the calls that missed: sent elsewhere, sent at once, or the long answers around them held
back. A change stays if the judge likes the whole at least as well. What is found is attainable, so the best possible
lies between it and the fluid bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from bench.goodput.judge import Figures, judge
from bench.goodput.routers import OURS, Own, by_class, unlabelled
from bench.goodput.send import Outcome
from bench.goodput.sketch import MOST_ROWS, Sketch
from bench.goodput.virtual import arriving, outcome_of, settings_of
from bench.mixes.plan import MODEL, Call, Workload
from classifiers.api import CallClass
from router.simulate.calls import Arriving, Became
from router.simulate.driver import Simulation
from router.simulate.engine import SimulatedEngine
from router.simulate.pace import EngineSpec
from router.simulate.sequence import Sequence as InEngine

_LATENESS_WEIGHT = 1e-3
"""So that coming closer to a promise counts a little, and a kept one always more."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Where a call goes, and when on the workload's clock."""

    engine: str
    at_s: float


Schedule = Sequence[Sent]


def clairvoyant(
    workload: Workload, engines: Mapping[str, EngineSpec], *, tries: int, seed: int = 0
) -> tuple[Figures, Schedule]:
    """The best schedule after so many changes. Workloads with faults or calls past the router are refused."""
    if workload.faults or any(call.direct for call in workload.calls):
        raise ValueError(f"{workload.name} has faults, of which a schedule knows nothing")
    search = _Search(workload, engines, Random(seed))
    search.begin()
    for _ in range(tries):
        if search.missed:
            search.change()
    return judge(search.outcomes), search.schedule


def play(
    calls: Sequence[Call], arrivals: Sequence[Arriving], schedule: Schedule, specs: Mapping[str, EngineSpec]
) -> list[Outcome]:
    """What clients see if calls are sent as a schedule says."""
    engines = {name: SimulatedEngine(spec) for name, spec in specs.items()}
    inside: list[InEngine | None] = [None] * len(calls)
    for index in sorted(range(len(calls)), key=lambda each: schedule[each].at_s):
        arrival, sent = arrivals[index], schedule[index]
        inside[index] = engines[sent.engine].submit(
            sent.at_s,
            prompt_tokens=arrival.prompt_tokens,
            output_tokens=arrival.output_tokens,
            blocks=arrival.blocks,
            full_blocks=arrival.full_blocks,
        )
    for engine in engines.values():
        while engine.next_s() < math.inf:
            engine.run(engine.next_s())
    return [
        outcome_of(call, Became(arrival, first_s=each.first_s, end_s=each.end_s, status=200))
        for call, arrival, each in zip(calls, arrivals, inside, strict=True)
        if each is not None
    ]


class _Search:
    def __init__(self, workload: Workload, engines: Mapping[str, EngineSpec], chance: Random) -> None:
        self._workload = workload
        self._calls = workload.calls
        self._engines = engines
        self._chance = chance
        self._arrivals = [arriving(call, unlabelled) for call in workload.calls]
        self.schedule: list[Sent] = []
        self.outcomes: list[Outcome] = []
        self.missed: list[int] = []
        self._score = -math.inf

    def begin(self) -> None:
        """Take the best of what others did."""
        for schedule in self._others():
            self._take_if_better(schedule)

    def _others(self) -> list[list[Sent]]:
        sketches = [(Own(name="sketch", label=by_class), Sketch(most_rows=number)) for number in MOST_ROWS]
        found = []
        for own, policy in [*sketches, *((own, None) for own in OURS)]:
            simulation = Simulation(settings_of(own), self._engines, model=MODEL, policy=policy)
            became = simulation.run([arriving(call, own.label) for call in self._calls])
            found.append([self._sent(each) for each in became])
        return found

    def _sent(self, became: Became) -> Sent:
        if became.placed_s is None:
            return Sent(next(iter(self._engines)), became.call.at_s + 60.0)
        return Sent(became.backend, became.placed_s)

    def _take_if_better(self, schedule: list[Sent]) -> bool:
        outcomes = play(self._calls, self._arrivals, schedule, self._engines)
        score = judge(outcomes).mean_share - _LATENESS_WEIGHT * _lateness(outcomes)
        if score < self._score:
            return False
        self.schedule, self.outcomes, self._score = schedule, outcomes, score
        self.missed = [index for index, outcome in enumerate(outcomes) if not outcome.kept]
        return True

    def change(self) -> None:
        """One change for one call that missed."""
        index = self._chance.choice(self.missed)
        call = self._calls[index]
        schedule = list(self.schedule)
        engine = schedule[index].engine
        kind = self._chance.random()
        if kind < 0.35:
            engine = self._chance.choice(list(self._engines))
        schedule[index] = Sent(engine, call.at_s if kind < 0.7 else schedule[index].at_s)
        if kind > 0.2:
            self._hold_back(schedule, engine, call)
        self._take_if_better(schedule)

    def _hold_back(self, schedule: list[Sent], engine: str, call: Call) -> None:
        """Some of those around the call who do not wait for a first token come later, or go elsewhere."""
        around = [
            index
            for index, sent in enumerate(schedule)
            if sent.engine == engine
            and self._calls[index].label is not CallClass.TTFT
            and self._calls[index] is not call
            and call.at_s - 12.0 <= sent.at_s <= call.at_s + 6.0
        ]
        elsewhere = self._chance.random() < 0.25
        later_s = self._chance.choice((0.5, 2.0, 8.0, 20.0))
        for index in self._chance.sample(around, min(len(around), self._chance.choice((1, 1, 2, 4, 8)))):
            other = self._chance.choice(list(self._engines)) if elsewhere else engine
            schedule[index] = Sent(other, schedule[index].at_s + later_s * self._chance.random())


def _lateness(outcomes: Sequence[Outcome]) -> float:
    """Mean over all calls of how late they were, in parts of what was promised, at most 1 each."""
    return sum(_late(outcome) for outcome in outcomes) / len(outcomes)


def _late(outcome: Outcome) -> float:
    if outcome.kept or outcome.end_s is None:
        return 0.0 if outcome.kept else 1.0
    promise = outcome.call.promise
    if promise.complete_s is not None:
        return min(1.0, outcome.end_s / promise.complete_s - 1)
    first_s = outcome.end_s if outcome.first_s is None else outcome.first_s
    return min(1.0, max(0.05, first_s / (promise.ttft_s or math.inf) - 1))

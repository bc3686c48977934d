"""Tasks in virtual time: each call is sent when those that it waits for were answered by the modelled engines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.goodput.routers import Own
from bench.goodput.send import Outcome
from bench.goodput.virtual import ENGINES, arriving, outcome_of, settings_of
from bench.mixes.plan import MODEL, Call
from bench.pipelines.tasks import Mix, Task
from router.simulate.calls import Arriving, Became
from router.simulate.driver import Simulation
from router.simulate.pace import EngineSpec


@dataclass(slots=True)
class Ran:
    """What became of one task. Times in seconds since its start."""

    task: Task
    step: int = 0
    open: int = 0
    failed: bool = False
    end_s: float | None = None
    """None: a call of it was not answered, and its program gave up."""
    final_s: float | None = None
    """First token of the streamed answer, since it was asked for."""
    calls: int = 0
    wrong: int = 0
    """Calls that were given to another task, or to none from the second step on."""
    prompt_tokens: int = 0
    cached_tokens: int = 0

    @property
    def in_time(self) -> bool:
        return self.end_s is not None and self.end_s <= self.task.promise_s


@dataclass(slots=True)
class Result:
    ran: list[Ran]
    beside: list[Outcome] = field(default_factory=list)


class Stage:
    """The programs: told of each call that has ended, they say which ones come next."""

    def __init__(self, mix: Mix, *, tagged: bool, own: Own) -> None:
        self.ran = [Ran(task) for task in mix.tasks]
        self._tagged = tagged
        self._own = own
        self._of: dict[int, tuple[Ran, Call, Arriving]] = {}

    def first(self) -> list[Arriving]:
        return [call for ran in self.ran for call in self._send(ran, ran.task.at_s)]

    def then(self, became: Became) -> Iterable[Arriving]:
        found = self._of.pop(id(became.call), None)
        if found is None:
            return ()
        ran, call, _ = found
        return self._ended(ran, outcome_of(call, became), became)

    def _send(self, ran: Ran, at_s: float) -> list[Arriving]:
        calls = ran.task.calls(ran.step, at_s, tagged=self._tagged)
        ran.open = len(calls)
        ran.calls += len(calls)
        sent = []
        for call in calls:
            made = arriving(call, self._own.label)
            self._of[id(made)] = (ran, call, made)
            sent.append(made)
        return sent

    def _ended(self, ran: Ran, outcome: Outcome, became: Became) -> Iterable[Arriving]:
        ran.open -= 1
        ran.failed |= not outcome.complete
        ran.prompt_tokens += became.call.prompt_tokens
        ran.cached_tokens += became.cached_tokens
        if ran.task.steps[ran.step].final:
            ran.final_s = outcome.first_s
        if ran.open or ran.failed or outcome.end_s is None:
            return ()
        now_s = outcome.call.at_s + outcome.end_s
        ran.step += 1
        if ran.step == len(ran.task.steps):
            ran.end_s = now_s - ran.task.at_s
            return ()
        return self._send(ran, now_s + ran.task.steps[ran.step].gap_s)


def simulate(
    own: Own, mix: Mix, *, tagged: bool = False, engines: Mapping[str, EngineSpec] = ENGINES, seed: int = 0
) -> Result:
    """`tagged`: programs say in headers which task a call is of, and until when it should end."""
    stage = Stage(mix, tagged=tagged, own=own)
    simulation = Simulation(settings_of(own), engines, model=MODEL, seed=seed, then=stage.then)
    first = stage.first()
    beside = [arriving(call, own.label) for call in mix.calls]
    became = simulation.run([*first, *beside])[len(first) :]
    outcomes = [outcome_of(call, each) for call, each in zip(mix.calls, became, strict=True)]
    return Result(stage.ran, outcomes)


def by_kind(ran: Sequence[Ran]) -> Mapping[str, Sequence[Ran]]:
    """Of the tasks."""
    kinds = sorted({each.task.kind for each in ran})
    return {kind: [each for each in ran if each.task.kind == kind] for kind in kinds}

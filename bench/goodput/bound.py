"""What no router can exceed on a workload and a fleet: calls that are hopeless even alone, and a fluid upper bound.

The bound is a linear program over bins of time. Each call may be served in parts, by both engines at once, with all of
its prompt cached that any earlier call had; it takes prefill and decode work of an engine in bins between its arrival
and its deadlines, and an engine in a bin has N steps of which

    step_s N + sequence_s (decoded tokens) + (prefilled tokens) / rate      <=  length of the bin
    decoded tokens of one call                                            <=  N
    decoded tokens of all                                                 <=  sequences N
    decoded + prefilled tokens                                            <=  step_tokens N

Real engines obey all of this and more (whole calls, order inside a call, steps that are not over when somebody
arrives), so the optimum is at least what can be reached. Context cost is left out, which only raises it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from bench.emulator.reading import answer_text, blocks
from bench.mixes.plan import Call, Workload
from router.simulate.engine import SimulatedEngine
from router.simulate.pace import EngineSpec

BIN_S = 2.0
_LONG_S = 20.0
"""Who has as long as this is not held to the pace of single steps: rows of the program that hardly ever bind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    mean_share: float
    """Most of the mean of the classes' shares."""
    solo_share: float
    """The same if every call had an idle fleet to itself: what is missing to 1 is unattainable for anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A call as the program sees it. Times on the workload's clock."""

    weight: float
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    from_s: float
    prefilled_by_s: float
    done_by_s: float


def bound(workload: Workload, engines: Mapping[str, EngineSpec]) -> Bound:
    calls = [call for call in workload.calls if not call.direct]
    counts = {label: sum(call.label is label for call in calls) for label in {call.label for call in calls}}
    cached = _best_cached(workload.calls)
    jobs, solo = [], 0.0
    for call in calls:
        job = _job(call, cached[id(call)], 1 / counts[call.label] / len(counts))
        if any(_alone(call, job, spec) for spec in engines.values()):
            jobs.append(job)
            solo += job.weight
    return Bound(mean_share=_fluid(jobs, list(engines.values())) if jobs else 0.0, solo_share=solo)


def _best_cached(calls: Sequence[Call]) -> dict[int, int]:
    """Tokens of each prompt that some call before it had, in prompt or answer."""
    size = 64
    seen: set[int] = set()
    found: dict[int, int] = {}
    for call in calls:
        asked = call.asked
        leading = 0
        for block in blocks(asked.text, size):
            if block not in seen:
                break
            leading += size
        found[id(call)] = min(leading, asked.prompt_tokens - 1)
        answer = "" if asked.tool else answer_text(asked.seed, asked.output_tokens)
        seen.update(blocks(asked.text + answer, size))
    return found


def _job(call: Call, cached_tokens: int, weight: float) -> _Job:
    promise, asked = call.promise, call.asked
    whole_s = math.inf if promise.complete_s is None else promise.complete_s
    first_s = math.inf if promise.ttft_s is None else promise.ttft_s
    if promise.tpot_s is not None and promise.ttft_s is not None and call.stream:
        whole_s = min(whole_s, promise.ttft_s + promise.tpot_s * (asked.output_tokens - 1))
    if promise.ttft_s is not None and not call.stream:
        whole_s = min(whole_s, promise.ttft_s)
    return _Job(
        weight=weight,
        prompt_tokens=asked.prompt_tokens,
        cached_tokens=cached_tokens,
        output_tokens=asked.output_tokens,
        from_s=call.at_s,
        prefilled_by_s=call.at_s + min(first_s, whole_s),
        done_by_s=call.at_s + whole_s,
    )


def _alone(call: Call, job: _Job, spec: EngineSpec) -> bool:
    """Whether an idle engine that has the prompt cached keeps the promise."""
    engine = SimulatedEngine(spec)
    uncached = job.prompt_tokens - job.cached_tokens
    sequence = engine.submit(0.0, prompt_tokens=max(1, uncached), output_tokens=job.output_tokens)
    while engine.next_s() < math.inf:
        engine.run(engine.next_s())
    assert sequence.first_s is not None
    assert sequence.end_s is not None
    at_s = job.from_s
    return at_s + sequence.first_s <= job.prefilled_by_s and at_s + sequence.end_s <= job.done_by_s


class _Rows:
    """Sparse inequalities, collected one by one."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, float]] = []
        self.limits: list[float] = []

    def add(self, terms: Iterator[tuple[int, float]] | Sequence[tuple[int, float]], limit: float) -> None:
        row = len(self.limits)
        self._entries += [(row, column, value) for column, value in terms]
        self.limits.append(limit)

    def matrix(self, columns: int) -> coo_array:
        rows, places, values = zip(*self._entries, strict=True)
        return coo_array((values, (rows, places)), shape=(len(self.limits), columns))


def _fluid(jobs: Sequence[_Job], specs: Sequence[EngineSpec]) -> float:
    """Optimum of the program at the head of this module: the weights of what is served."""
    last_s = max(job.from_s + min(job.done_by_s - job.from_s, 120.0) for job in jobs)
    bins = math.ceil(last_s / BIN_S) + 1
    columns = 0

    def column() -> int:
        nonlocal columns
        columns += 1
        return columns - 1

    steps = [[column() for _ in range(bins)] for _ in specs]
    served = [[column() for _ in specs] for _ in jobs]
    less, equal = _Rows(), _Rows()
    prefill: list[list[list[int]]] = [[[] for _ in range(bins)] for _ in specs]
    decode: list[list[list[int]]] = [[[] for _ in range(bins)] for _ in specs]
    for job, shares in zip(jobs, served, strict=True):
        less.add([(share, 1.0) for share in shares], 1.0)
        first, mid = int(job.from_s / BIN_S), min(bins - 1, int(min(job.prefilled_by_s, last_s) / BIN_S))
        last = min(bins - 1, int(min(job.done_by_s, last_s) / BIN_S))
        for engine, share in enumerate(shares):
            parts = {number: column() for number in range(first, mid + 1)}
            for number, part in parts.items():
                prefill[engine][number].append(part)
            equal.add(
                [*((part, 1.0) for part in parts.values()), (share, -float(job.prompt_tokens - job.cached_tokens))], 0.0
            )
            tokens = {number: column() for number in range(first, last + 1)}
            for number, part in tokens.items():
                decode[engine][number].append(part)
                if (last - first) * BIN_S < _LONG_S:
                    less.add([(part, 1.0), (steps[engine][number], -1.0)], 0.0)
            # the first token comes with the prefill
            equal.add([*((part, 1.0) for part in tokens.values()), (share, -float(job.output_tokens - 1))], 0.0)
    for engine, spec in enumerate(specs):
        pace = spec.pace
        for number in range(bins):
            step, first_work, more = steps[engine][number], prefill[engine][number], decode[engine][number]
            less.add(
                [
                    (step, pace.step_s),
                    *((part, pace.sequence_s) for part in more),
                    *((part, 1 / pace.prefill_tokens_per_s) for part in first_work),
                ],
                BIN_S,
            )
            less.add([(step, -float(spec.sequences)), *((part, 1.0) for part in more)], 0.0)
            less.add([(step, -float(pace.step_tokens)), *((part, 1.0) for part in (*more, *first_work))], 0.0)
    gain = np.zeros(columns)
    for job, shares in zip(jobs, served, strict=True):
        gain[shares] = -job.weight
    solved = linprog(
        gain,
        A_ub=less.matrix(columns),
        b_ub=less.limits,
        A_eq=equal.matrix(columns),
        b_eq=equal.limits,
        method="highs-ipm",
    )
    if solved.status != 0:
        raise ArithmeticError(f"the linear program was not solved: {solved.message}")
    return float(-solved.fun)

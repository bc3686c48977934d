"""How fast a backend is, from what its log says of calls: the pace with which a modelled engine gives the same times.

The calls that a backend got are put into a modelled engine at the instants at which it got them; a search changes step
time, time per sequence and prefill rate until first tokens and ends come when they came then. So waiting inside the
engine, which a formula for single calls would take for slowness, is accounted for. What other clients did there is not
in the log and shows as slowness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, median
from typing import Final

from router.replay.recorded import Recorded
from router.replay.sending import Sharing
from router.simulate.engine import SimulatedEngine
from router.simulate.pace import EngineSpec, Pace

FEWEST: Final = 20
"""Calls below which nothing is concluded."""
MOST: Final = 800
"""Calls that are looked at, the last ones."""
_FACTORS: Final = (2.0, 1.3, 1.1, 1.03)
_ROUNDS: Final = 4
"""At most, for each factor."""
_MOST_LOG: Final = 1.5
"""One call that was stuck for a minute must not outweigh hundreds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    spec: EngineSpec
    calls: int
    first_error: float | None
    """Median relative error of the time to first token over these calls; None: none of them streamed."""
    whole_error: float
    """The same of the time to the end."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """One call on one backend. Times in seconds, on the clock of the log."""

    placed_s: float
    prompt_tokens: int
    output_tokens: int
    first_s: float | None
    end_s: float
    complete: bool
    blocks: tuple[Sequence[int], Sequence[int]]

    @property
    def until_first_s(self) -> float | None:
        """Since it was placed; None: there is none that could be measured."""
        return self.first_s - self.placed_s if self.first_s is not None and self.first_s > self.placed_s else None


def fitted(
    calls: Sequence[Recorded], backend: str, guess: EngineSpec, tried: Callable[[], None] = lambda: None
) -> Fitted | None:
    """The engine as the log shows it; None: there are too few calls to tell. `tried` is told of each trial."""
    seen = _seen(calls, backend, guess)[-MOST:]
    whole = [each for each in seen if each.complete]
    if len(whole) < FEWEST:
        return None
    spec = _search(seen, replace(guess, pace=_first_guess(whole, guess.pace)), tried)
    firsts, ends = _ratios(spec, seen)
    return Fitted(
        spec=spec,
        calls=len(whole),
        first_error=median(abs(math.expm1(ratio)) for ratio in firsts) if firsts else None,
        whole_error=median(abs(math.expm1(ratio)) for ratio in ends),
    )


def _seen(calls: Sequence[Recorded], backend: str, guess: EngineSpec) -> list[_Seen]:
    sharing = Sharing(guess.block_tokens)
    found = []
    for call in calls:
        logged = call.logged
        if logged is None or logged.backend != backend or call.prompt_tokens >= guess.context_tokens:
            continue
        placed_s = call.at_s + logged.waited_s
        found.append(
            _Seen(
                placed_s=placed_s,
                prompt_tokens=call.prompt_tokens,
                output_tokens=call.output_tokens,
                first_s=call.at_s + logged.ttft_s if logged.ttft_s is not None else None,
                end_s=max(call.at_s + logged.complete_s, placed_s + 1e-4),
                complete=logged.outcome == "completed",
                blocks=sharing.blocks(call),
            )
        )
    return sorted(found, key=lambda each: each.placed_s)


def _first_guess(seen: Sequence[_Seen], pace: Pace) -> Pace:
    """From quiet moments: the fast quarter of gaps between tokens, and of prefills."""
    gaps = [
        (each.end_s - (each.first_s or each.placed_s)) / (each.output_tokens - 1)
        for each in seen
        if each.output_tokens > 1
    ]
    rates = [each.prompt_tokens / prefill_s for each in seen if (prefill_s := each.until_first_s) is not None]
    gap_s = max(1e-5, _at(gaps, 0.25)) if gaps else pace.step_s + pace.sequence_s
    return replace(
        pace,
        step_s=0.8 * gap_s,
        sequence_s=0.1 * gap_s,
        prefill_tokens_per_s=_at(rates, 0.9) if rates else pace.prefill_tokens_per_s,
    )


def _at(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def _search(seen: Sequence[_Seen], spec: EngineSpec, tried: Callable[[], None]) -> EngineSpec:
    """Change one number at a time, by ever smaller factors, and keep what brings the times nearer."""
    best = _loss(spec, seen)
    for factor in _FACTORS:
        for _ in range(_ROUNDS):
            before = best
            for change in _changes(factor):
                other = replace(spec, pace=change(spec.pace))
                loss = _loss(other, seen)
                tried()
                if loss < best:
                    spec, best = other, loss
            if best > 0.99 * before:
                break
    return spec


def trials() -> int:
    """The most that a search makes."""
    return len(_FACTORS) * _ROUNDS * len(_changes(2.0))


_Change = Callable[[Pace], Pace]


def _changes(factor: float) -> list[_Change]:
    return [partial(change, by=by) for by in (factor, 1 / factor) for change in (_steps, _sequences, _prefill, _traded)]


def _steps(pace: Pace, *, by: float) -> Pace:
    return replace(pace, step_s=by * pace.step_s)


def _sequences(pace: Pace, *, by: float) -> Pace:
    return replace(pace, sequence_s=by * pace.sequence_s)


def _prefill(pace: Pace, *, by: float) -> Pace:
    return replace(pace, prefill_tokens_per_s=by * pace.prefill_tokens_per_s)


def _traded(pace: Pace, *, by: float) -> Pace:
    """A step of one sequence stays as long as it was."""
    alone_s = pace.step_s + pace.sequence_s
    sequence_s = min(0.9 * alone_s, by * pace.sequence_s)
    return replace(pace, sequence_s=sequence_s, step_s=alone_s - sequence_s)


def _loss(spec: EngineSpec, seen: Sequence[_Seen]) -> float:
    firsts, ends = _ratios(spec, seen)
    return sum(fmean(min(_MOST_LOG, abs(each)) for each in some) for some in (firsts, ends) if some)


def _ratios(spec: EngineSpec, seen: Sequence[_Seen]) -> tuple[list[float], list[float]]:
    """Logarithms of modelled over logged times since the call was placed: to first tokens, and to ends."""
    engine = SimulatedEngine(spec)
    going = []
    for each in seen:
        blocks, full_blocks = each.blocks
        going.append(
            engine.submit(
                each.placed_s,
                prompt_tokens=each.prompt_tokens,
                output_tokens=each.output_tokens,
                blocks=blocks,
                full_blocks=full_blocks,
            )
        )
    while engine.next_s() < math.inf:
        engine.run(engine.next_s())
    firsts, ends = [], []
    for each, call in zip(seen, going, strict=True):
        if each.until_first_s is not None and call.first_s is not None:
            firsts.append(math.log((call.first_s - each.placed_s) / each.until_first_s))
        if each.complete and call.end_s is not None:
            ends.append(math.log((call.end_s - each.placed_s) / (each.end_s - each.placed_s)))
    return firsts, ends

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
TRIALS: Final = 70
"""For each width."""
_WIDTHS: Final = (0.7, 0.4, 0.15)
"""How far apart the corners of a search are at first, in logarithms; each search begins where the one before ended."""
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
    spec = _search(seen, guess, _guesses(whole, guess.pace), tried)
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


def _guesses(seen: Sequence[_Seen], pace: Pace) -> list[_Point]:
    """From quiet moments: fast gaps between tokens, and fast prefills; of several kinds, since none is always right."""
    gaps = [
        (each.end_s - (each.first_s or each.placed_s)) / (each.output_tokens - 1)
        for each in seen
        if each.output_tokens > 1
    ]
    rates = [each.prompt_tokens / first_s for each in seen if (first_s := each.until_first_s) is not None]
    gap_s = max(1e-5, _at(gaps, 0.25)) if gaps else pace.step_s + pace.sequence_s
    quick = [_at(rates, share) for share in (0.5, 0.9, 1.0)] if rates else []
    return [
        (math.log(0.8 * gap_s), math.log(share * gap_s), math.log(rate))
        for rate in (*quick, pace.prefill_tokens_per_s)
        for share in (0.02, 0.15)
    ]


def _at(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


_Point = tuple[float, ...]
"""Logarithms of step time, time per sequence, and prefill rate."""


def _paced(spec: EngineSpec, at: _Point) -> EngineSpec:
    step_s, sequence_s, rate = map(math.exp, at)
    return replace(spec, pace=replace(spec.pace, step_s=step_s, sequence_s=sequence_s, prefill_tokens_per_s=rate))


def _search(
    seen: Sequence[_Seen], spec: EngineSpec, guesses: Sequence[_Point], tried: Callable[[], None]
) -> EngineSpec:
    def loss(at: _Point) -> float:
        tried()
        return _loss(_paced(spec, at), seen)

    best = min(guesses, key=loss)
    for width in _WIDTHS:
        best = downhill(loss, best, width, TRIALS)
    return _paced(spec, best)


def trials() -> int:
    """About how many a search makes."""
    return 8 + TRIALS * len(_WIDTHS)


def downhill(loss: Callable[[_Point], float], start: _Point, width: float, trials: int) -> _Point:
    """The simplex search of Nelder and Mead: needs no slopes, and a loss that is a simulation has none."""
    corners = [start, *(_moved(start, place, width) for place in range(len(start)))]
    known = sorted((loss(corner), corner) for corner in corners)
    used = len(known)
    while used < trials:
        (best, _), (second, _), (worst, corner) = known[0], known[-2], known[-1]
        middle = tuple(fmean(axis) for axis in zip(*(point for _, point in known[:-1]), strict=True))
        there = _beyond(corner, middle, 1.0)
        value, used = loss(there), used + 1
        if value < best:
            further = _beyond(corner, middle, 2.0)
            beyond, used = loss(further), used + 1
            known[-1] = min((value, there), (beyond, further))
        elif value < second:
            known[-1] = value, there
        else:
            inside = _beyond(corner, middle, 0.5 if value < worst else -0.5)
            within, used = loss(inside), used + 1
            if within < min(value, worst):
                known[-1] = within, inside
            else:
                nearest = known[0][1]
                halves = [_beyond(point, nearest, -0.5) for _, point in known[1:]]
                known[1:] = [(loss(point), point) for point in halves]
                used += len(halves)
        known.sort()
    return known[0][1]


def _moved(point: _Point, place: int, by: float) -> _Point:
    return tuple(value + by * (number == place) for number, value in enumerate(point))


def _beyond(point: _Point, centre: _Point, share: float) -> _Point:
    """As far on the other side of the centre as `share` says; below 0: on the same side."""
    return tuple(middle + share * (middle - value) for value, middle in zip(point, centre, strict=True))


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

"""The numbers of a server's pace from answers that were measured, and how far its predictions are off.

A first guess comes from formulas: non-negative least squares, for first tokens on relative errors, so that short times
count as much as long ones. Then a search changes all numbers until a modelled engine that gets the same calls at the
same instants gives their first tokens and ends, so what calls do to one another (joining between two steps, sharing
one, waiting) is not taken for slowness. Absolute errors of logarithms count: an answer that a busy machine held up
hardly does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np
from scipy.optimize import nnls

from bench.calibration.client import Seen
from bench.results import percentile
from router.replay.fit import downhill
from router.simulate.engine import SimulatedEngine
from router.simulate.pace import EngineSpec, Pace

Group = Sequence[Seen]
"""Answers of one server on one clock, in the order in which they were asked for; it was idle before."""

LEAST_S = 1e-5
"""Below which a time is none, and cannot be measured through a socket."""
LEAST_TOKEN_S = 1e-7
_WIDTHS = (0.5, 0.25)
"""How far apart the corners of a search are at first, in logarithms; each search begins where the one before ended."""
_TRIALS = 150
_MOST_LOG = 1.5
"""One answer that was stuck for seconds must not outweigh all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """Relative errors of predicted times over calls: median and ninetieth percentile, and their mean with its sign."""

    calls: int
    first_median: float
    first_p90: float
    whole_median: float
    whole_p90: float
    whole_bias: float


def fitted(alone: Sequence[Seen], groups: Sequence[Group], made: EngineSpec) -> EngineSpec:
    """`made` with the pace that was seen: `alone`, one answer after another, each from an idle server, and in groups.

    Sequences and step tokens are those of `made`.
    """
    return _search(guessed(alone, groups, made), [*([seen] for seen in alone), *groups])


def guessed(alone: Sequence[Seen], groups: Sequence[Group], made: EngineSpec) -> EngineSpec:
    """The same by formulas alone, which take a moment. Groups that had no moment of their own say nothing here."""
    together = [group for group in (*([seen] for seen in alone), *groups) if _of_one_moment(group)]
    step_s, sequence_s, context_s = _step(together)
    prefill_step_s, token_s, pair_s = _prefill(alone, step_s, made.pace.step_tokens)
    pace = Pace(
        step_s=step_s,
        sequence_s=sequence_s,
        context_token_s=context_s,
        prefill_tokens_per_s=1 / token_s,
        step_tokens=made.pace.step_tokens,
        prefill_step_s=prefill_step_s,
        prefill_pair_s=pair_s,
    )
    return replace(made, pace=pace)


def _of_one_moment(group: Group) -> bool:
    """Whether all began to decode before the first one was done, so that there is a gap that all of them had."""
    return max(seen.tokens_s[0] for seen in group) < min(seen.tokens_s[-1] for seen in group)


# --- formulas


def _step(together: Sequence[Group]) -> tuple[float, float, float]:
    """Seconds of a step: its own, of each sequence, of each token of context.

    Of groups that were alike the median counts, and errors are absolute: a server that had no time to send hands over
    all tokens at once, so that the gap is next to nothing, of which relative errors would make everything.
    """
    alike: dict[tuple[float, float, float], list[float]] = {}
    for group in together:
        context = sum(seen.prompt_tokens + seen.output_tokens / 2 for seen in group)
        alike.setdefault((1.0, float(len(group)), context), []).append(_gap_s(group))
    gaps = np.array([median(found) for found in alike.values()])
    terms = np.array(list(alike))
    (step_s, sequence_s, context_s), _ = nnls(terms, gaps)
    return max(float(step_s), LEAST_S), float(sequence_s), float(context_s)


def _gap_s(group: Group) -> float:
    """Mean between tokens while all of the group decode: from the last first token on."""
    from_s, until_s = max(seen.tokens_s[0] for seen in group), min(seen.tokens_s[-1] for seen in group)
    counts = [sum(from_s < token_s <= until_s for token_s in seen.tokens_s) for seen in group]
    return (until_s - from_s) / fmean(counts) if sum(counts) else fmean(seen.gap_s for seen in group)


def _prefill(alone: Sequence[Seen], step_s: float, step_tokens: int) -> tuple[float, float, float]:
    """Seconds that a step takes more because it prefills, those of each token, and of each token for one before it."""
    steps = np.array([math.ceil(seen.prompt_tokens / step_tokens) for seen in alone], dtype=float)
    tokens = np.array([float(seen.prompt_tokens) for seen in alone])
    firsts = np.array([seen.first_s for seen in alone])
    left = np.maximum(firsts - steps * step_s, 0.0)
    terms = np.column_stack((steps, tokens, tokens * tokens / 2))
    (prefill_step_s, token_s, pair_s), _ = nnls(terms / firsts[:, None], left / firsts)
    return float(prefill_step_s), max(float(token_s), LEAST_TOKEN_S), float(pair_s)


# --- search


def _search(guess: EngineSpec, groups: Sequence[Group]) -> EngineSpec:
    """The numbers in logarithms. What has no share in a guess begins small, so that it can grow if it has to."""
    pace, longest = guess.pace, max(seen.prompt_tokens for group in groups for seen in group)
    small_s = max(0.02 * (pace.step_s + pace.sequence_s), LEAST_S)
    token_s = 1 / pace.prefill_tokens_per_s
    begin = (
        max(pace.step_s, small_s),
        max(pace.sequence_s, small_s),
        max(pace.context_token_s, small_s / longest),
        token_s,
        max(pace.prefill_step_s, small_s),
        max(pace.prefill_pair_s, 0.02 * token_s / longest),
    )

    def paced(at: tuple[float, ...]) -> EngineSpec:
        step_s, sequence_s, context_s, token_s, prefill_step_s, pair_s = map(math.exp, at)
        found = Pace(
            step_s=step_s,
            sequence_s=sequence_s,
            context_token_s=context_s,
            prefill_tokens_per_s=1 / token_s,
            step_tokens=pace.step_tokens,
            prefill_step_s=prefill_step_s,
            prefill_pair_s=pair_s,
        )
        return replace(guess, pace=found)

    def loss(at: tuple[float, ...]) -> float:
        return _loss(paced(at), groups)

    best = tuple(map(math.log, begin))
    for width in _WIDTHS:
        best = downhill(loss, best, width, _TRIALS)
    return paced(best)


def _loss(spec: EngineSpec, groups: Sequence[Group]) -> float:
    off = []
    for group in groups:
        for seen, (first_s, whole_s) in zip(group, predicted(spec, group), strict=True):
            off.append(min(_MOST_LOG, abs(math.log(first_s / seen.first_s))))
            if seen.output_tokens > 1:
                off.append(min(_MOST_LOG, abs(math.log(whole_s / seen.whole_s))))
    return fmean(off)


# --- predictions


def predicted(spec: EngineSpec, group: Group) -> list[tuple[float, float]]:
    """First and last token of each, in seconds since it was sent, by the model, for the same arrivals."""
    engine = SimulatedEngine(spec)
    calls = [
        engine.submit(seen.sent_s, prompt_tokens=seen.prompt_tokens, output_tokens=seen.output_tokens) for seen in group
    ]
    while engine.next_s() < math.inf:
        engine.run(engine.next_s())
    return [
        ((call.first_s or math.nan) - call.submitted_s, (call.end_s or math.nan) - call.submitted_s) for call in calls
    ]


def errors(real: Sequence[Seen], model: Iterable[tuple[float, float]]) -> Error:
    pairs = list(zip(real, model, strict=True))
    first = [(guess - seen.first_s) / seen.first_s for seen, (guess, _) in pairs]
    whole = [(guess - seen.whole_s) / seen.whole_s for seen, (_, guess) in pairs]
    return Error(
        calls=len(real),
        first_median=median(map(abs, first)),
        first_p90=percentile([abs(each) for each in first], 0.9),
        whole_median=median(map(abs, whole)),
        whole_p90=percentile([abs(each) for each in whole], 0.9),
        whole_bias=fmean(whole),
    )

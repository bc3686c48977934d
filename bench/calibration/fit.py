"""The numbers of a server's pace from a minute of measurements, and how far its predictions are off.

Prompts of several lengths, one at a time, give the prefill; answers side by side, at several numbers and lengths of
context, give the step. Both are non-negative least squares on relative errors, so that short times count as much as
long ones. Then arrivals at random are sent to the server and to the model of it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean, median

import numpy as np
from scipy.optimize import nnls

from bench.calibration.client import Seen, Wanted, ask, prompt
from bench.results import percentile
from router.simulate.engine import SimulatedEngine
from router.simulate.pace import EngineSpec, Pace

PROMPT_WORDS = (16, 64, 256, 768, 1_500)
ANSWER_TOKENS = 48
FEWEST_CALLS = 16
"""That an error is said of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """Relative errors of predicted times over calls: median and ninetieth percentile, and their mean with its sign."""

    calls: int
    first_median: float
    first_p90: float
    whole_median: float
    whole_p90: float
    whole_bias: float


async def measured_pace(
    url: str, model: str, made: EngineSpec, *, seed: int = 0, repeats: int = 3, longest_words: int = 1_500
) -> EngineSpec:
    """`made` with the pace of the server there. Its sequences and step tokens are taken from `made`."""
    chance = Random(seed)
    lengths = [words for words in PROMPT_WORDS if words <= longest_words]
    for words in lengths:  # whatever is slow but once: vLLM compiles for each size of a step
        for number in (1, made.sequences):
            await ask(url, model, [Wanted(at_s=0.0, prompt=prompt(chance, words), output_tokens=4)] * number)
    alone: list[Seen] = []
    for words in lengths:
        for _ in range(repeats):
            alone += await ask(url, model, [Wanted(at_s=0.0, prompt=prompt(chance, words), output_tokens=1)])
    together: list[Sequence[Seen]] = []
    for number in _numbers(made.sequences):
        for words in (lengths[0], lengths[len(lengths) // 2]):
            wanted = [
                Wanted(at_s=0.0, prompt=prompt(chance, words), output_tokens=ANSWER_TOKENS) for _ in range(number)
            ]
            tries = [await ask(url, model, wanted) for _ in range(repeats)]
            together.append(sorted(tries, key=_gap_s)[repeats // 2])
    step_s, sequence_s, context_s = _step(together)
    return replace(
        made,
        pace=Pace(
            step_s=step_s,
            sequence_s=sequence_s,
            context_token_s=context_s,
            prefill_tokens_per_s=_prefill_rate(alone, step_s, made.pace.step_tokens),
            step_tokens=made.pace.step_tokens,
        ),
    )


def _numbers(most: int) -> list[int]:
    return [number for number in (1, 2, 4, 8, 16) if number <= most]


def _prefill_rate(alone: Sequence[Seen], step_s: float, step_tokens: int) -> float:
    """Tokens/s by the median over prompts of what is left of their first token's time without the steps' own."""
    rates = []
    for seen in alone:
        left_s = seen.first_s - math.ceil(seen.prompt_tokens / step_tokens) * step_s
        rates.append((seen.prompt_tokens, seen.prompt_tokens / max(left_s, 1e-5)))
    longer = [rate for tokens, rate in rates if tokens >= max(tokens for tokens, _ in rates) / 8]
    return median(longer)


def _step(together: Sequence[Sequence[Seen]]) -> tuple[float, float, float]:
    """Seconds of a step: its own, of each sequence, of each token of context."""
    gaps = np.array([_gap_s(group) for group in together])
    terms = np.array(
        [
            (1.0, float(len(group)), float(sum(seen.prompt_tokens + len(seen.tokens_s) / 2 for seen in group)))
            for group in together
        ]
    )
    (step_s, sequence_s, context_s), _ = nnls(terms / gaps[:, None], np.ones(len(gaps)))
    return max(float(step_s), 1e-5), float(sequence_s), float(context_s)


def _gap_s(group: Sequence[Seen]) -> float:
    """Mean between tokens while all of the group decode: from the last first token on."""
    from_s, until_s = max(seen.tokens_s[0] for seen in group), min(seen.tokens_s[-1] for seen in group)
    counts = [sum(from_s < token_s <= until_s for token_s in seen.tokens_s) for seen in group]
    if until_s <= from_s or not sum(counts):
        return fmean(seen.gap_s for seen in group)  # they never ran side by side
    return (until_s - from_s) / fmean(counts)


async def check(
    url: str, model: str, spec: EngineSpec, *, seed: int = 1, seconds: float = 6.0, load: float = 0.6
) -> Error:
    """Arrivals at random, `load` of what the model of the server says that it can do, against that model.

    For so many seconds, and longer where the server is so slow that this would be a handful.
    """
    chance = Random(seed)
    wanted = _arrivals(chance, spec, seconds, load)
    real = await ask(url, model, wanted)
    return errors(real, predicted(spec, wanted, real))


def _arrivals(chance: Random, spec: EngineSpec, seconds: float, load: float) -> list[Wanted]:
    pace, words, tokens = spec.pace, 200, 24
    alone_s = words / pace.prefill_tokens_per_s + tokens * (pace.step_s / spec.sequences + pace.sequence_s)
    found: list[Wanted] = []
    at_s = 0.0
    while (at_s := at_s + chance.expovariate(load / alone_s)) < seconds or len(found) < FEWEST_CALLS:
        length = min(1_200, max(8, round(chance.lognormvariate(math.log(words), 0.7))))
        found.append(Wanted(at_s=at_s, prompt=prompt(chance, length), output_tokens=chance.randint(4, 2 * tokens)))
    return found


def predicted(spec: EngineSpec, wanted: Sequence[Wanted], real: Sequence[Seen]) -> list[tuple[float, float]]:
    """First and last token of each, in seconds since it was sent, by the model, for the same arrivals."""
    engine = SimulatedEngine(spec)
    calls = []
    for each, seen in zip(wanted, real, strict=True):
        calls.append(engine.submit(seen.sent_s, prompt_tokens=seen.prompt_tokens, output_tokens=each.output_tokens))
    while engine.next_s() < math.inf:
        engine.run(engine.next_s())
    return [
        ((call.first_s or math.nan) - call.submitted_s, (call.end_s or math.nan) - call.submitted_s) for call in calls
    ]


def errors(real: Sequence[Seen], model: Sequence[tuple[float, float]]) -> Error:
    first = [(guess - seen.first_s) / seen.first_s for seen, (guess, _) in zip(real, model, strict=True)]
    whole = [(guess - seen.whole_s) / seen.whole_s for seen, (_, guess) in zip(real, model, strict=True)]
    return Error(
        calls=len(real),
        first_median=median(map(abs, first)),
        first_p90=percentile([abs(each) for each in first], 0.9),
        whole_median=median(map(abs, whole)),
        whole_p90=percentile([abs(each) for each in whole], 0.9),
        whole_bias=fmean(whole),
    )


def calibrate(url: str, model: str, made: EngineSpec) -> tuple[EngineSpec, Error]:
    """Fit, then check."""

    async def both() -> tuple[EngineSpec, Error]:
        spec = await measured_pace(url, model, made)
        return spec, await check(url, model, spec)

    return asyncio.run(both())

"""A minute of measurements on a server: what its pace is fitted to, and arrivals at random to check it with."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from bench.calibration.client import Asked, Seen, Wanted, ask, prompt
from bench.calibration.fit import Error, errors, fitted, guessed, predicted
from router.simulate.pace import EngineSpec

PROMPT_WORDS = (16, 64, 256, 768, 1_500)
ANSWER_TOKENS = 32
FEWEST_CALLS = 16
"""That an error is said of."""
LOADS = (0.3, 0.6)
PRACTICE_S = 8.0
"""Of arrivals at random that are fitted to, at each load; those of a check are others."""
_WORDS, _MOST_WORDS, _TOKENS = 200, 1_200, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server that is measured. `pid`: its process on this machine, so that it can be told when it had to wait."""

    url: str
    model: str
    pid: int | None = None

    async def ask(self, wanted: Iterable[Wanted]) -> Asked:
        return await ask(self.url, self.model, wanted, self.pid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """How far predictions are off, by the clock on the wall and by the server's own."""

    load: float
    error: Error
    by_its_clock: Error
    stood_still_0_1: float


async def measured_pace(
    target: Target, made: EngineSpec, *, seed: int = 0, repeats: int = 3, longest_words: int = 1_500
) -> EngineSpec:
    """`made` with the pace of the server there. Its sequences and step tokens are taken from `made`."""
    chance = Random(seed)
    lengths = [words for words in PROMPT_WORDS if words <= longest_words]

    def several(number: int, words: int, tokens: int) -> list[Wanted]:
        return [Wanted(at_s=0.0, prompt=prompt(chance, words), output_tokens=tokens) for _ in range(number)]

    for words in lengths:  # whatever is slow but once: engines compile for the sizes of steps
        for number in (1, made.sequences):
            await target.ask(several(number, words, 4))
    alone: list[Seen] = []
    for words in lengths:
        for _ in range(repeats):
            alone += (await target.ask(several(1, words, ANSWER_TOKENS))).by_its_clock
    groups: list[Sequence[Seen]] = []
    for number in _numbers(made.sequences):
        for words in (lengths[0], lengths[len(lengths) // 2]):
            groups += [(await target.ask(several(number, words, ANSWER_TOKENS))).by_its_clock for _ in range(repeats)]
    guess = guessed(alone, groups, made)
    for load in LOADS:
        groups.append((await target.ask(_arrivals(chance, guess, PRACTICE_S, load))).by_its_clock)
    return fitted(alone, groups, made)


def _numbers(most: int) -> list[int]:
    return [number for number in (2, 4, 8, 16) if number <= most]


async def check(
    target: Target, spec: EngineSpec, *, seed: int = 1, seconds: float = 20.0, load: float = 0.6
) -> Checked:
    """Arrivals at random, `load` of what the model of the server says that it can do, against that model.

    For so many seconds, and longer where the server is so slow that this would be a handful.
    """
    asked = await target.ask(_arrivals(Random(seed), spec, seconds, load))
    return Checked(
        load=load,
        error=errors(asked.seen, predicted(spec, asked.seen)),
        by_its_clock=errors(asked.by_its_clock, predicted(spec, asked.by_its_clock)),
        stood_still_0_1=asked.stood_still_0_1,
    )


def work_s(spec: EngineSpec, prompt_tokens: float, output_tokens: float) -> float:
    """Seconds of the engine that a call takes, where steps are shared by as many as there may be."""
    pace = spec.pace
    token_s = pace.step_s / spec.sequences + pace.sequence_s + pace.context_token_s * prompt_tokens
    prefill_s = pace.prefill_step_s + prompt_tokens / pace.prefill_tokens_per_s
    return prefill_s + pace.prefill_pair_s * prompt_tokens**2 / 2 + output_tokens * token_s


def _arrivals(chance: Random, spec: EngineSpec, seconds: float, load: float) -> Iterator[Wanted]:
    """Poisson arrivals of calls of many lengths. A word is one token of the random-weight model."""
    sizes = _sizes(Random(0))
    mean_s = sum(work_s(spec, *next(sizes)) for _ in range(1_000)) / 1_000
    sizes, at_s, number = _sizes(chance), 0.0, 0
    while (at_s := at_s + chance.expovariate(load / mean_s)) < seconds or number < FEWEST_CALLS:
        words, tokens = next(sizes)
        yield Wanted(at_s=at_s, prompt=prompt(chance, words), output_tokens=tokens)
        number += 1


def _sizes(chance: Random) -> Iterator[tuple[int, int]]:
    """Words of prompts and tokens of answers."""
    while True:
        words = round(chance.lognormvariate(math.log(_WORDS), 0.7))
        yield min(_MOST_WORDS, max(8, words)), chance.randint(4, 2 * _TOKENS)


def calibrate(target: Target, made: EngineSpec, loads: Sequence[float]) -> tuple[EngineSpec, list[Checked]]:
    """Fit, then check at each load."""

    async def all_of_it() -> tuple[EngineSpec, list[Checked]]:
        spec = await measured_pace(target, made)
        return spec, [await check(target, spec, load=load) for load in loads]

    return asyncio.run(all_of_it())

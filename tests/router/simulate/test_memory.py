"""Prompts that begin alike are prefilled once: by slot on llama.cpp, by block on vLLM."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from router.simulate.engine import SimulatedEngine
from router.simulate.memory import common
from router.simulate.pace import DESK, RACK, EngineSpec
from router.simulate.sequence import Sequence


class Served:
    """An engine that is given one call after the other."""

    def __init__(self, spec: EngineSpec) -> None:
        self.engine = SimulatedEngine(spec)
        self.now_s = 0.0

    def call(self, blocks: range | tuple[int, ...], *, more: int = 10, output: int = 20) -> Sequence:
        tokens = 64 * len(blocks) + more
        after = (*blocks, *(1_000_000 + number for number in range((more + output) // 64)))
        done = self.engine.submit(
            self.now_s, prompt_tokens=tokens, output_tokens=output, blocks=tuple(blocks), full_blocks=after
        )
        while (next_s := self.engine.next_s()) < math.inf:
            self.now_s = next_s
            self.engine.run(next_s)
        return done


@pytest.mark.parametrize("spec", [DESK, RACK])
def test_the_same_prompt_again_is_prefilled_but_for_its_open_end(spec: EngineSpec) -> None:
    served = Served(spec)
    assert served.call(range(20)).cached_tokens == 0
    again = served.call(range(20))
    assert again.cached_tokens == 1_280
    assert again.first_s is not None
    assert again.first_s - again.submitted_s == pytest.approx(spec.pace.step_s + 10 / spec.pace.prefill_tokens_per_s)


@pytest.mark.parametrize("spec", [DESK, RACK])
def test_a_history_that_goes_on_after_the_answer_finds_the_answer_too(spec: EngineSpec) -> None:
    served = Served(spec)
    served.call(range(10), more=0, output=128)
    longer = (*range(10), 1_000_000, 1_000_001, 77)
    assert served.call(longer).cached_tokens == 64 * 12


@pytest.mark.parametrize("spec", [DESK, RACK])
def test_one_token_at_least_is_computed(spec: EngineSpec) -> None:
    served = Served(spec)
    served.call(range(5), more=0)
    assert served.call(range(5), more=0).cached_tokens in (256, 319)


def test_a_slot_forgets_its_prompt_when_it_gets_another() -> None:
    served = Served(replace(DESK, sequences=1))
    served.call(range(10))
    served.call(range(100, 110))
    assert served.call(range(10)).cached_tokens == 0


def test_of_two_slots_the_one_with_the_longer_common_beginning_is_taken() -> None:
    served = Served(replace(DESK, sequences=2))
    served.call(range(10))
    served.call((20, *range(50, 59)))
    assert served.call((*range(8), 90, 91)).cached_tokens == 64 * 8
    assert served.call((20, *range(50, 59))).cached_tokens == 64 * 10


def test_a_prompt_that_is_hardly_like_any_takes_the_slot_that_is_idle_longest() -> None:
    served = Served(replace(DESK, sequences=2))
    served.call(range(40))
    served.call(range(100, 140))
    served.call((100, *range(200, 239)))  # one block of forty in common: not worth giving up the newer slot
    assert served.call(range(100, 140)).cached_tokens == 64 * 40
    assert served.call(range(40)).cached_tokens == 0


def test_a_call_that_was_cancelled_leaves_what_it_had_computed() -> None:
    engine = SimulatedEngine(DESK)
    blocks = tuple(range(30))
    first = engine.submit(0.0, prompt_tokens=1_920, output_tokens=50, blocks=blocks)
    engine.cancel(first, 0.15)  # one step of 512 tokens is over, the second runs
    second = engine.submit(0.2, prompt_tokens=1_920, output_tokens=50, blocks=blocks)
    engine.run(10.0)
    assert second.cached_tokens == 512


def test_blocks_are_shared_by_calls_that_run_at_the_same_time() -> None:
    engine = SimulatedEngine(RACK)
    blocks = tuple(range(20))
    engine.submit(0.0, prompt_tokens=1_300, output_tokens=500, blocks=blocks)
    engine.run(0.5)
    alone = engine.load().cache_used_0_1
    others = [engine.submit(0.5, prompt_tokens=1_300, output_tokens=500, blocks=blocks) for _ in range(3)]
    engine.run(0.6)
    assert [other.cached_tokens for other in others] == [1_280] * 3
    assert engine.load().cache_used_0_1 < 2 * alone


def test_the_store_drops_what_was_not_used_longest_and_the_end_of_a_prompt_first() -> None:
    served = Served(replace(RACK, cache_tokens=64 * 30))
    served.call(range(10), output=1)
    served.call(range(100, 110), output=1)
    served.call(range(10), output=1)
    served.call(range(200, 212), output=1)
    assert served.call(range(10), output=1).cached_tokens == 640
    assert 0 < served.call(range(100, 110), output=1).cached_tokens < 640


def test_common_counts_leading_blocks_only() -> None:
    assert common((1, 2, 3), (1, 2, 4, 3)) == 2
    assert common((), (1,)) == 0

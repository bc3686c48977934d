"""The bound is one: hopeless calls are left out, capacity is kept, and nothing that was measured is above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bench.goodput.bound import bound
from bench.goodput.judge import judge
from bench.goodput.routers import OURS
from bench.goodput.sketch import Sketch, best, with_rows
from bench.goodput.virtual import ENGINES, simulate
from bench.mixes.flood import flood
from bench.mixes.plan import PROMISES, Call, Client, Workload
from classifiers.api import CallClass, Features, Source, Verdict
from policies.api import Ask, ClassRules, Dispatch, Lane, View, Wait
from router.simulate.pace import RACK

CLIENT = Client(name="x", address="127.0.0.1", user_agent="x", key="x")


def call(label: CallClass, *, at_s: float = 0.0, prompt_tokens: int = 400, tokens: int = 20, number: int = 0) -> Call:
    text = f"{number:06d}" + "x" * (4 * prompt_tokens)
    body: dict[str, Any] = {
        "model": "emulated",
        "messages": [{"role": "user", "content": text}],
        "seed": tokens,
        "stream": True,
    }
    return Call(at_s=at_s, client=CLIENT, body=body, label=label, promise=PROMISES[label])


def workload(calls: Sequence[Call]) -> Workload:
    return Workload(name="made", seed=0, seconds=10.0, calls=calls)


def test_a_few_calls_are_all_within_reach() -> None:
    found = bound(workload([call(label, number=index) for index, label in enumerate(CallClass)]), ENGINES)
    assert found.mean_share == pytest.approx(1.0)
    assert found.solo_share == pytest.approx(1.0)


def test_a_prompt_that_no_engine_prefills_in_time_is_left_out() -> None:
    hopeless = call(CallClass.TTFT, prompt_tokens=9_000)
    found = bound(workload([call(CallClass.TTFT, number=1), hopeless]), ENGINES)
    assert found.solo_share == pytest.approx(0.5)
    assert found.mean_share == pytest.approx(0.5)
    again = bound(workload([hopeless, call(CallClass.TTFT, prompt_tokens=9_000, at_s=5.0)]), ENGINES)
    assert again.solo_share == pytest.approx(0.5), "the second time it may be cached"


def test_more_prefill_than_there_is_time_for_cannot_all_be_kept() -> None:
    calls = [call(CallClass.MIXED, prompt_tokens=2_000, number=number) for number in range(200)]
    found = bound(workload(calls), {"rack": RACK})
    assert found.solo_share == pytest.approx(1.0)
    # 9,000 tokens/s for six seconds and what is left of the last bin
    assert 6 * 9_000 / 2_000 / 200 * 0.9 < found.mean_share < 8 * 9_000 / 2_000 / 200


def test_nothing_that_was_simulated_is_above_the_bound() -> None:
    crowded = flood(1, load=2.5, seconds=15)
    most = bound(crowded, ENGINES).mean_share
    for own in OURS[:3]:
        assert judge(simulate(own, crowded)).mean_share <= most + 1e-6
    assert best(crowded)[1].mean_share <= most + 1e-6


def test_the_best_sketch_is_the_best_of_its_numbers() -> None:
    made = flood(2, seconds=16)
    most_rows, figures = best(made)
    assert figures.mean_share >= max(with_rows(number, made).mean_share for number in (4, 16, 64))
    assert most_rows in (4, 7, 10, 16, 24, 40, 64)


def test_the_sketch_holds_rows_at_its_number_and_leaves_the_desk_to_those_who_wait() -> None:
    def ask(label: CallClass) -> Ask:
        verdict = Verdict(call_class=label, confidence=1.0, source=Source.HEADER, reasons=("x",))
        rules = ClassRules(lanes=(Lane.LATENCY, Lane.THROUGHPUT), max_wait_s=1.0)
        return Ask(features=Features(surface="openai_chat"), verdict=verdict, rules=rules, arrived_s=0.0)

    def views(desk: int, rows: int) -> list[View]:
        by_class = {CallClass.THROUGHPUT: rows}
        return [
            View(name="desk", lane=Lane.LATENCY, engine="llamacpp", cap=4, own=desk),
            View(name="rack", lane=Lane.THROUGHPUT, engine="vllm", cap=64, own=rows, own_by_class=by_class),
        ]

    def where(label: CallClass, desk: int, rows: int) -> str | None:
        match Sketch(most_rows=10).decide(ask(label), views(desk, rows), now_s=0.0, chance=0.5):
            case Dispatch(backend, _):
                return backend
            case Wait():
                return None
            case other:
                raise AssertionError(other)

    assert where(CallClass.TTFT, 3, 10) == "desk"
    assert where(CallClass.TTFT, 4, 10) == "rack"
    assert where(CallClass.MIXED, 2, 10) == "desk"
    assert where(CallClass.MIXED, 3, 10) == "rack"
    assert where(CallClass.THROUGHPUT, 0, 9) == "rack"
    assert where(CallClass.THROUGHPUT, 0, 10) is None

"""What the comparison on real servers sends: the flood, small enough for a machine that does all of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.calibration.measure import work_s
from bench.goodput.real import REAL_TOKENS, as_counted, begun, busy, small_flood
from bench.goodput.virtual import ENGINES
from bench.mixes.flood import flood
from classifiers.api import CallClass
from router.simulate.pace import RACK, Pace


def test_calls_are_few_tokens_long_and_end_where_they_are_told_to() -> None:
    workload = small_flood(1, load=1.0, seconds=20.0)
    assert {call.label for call in workload.calls} == set(CallClass)
    for call in workload.calls:
        assert call.asked.prompt_tokens < 2_500
        assert call.body["max_tokens"] == call.asked.output_tokens
        assert not {"tools", "response_format"} & call.body.keys()
    assert [call.at_s for call in workload.calls] == sorted(call.at_s for call in workload.calls)


def test_prompts_of_two_runs_share_no_beginning_and_are_as_long() -> None:
    workload = small_flood(1, load=0.5, seconds=10.0)
    one, other = begun(workload, 1), begun(workload, 2)
    for first, second in zip(one.calls, other.calls, strict=True):
        assert first.body["messages"][0]["content"][:4] != second.body["messages"][0]["content"][:4]
        assert first.body["messages"][1:] == second.body["messages"][1:]
        assert first.asked.prompt_tokens == second.asked.prompt_tokens


def test_twice_the_calls_keep_a_fleet_twice_as_busy_and_half_the_speed_as_well() -> None:
    once = busy(flood(1, load=1.0), ENGINES)
    assert busy(flood(1, load=2.0), ENGINES) == pytest.approx(2 * once, rel=0.25)
    slow = {name: spec.at(0.5) for name, spec in ENGINES.items()}
    assert busy(flood(1), slow) == pytest.approx(2 * once)


def test_a_prompt_takes_as_long_however_its_tokens_are_counted() -> None:
    measured = Pace(
        step_s=0.01,
        sequence_s=0.001,
        context_token_s=1e-6,
        prefill_tokens_per_s=4_000,
        step_tokens=2_048,
        prefill_step_s=0.02,
        prefill_pair_s=1e-7,
    )
    real, counted = (replace(RACK, pace=pace) for pace in (measured, as_counted(measured)))
    assert work_s(counted, 1_000, 0) == pytest.approx(work_s(real, 1_000 * REAL_TOKENS, 0))
    assert work_s(counted, 0, 50) == pytest.approx(work_s(real, 0, 50))

"""Every workload is well formed, made from its seed alone, and has the shape that its page tells."""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from bench.emulator.reading import blocks
from bench.mixes.catalogue import HELD_OUT, MIXES
from bench.mixes.plan import PROMISES, Workload
from bench.mixes.programs import coding_agents, documents, fan_out, faults
from bench.mixes.traces import VARIABLE, Arrival, NoTraces, load, window
from classifiers.api import CallClass
from router.simulate.pace import DESK

ALL = {**MIXES, **HELD_OUT}
RECORDED = {"chat_bursts", "studio"}


def made(name: str, seed: int = 1, **more: float) -> Workload:
    if name in RECORDED and not os.environ.get(VARIABLE):
        pytest.skip(f"{VARIABLE} is not set: no recorded arrivals")
    return ALL[name](seed, **more)


@pytest.mark.parametrize("name", ALL)
def test_calls_are_in_order_inside_the_time_and_fit_the_servers(name: str) -> None:
    workload = made(name)
    times = [call.at_s for call in workload.calls]
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] < workload.seconds
    for call in workload.calls:
        assert call.promise == PROMISES[call.label]
        assert call.asked.prompt_tokens + call.asked.output_tokens < DESK.context_tokens
        assert call.client.address.startswith("127.")
        for word in ("ttft", "throughput", "mixed"):
            assert word not in call.data.decode()


@pytest.mark.parametrize("name", ALL)
def test_a_seed_gives_the_same_calls_another_seed_others_and_load_more_of_them(name: str) -> None:
    def written(seed: int) -> list[tuple[float, bytes]]:
        return [(call.at_s, call.data) for call in made(name, seed, seconds=10).calls]

    assert written(4) == written(4)
    assert written(4) != written(5)
    assert len(made(name, load=0.5).calls) < 0.75 * len(made(name, load=1.0).calls)


def test_a_coding_session_goes_on_from_what_it_has_said() -> None:
    sessions: dict[str, list[tuple[int, ...]]] = {}
    for call in coding_agents(2).of(CallClass.MIXED):
        sessions.setdefault(call.session, []).append(blocks(call.asked.text, 64))
    long = [prompts for prompts in sessions.values() if len(prompts) > 2]
    assert len(long) > 5
    for prompts in long:
        for one, other in pairwise(prompts):
            assert other[: len(one) - 1] == one[:-1]


def test_tasks_fan_out_to_eight_to_sixteen_workers_with_a_common_beginning() -> None:
    tasks = Counter(call.session for call in fan_out(1, seconds=100).of(CallClass.MIXED) if call.at_s < 80)
    assert all(10 <= count <= 18 for name, count in tasks.items() if count > 2)
    assert len([count for count in tasks.values() if count >= 10]) > 5


def test_few_documents_are_asked_for_often() -> None:
    calls = documents(1, seconds=200).of(CallClass.MIXED)
    asked = Counter(blocks(call.asked.text, 64)[30] for call in calls)
    most = asked.most_common()
    assert len(most) >= 6
    assert most[0][1] > 2.5 * most[len(most) // 2][1]


def test_faults_double_the_answers_and_send_some_calls_past_the_router() -> None:
    workload = faults(1, seconds=200)
    own = [call for call in workload.of(CallClass.TTFT) if not call.direct]
    early, late = ([call.asked.output_tokens for call in own if (call.at_s < 100) is half] for half in (True, False))
    assert sum(late) / len(late) > 1.5 * sum(early) / len(early)
    assert {call.direct for call in workload.calls} == {"", "latency", "throughput"}
    assert {fault.lane for fault in workload.faults} == {"latency", "throughput"}


def test_a_window_of_a_trace_is_stretched_and_keeps_its_bursts() -> None:
    trace = [Arrival(float(second), 1, 1) for second in (0, 1, 2, 100, 101, 102, 200)]
    part = window(trace, Random(0), calls=7, seconds=20.0)
    gaps = [later.at_s - earlier.at_s for earlier, later in pairwise(part)]
    assert part[0].at_s == 0.0
    assert part[-1].at_s < 20.0
    assert gaps[2] == pytest.approx(98 * gaps[0])


def test_without_traces_it_is_said_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(NoTraces, match=VARIABLE):
        load("azure2023_conv")
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(NoTraces, match="azure2023_conv"):
        ALL["chat_bursts"](1)

"""The flood is what it says: rates, lengths, who sends, histories that grow, and the same for the same seed."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean, median, pstdev

import pytest

from bench.emulator.reading import blocks
from bench.mixes.flood import flood
from bench.mixes.plan import Call, Workload
from classifiers.api import CallClass


@pytest.fixture(scope="module")
def long() -> Workload:
    """Long enough for its averages."""
    return flood(3, seconds=600)


def lengths(calls: list[Call], of: str) -> tuple[float, float]:
    """Median, and the deviation of the logarithm."""
    values = [call.asked.prompt_tokens if of == "prompt" else call.asked.output_tokens for call in calls]
    return median(values), pstdev([math.log(value) for value in values])


@pytest.mark.parametrize(
    ("label", "prompt", "output", "prompt_sigma"),
    [
        (CallClass.TTFT, 250, 90, 0.6),
        (CallClass.MIXED, 1_500, 70, 0.6),
        (CallClass.THROUGHPUT, 2_000, 150, 0.5),
    ],
)
def test_lengths_are_log_normal_around_their_medians(
    long: Workload, label: CallClass, prompt: int, output: int, prompt_sigma: float
) -> None:
    calls = long.of(label)
    middle, spread = lengths(calls, "prompt")
    assert middle == pytest.approx(prompt, rel=0.12)
    assert spread == pytest.approx(prompt_sigma, abs=0.12)
    middle, spread = lengths(calls, "output")
    assert middle == pytest.approx(output, rel=0.1)
    assert spread == pytest.approx(0.5, abs=0.08)


def test_rates_and_shares_of_streams_are_as_told(long: Workload) -> None:
    chats, hops, rows = (long.of(label) for label in (CallClass.TTFT, CallClass.MIXED, CallClass.THROUGHPUT))
    assert len(chats) == pytest.approx(1_200, rel=0.1)
    assert len(hops) == pytest.approx(480, rel=0.15)
    assert len(rows) == 40 * 60
    assert all(call.stream for call in chats)
    assert fmean(call.stream for call in hops) == pytest.approx(0.3, abs=0.07)
    assert fmean(call.stream for call in rows) == pytest.approx(0.25, abs=0.04)
    assert all(call.at_s % 15 < 0.51 for call in rows)
    assert [call.at_s for call in long.calls] == sorted(call.at_s for call in long.calls)


def test_hops_repeat_what_was_said_and_bring_the_result_of_the_call_that_they_were_answered_with(
    long: Workload,
) -> None:
    sessions: dict[str, list[Call]] = {}
    for call in long.of(CallClass.MIXED):
        sessions.setdefault(call.session, []).append(call)
    grown = [(one, other) for calls in sessions.values() for one, other in pairwise(calls)]
    assert len(grown) > 200
    for one, other in grown:
        said = one.body["messages"]
        assert other.body["messages"][: len(said)] == said
        answer = other.body["messages"][len(said)]
        assert answer["tool_calls"][0]["id"].endswith(str(one.body["seed"]))
        assert other.body["messages"][-1]["role"] == "tool"
        assert other.at_s - one.at_s >= 2.5
        shared = set(blocks(one.asked.text, 64)) & set(blocks(other.asked.text, 64))
        assert len(shared) >= one.asked.prompt_tokens // 64 - 1


def test_rows_of_the_job_begin_alike_and_chats_mostly_do_not(long: Workload) -> None:
    def first(calls: list[Call]) -> set[int]:
        return {blocks(call.asked.text, 64)[0] for call in calls if call.asked.prompt_tokens > 80}

    assert len(first(long.of(CallClass.THROUGHPUT))) == 1
    assert len(first(long.of(CallClass.TTFT))) > 100


def test_several_clients_call_and_no_address_is_of_one_class_only_by_itself(long: Workload) -> None:
    clients = {(call.client.address, call.client.user_agent, call.client.key) for call in long.calls}
    assert len(clients) >= 10
    shared = {call.client.address for call in long.of(CallClass.THROUGHPUT)}
    labels = {call.label for call in long.calls if call.client.address in shared}
    assert labels == set(CallClass)


def test_what_is_sent_says_nothing_of_the_label(long: Workload) -> None:
    for call in long.calls[:200]:
        for word in ("ttft", "throughput", "mixed", call.session or "agent-", call.client.name):
            assert word not in call.data.decode()


def test_a_seed_gives_the_same_calls_and_another_seed_others() -> None:
    def written(seed: int) -> list[tuple[float, bytes, str]]:
        return [(call.at_s, call.data, call.client.key) for call in flood(seed, seconds=10).calls]

    assert written(7) == written(7)
    assert written(7) != written(8)


def test_load_scales_the_rates() -> None:
    assert len(flood(1, load=0.5).of(CallClass.THROUGHPUT)) == 90
    more, less = (len(flood(1, load=load, seconds=100).of(CallClass.TTFT)) for load in (1.0, 0.5))
    assert less < 0.65 * more

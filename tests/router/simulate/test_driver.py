"""The router in virtual time: real settings, reading, policies, fleet and line before modelled engines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from classifiers.api import CallClass, Source
from router.settings.load import parse
from router.settings.model import Settings
from router.simulate.calls import Arriving, Became, Change
from router.simulate.driver import Simulation
from router.simulate.pace import DESK, RACK

ENGINES = {"desk": DESK, "rack": RACK}
BACKENDS = """
backends:
  - {name: desk, url: "http://127.0.0.1:1", lane: latency}
  - {name: rack, url: "http://127.0.0.1:2", lane: throughput, max_inflight: 64}
"""


def settings(more: str = "") -> Settings:
    return parse(BACKENDS + more, "here.yaml", {})


def call(at_s: float, *, label: str = "", tokens: int = 20, prompt_tokens: int = 200, **more: Any) -> Arriving:
    body = {"model": "emulated", "messages": [{"role": "user", "content": "x" * 60}], "stream": True}
    return Arriving(
        at_s=at_s,
        client="10.0.0.1",
        path="/v1/chat/completions",
        headers=[(b"x-twolane-class", label.encode())] if label else [],
        body=json.dumps(body).encode(),
        prompt_tokens=prompt_tokens,
        output_tokens=tokens,
        **more,
    )


def run(calls: Sequence[Arriving], more: str = "", changes: Sequence[Change] = (), **options: Any) -> list[Became]:
    return Simulation(settings(more), ENGINES, **options).run(calls, changes)


def test_a_call_is_classified_placed_and_answered_in_the_time_of_its_engine() -> None:
    (became,) = run([call(1.0)])
    assert became.verdict is not None
    assert became.verdict.call_class is CallClass.TTFT
    assert (became.backend, became.status) == ("desk", 200)
    assert became.placed_s == 1.0
    assert became.first_s == pytest.approx(1.0 + 0.008 + 200 / 6_000)
    assert became.end_s == pytest.approx((became.first_s or 0.0) + 19 * 0.0092)


def test_labels_are_read_from_headers_as_the_gateway_reads_them() -> None:
    (became,) = run([call(0.0, label="throughput")])
    assert became.verdict is not None
    assert became.verdict.source is Source.HEADER
    assert became.backend == "rack"


def test_who_finds_no_room_waits_in_the_line_and_gets_the_next_slot() -> None:
    only_desk = "classes: {ttft: {lanes: [latency], slo: {ttft: 5s}}}"
    became = run([call(0.0, label="ttft", tokens=50 + number) for number in range(6)], only_desk)
    assert [each.backend for each in became] == ["desk"] * 6
    assert [each.placed_s for each in became[:4]] == [0.0] * 4
    assert became[4].placed_s == min(each.end_s or 0.0 for each in became[:4])
    assert all(each.status == 200 for each in became)


def test_who_waits_too_long_is_turned_away_at_that_moment() -> None:
    rules = "classes: {ttft: {lanes: [latency], max_wait: 1s}}"
    became = run([call(0.0, label="ttft", tokens=1_000) for _ in range(5)], rules)
    assert [each.status for each in became] == [200] * 4 + [503]
    assert became[4].placed_s is None


def test_a_full_line_turns_away_at_once() -> None:
    rules = "line: {max_waiting: 1}\nclasses: {ttft: {lanes: [latency]}}"
    became = run([call(0.0, label="ttft", tokens=100) for _ in range(6)], rules)
    assert sorted(each.status for each in became) == [200] * 5 + [429]


def test_a_client_that_leaves_gives_its_slot_back_or_its_place_in_the_line() -> None:
    rules = "classes: {ttft: {lanes: [latency]}}"
    calls = [call(0.0, label="ttft", tokens=5_000, leaves_after_s=2.0) for _ in range(4)]
    calls += [call(0.5, label="ttft", leaves_after_s=1.0), call(0.5, label="ttft")]
    became = run(calls, rules)
    assert [each.status for each in became] == [499] * 5 + [200]
    assert became[4].placed_s is None
    assert became[5].placed_s == 2.0


def test_a_conversation_goes_back_to_where_its_prompt_is_known() -> None:
    blocks = tuple(range(20))
    calls = [
        replace(call(at_s, label="mixed", prompt_tokens=1_300), blocks=blocks, full_blocks=blocks)
        for at_s in (0.0, 5.0)
    ]
    first, second = run(calls, "policy: {use: prefix_affinity}")
    assert first.backend == second.backend
    assert (first.cached_tokens, second.cached_tokens) == (0, 1_280)


def test_calls_past_the_router_are_seen_in_the_figures_and_taken_for_foreign() -> None:
    past = [call(0.1, tokens=2_000, direct="desk") for _ in range(8)]
    later = [call(6.0, label="ttft")]
    became = run([*past, *later])
    assert [each.verdict for each in became[:8]] == [None] * 8
    assert became[8].backend == "rack"
    unseen = run([*past, *later], figures_lag_s=60.0)
    assert unseen[8].backend == "desk"


def test_an_engine_that_gets_slow_or_loses_its_slots_does_so_when_told() -> None:
    slow = run([call(0.0), call(5.0)], changes=[Change(at_s=2.0, backend="desk", speed=0.5)])
    lasts = [(each.end_s or 0.0) - each.call.at_s for each in slow]
    assert lasts[1] == pytest.approx(2 * lasts[0])
    changes = [Change(at_s=1.0, backend="desk", sequences=0), Change(at_s=4.0, backend="desk", sequences=4)]
    lost = run([call(2.0, label="ttft")], "classes: {ttft: {lanes: [latency]}}", changes)
    assert (lost[0].first_s or 0.0) > 4.0


def test_the_same_calls_and_seed_give_the_same_and_nothing_is_left_open() -> None:
    def once() -> list[tuple[str, float | None, float | None]]:
        chance = Random(3)
        labels = ["ttft", "mixed", "throughput", ""]
        calls = [
            call(
                chance.uniform(0, 20),
                label=chance.choice(labels),
                tokens=chance.randint(1, 200),
                prompt_tokens=chance.randint(1, 3_000),
                leaves_after_s=chance.choice([None, None, 3.0]),
            )
            for _ in range(400)
        ]
        simulation = Simulation(settings(), ENGINES, seed=5)
        became = simulation.run(calls)
        assert sum(simulation.waiting().values()) == 0
        assert {each.status for each in became} <= {200, 499, 503}
        whole = [each for each in became if each.status == 200]
        assert [each.ended_s for each in whole] == pytest.approx([each.end_s for each in whole]), "told when it is so"
        return [(each.backend, each.first_s, each.end_s) for each in became]

    assert once() == once()

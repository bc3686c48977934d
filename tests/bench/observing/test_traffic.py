"""The calls with which seeing is measured: many programs, no two calls alike, each as its kind sends them."""

from __future__ import annotations

import json

from bench.observing.traffic import CALLS, PROGRAMS, calls


def test_no_two_calls_have_one_text_and_each_program_sends_as_many() -> None:
    sent = list(calls())
    assert len({body for _, body in sent}) == CALLS
    agents = [agent for agent, _ in sent]
    assert {agents.count(agent) for agent in agents} == {CALLS // PROGRAMS}


def test_a_third_each_are_streams_for_readers_hops_with_tools_and_rows() -> None:
    bodies = [json.loads(body) for _, body in calls()]
    assert sum(body["stream"] for body in bodies) == CALLS // 3
    assert sum("tools" in body for body in bodies) == CALLS // 3


def test_the_same_seed_gives_the_same_calls() -> None:
    assert list(calls(3, 24)) == list(calls(3, 24))
    assert list(calls(3, 24)) != list(calls(4, 24))

"""How recognition is judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from bench.judgement.virtual import Actor, Send, Speed, Wait
from bench.pipelines.recognise import Seen, Stage, given, hops, read, report, steps
from classifiers.api import CallClass
from router.pipelines import Kind
from tests.router.pipelines.calls import SYSTEM, TOOL, calls_tool, result, said, user

SPEED = Speed(prefill_per_s=5_000, decode_per_s=50, overhead_s=0.1, noise=0.1)


def _send(messages: list[dict[str, Any]], kind: str, label: CallClass = CallClass.MIXED) -> Send:
    body = {"model": "m", "messages": messages, "tools": [TOOL]}
    return Send(
        path="/v1/chat/completions",
        headers={"user-agent": "OpenAI/Python"},
        body=body,
        label=label,
        source="made",
        group="g",
        kind=kind,
        in_session=label is CallClass.MIXED,
    )


def _session(task: str) -> Actor:
    history = [SYSTEM, user(task)]
    for number in range(4):
        yield _send(list(history), "tool_hop")
        yield Wait(0.4)
        history += [calls_tool(f"{task}{number}"), result(f"{task}{number}")]
    yield _send(list(history), "user_facing")
    yield Wait(60.0, by_person=True)
    yield _send([*history, said("Is that all?"), user("Yes.")], "final")


def _played(actors: Iterator[Actor]) -> list[Seen]:
    stage = Stage(Random(1))
    stage.add([(3.0 * number, actor) for number, actor in enumerate(actors)], SPEED)
    stage.play()
    return stage.seen


def test_sessions_that_run_side_by_side_are_told_apart() -> None:
    calls = _played(_session(f"task {number}") for number in range(5))
    assert len(calls) == 30
    assert given(calls) == (25, 25, 0)
    assert given(calls).precision == given(calls).recall == 1.0


def test_a_call_behind_which_a_person_stands_is_no_hop() -> None:
    calls = _played(iter([_session("task")]))
    assert [call.kind for call in calls] == [Kind.FIRST, *[Kind.NEXT] * 4, Kind.TURN]
    assert hops(calls) == (4, 4, 0)


def test_what_is_given_to_the_wrong_one_counts_against_precision() -> None:
    calls = _played(iter([_session("task")]))
    wrong = [Seen(**{name: getattr(call, name) for name in Seen.__slots__} | {"given_to": (9, 9)}) for call in calls]
    assert given(wrong).right == 0
    assert given(wrong).precision == pytest.approx(0.0)


def _plan_and_step() -> Actor:
    headers = {"user-agent": "OpenAI/Python", "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
    for name, wait_s in (("Plan.", 5.0), ("Do.", 0.0)):
        call = _send([{"role": "system", "content": name}, user("x")], "")
        yield replace(call, headers=headers, in_session=False)
        yield Wait(wait_s)


def test_steps_that_no_history_connects_are_judged_apart_and_traces_are_left_out_unless_asked_for() -> None:
    found = {}
    for traced in (False, True):
        stage = Stage(Random(1), traced=traced)
        stage.add([(0.0, _plan_and_step())], SPEED)
        stage.play()
        assert given(stage.seen) == (0, 0, 0)
        found[traced] = steps(stage.seen)
    assert found == {False: (0, 1, 0), True: (1, 1, 0)}


def test_the_report_has_a_row_for_all_and_for_each_source() -> None:
    lines = report(_played(iter([_session("task")])))
    assert sum("made" in line for line in lines) == 3
    assert read(()).there == 0

"""Calls that have nothing in common but a trace."""

from __future__ import annotations

from classifiers.api import CallClass
from router.pipelines import Hop, Kind
from router.pipelines.siblings import FAN_OUT
from router.pipelines.traces import TRACE_S, Traces
from tests.router.pipelines.calls import SYSTEM, Stage, user

TRACE = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
PLAN = [{"role": "system", "content": "Split the task."}, user("All of it.")]


def rows(stage: Stage, count: int, call_class: CallClass, after_s: float = 0.01) -> list[Hop]:
    return [
        stage.arrive([SYSTEM, user(f"Row {number}")], call_class=call_class, headers=TRACE, after_s=after_s)
        for number in range(count)
    ]


def test_steps_of_one_trace_are_one_task_however_different_and_however_long_a_tool_takes() -> None:
    stage = Stage()
    first = stage.whole(PLAN, headers=TRACE)
    assert not first.is_hop, "one call by itself is no task of several"
    second = stage.whole([SYSTEM, user("Do it.")], headers=TRACE, after_s=15.0)
    third = stage.arrive([SYSTEM, user("Do more.")], headers=TRACE, after_s=15.0)
    assert first.pipeline is second.pipeline is third.pipeline is not None
    assert third.kind is Kind.NEXT


def test_another_trace_is_another_task_though_it_comes_right_after() -> None:
    stage = Stage()
    first = stage.whole(PLAN, headers=TRACE)
    other = stage.arrive(
        [SYSTEM, user("Do it.")], headers={"traceparent": "00-5bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    )
    assert first.pipeline is other.pipeline is None


def test_a_trace_that_goes_on_after_a_long_silence_is_at_another_task() -> None:
    stage = Stage()
    stage.whole(PLAN, headers=TRACE)
    assert stage.arrive([SYSTEM, user("Do it.")], headers=TRACE, after_s=TRACE_S + 1.0).pipeline is None


def test_rows_of_a_job_are_no_task_because_one_trace_is_around_them() -> None:
    assert {row.pipeline for row in rows(Stage(), 50, CallClass.THROUGHPUT)} == {None}
    unsure = rows(Stage(), 50, CallClass.MIXED)
    assert all(row.goes_on for row in unsure[1:FAN_OUT])
    assert not any(row.goes_on for row in unsure[FAN_OUT:]), "so many of one program are a job"


def test_parts_that_look_like_rows_are_parts_where_the_trace_began_with_another_program() -> None:
    stage = Stage()
    plan = stage.whole(PLAN, headers=TRACE)
    parts = rows(stage, 8, CallClass.THROUGHPUT)
    assert {part.pipeline for part in parts} == {plan.pipeline}
    assert [part.kind for part in parts] == [Kind.NEXT, *[Kind.SIBLING] * 7]


def test_chats_are_no_task_because_one_trace_is_around_them() -> None:
    stage = Stage()
    chats = [stage.whole([user(f"Question {number}?")], call_class=CallClass.TTFT, headers=TRACE) for number in (1, 2)]
    assert {chat.pipeline for chat in chats} == {None}


def test_traces_are_bounded() -> None:
    traces = Traces(capacity=8)
    for number in range(100):
        hop = Hop(1, 1, float(number), stream=False, tools=False)
        traces.before(number, hop)
    assert len(traces) == 8

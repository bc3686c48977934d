"""Tasks that nobody names: which calls are taken to belong together."""

from __future__ import annotations

from typing import Any

import orjson

from classifiers.api import CallClass
from classifiers.tags import tags_of
from router.pipelines import Kind
from router.pipelines.store import IDLE_S
from router.pipelines.turns import PERSON_S, TYPED_S
from router.surfaces import find, read_call
from tests.router.pipelines.calls import CLIENT, SYSTEM, TOOL, Stage, calls_tool, result, said, task_of, user

TASK = [SYSTEM, user("Find the bug in the parser.")]


def test_a_call_that_brings_the_result_of_a_tool_is_the_next_hop_of_its_task() -> None:
    stage = Stage()
    first = stage.whole(TASK, tools=[TOOL])
    assert first.is_hop is False
    second = stage.whole([*TASK, calls_tool("a"), result("a")], tools=[TOOL], after_s=14.0)
    third = stage.arrive([*TASK, calls_tool("a"), result("a"), calls_tool("b"), result("b")], tools=[TOOL])
    assert (second.kind, third.kind) == (Kind.NEXT, Kind.NEXT)
    assert first.pipeline is second.pipeline is third.pipeline
    assert task_of(third).hops == 3
    assert task_of(third).started_s == first.arrived_s
    assert task_of(third).attained_s == 2.0


def test_the_next_hop_is_at_home_where_the_one_before_was_answered() -> None:
    stage = Stage()
    stage.whole(TASK, tools=[TOOL])
    hop = stage.arrive([*TASK, calls_tool("a"), result("a")], tools=[TOOL])
    assert (hop.backend, hop.model) == ("desk", "m")


def test_a_person_who_answers_begins_a_new_task_of_the_same_conversation() -> None:
    stage = Stage()
    first = stage.whole(TASK, tools=[TOOL])
    turn = stage.whole([*TASK, said("Which parser?"), user("The one of dates.")], tools=[TOOL], after_s=30.0)
    assert turn.kind is Kind.TURN
    assert turn.is_hop is False
    assert turn.thread == first.thread
    hop = stage.arrive(
        [*TASK, said("Which parser?"), user("The one of dates."), calls_tool("a"), result("a")], tools=[TOOL]
    )
    assert task_of(hop) is task_of(turn)
    assert task_of(hop).started_s == turn.arrived_s


def test_an_agent_without_tools_whose_observations_come_as_words_of_a_user_is_one_task() -> None:
    stage = Stage()
    stage.whole(TASK)
    hop = stage.arrive([*TASK, said("ls"), user("main.py")], after_s=10.0)
    assert hop.kind is Kind.NEXT


def test_a_chat_is_no_task_however_soon_somebody_answers() -> None:
    stage = Stage()
    stage.whole(TASK, call_class=CallClass.TTFT)
    turn = stage.arrive([*TASK, said("Which?"), user("That.")], call_class=CallClass.TTFT, after_s=0.5)
    assert turn.kind is Kind.TURN


def test_a_scratchpad_that_grows_is_one_task() -> None:
    stage = Stage()
    pad = "Answer the question by thinking aloud.\n" * 10 + "Question: who?\nThought 1:"
    stage.whole([user(pad)])
    hop = stage.arrive([user(pad + " I look it up.\nAction 1: look\nObservation 1: Ada\nThought 2:")])
    assert hop.kind is Kind.NEXT


def test_a_history_that_was_cut_down_is_found_by_the_tool_call_that_the_answer_made() -> None:
    stage = Stage()
    first = stage.arrive(TASK, tools=[TOOL])
    stage.end(first, ids=["call_1"])
    hop = stage.arrive([SYSTEM, user("Summary of what was: a bug."), calls_tool("call_1"), result("call_1")])
    assert hop.kind is Kind.NEXT
    assert hop.pipeline is first.pipeline


def test_a_history_that_was_cut_down_is_found_by_a_tool_call_whose_result_was_sent_before() -> None:
    stage = Stage()
    second = stage.whole([*TASK, calls_tool("a"), result("a")], tools=[TOOL])
    hop = stage.arrive([SYSTEM, user("In short: a bug."), calls_tool("a"), result("a"), calls_tool("b"), result("b")])
    assert hop.kind is Kind.NEXT
    assert hop.pipeline is second.pipeline


def test_sessions_whose_last_messages_are_the_same_are_told_apart_by_how_they_began() -> None:
    stage = Stage()
    sessions = [[SYSTEM, user(f"Task {number}.")] for number in range(4)]
    threads = [stage.whole(session, tools=[TOOL]).thread for session in sessions]
    for turn in range(5):
        for number, session in enumerate(sessions):
            id_ = f"{number} {turn}"
            session += [calls_tool(id_), result(id_, "ok")]
            assert stage.whole(session, tools=[TOOL]).thread == threads[number]


def test_a_response_that_is_named_as_the_previous_one_is_gone_on_from() -> None:
    stage = Stage()
    first = stage.arrive(TASK)
    stage.end(first, ids=["resp_1"])
    hop = stage.arrive([user("and now?")], previous_response_id="resp_1")
    assert task_of(hop) is task_of(first)


def _goes_on(body: dict[str, Any], call_class: CallClass, after_s: float) -> Kind:
    """What a call is that names the response before, so long after it."""
    stage = Stage()
    first = stage.arrive(TASK, call_class=call_class)
    stage.end(first, ids=["resp_1"])
    raw = orjson.dumps({"model": "m", "previous_response_id": "resp_1", **body})
    features = read_call(find("POST", "/v1/responses"), raw, {})
    hop = stage.store.arrive(CLIENT, features, call_class, tags_of(features), stage.now_s + after_s)
    assert hop.thread == first.thread
    return hop.kind


def test_a_person_who_answers_a_response_begins_a_new_task_by_the_same_rules_as_with_a_history() -> None:
    chat, agent = CallClass.TTFT, CallClass.MIXED
    words = {"input": "and what else?"}
    messages = {"input": [{"role": "user", "content": "and what else?"}]}
    assert [_goes_on(body, chat, 300.0) for body in (words, messages)] == [Kind.TURN, Kind.TURN]
    assert [_goes_on(words, agent, after_s) for after_s in (10.0, PERSON_S + 1.0)] == [Kind.NEXT, Kind.TURN]
    offered = {**words, "tools": [{"type": "function", "name": "look", "parameters": {}}]}
    assert [_goes_on(offered, agent, after_s) for after_s in (0.1, TYPED_S + 1.0)] == [Kind.NEXT, Kind.TURN]


def test_a_result_of_a_tool_for_a_response_is_the_next_hop_whenever_it_comes() -> None:
    body = {"input": [{"type": "function_call_output", "call_id": "c", "output": "found"}]}
    assert _goes_on(body, CallClass.MIXED, 600.0) is Kind.NEXT


def test_another_client_with_the_same_history_has_its_own_task() -> None:
    stage = Stage()
    stage.whole(TASK, tools=[TOOL])
    other = stage.arrive([*TASK, calls_tool("a"), result("a")], tools=[TOOL], client="10.0.0.2 OpenAI/Python")
    assert (other.kind, other.pipeline) == (Kind.FIRST, None)


def test_two_tasks_with_the_same_prompt_stay_two() -> None:
    stage = Stage()
    one = stage.whole(TASK, tools=[TOOL], after_s=1.0)
    two = stage.whole(TASK, tools=[TOOL], after_s=1.0)
    first = stage.arrive([*TASK, calls_tool("a"), result("a")], tools=[TOOL])
    second = stage.arrive([*TASK, calls_tool("b"), result("b")], tools=[TOOL])
    assert first.pipeline is one.pipeline
    assert second.pipeline is two.pipeline
    assert first.pipeline is not second.pipeline


def test_calls_of_one_program_that_are_sent_at_once_are_siblings_under_the_step_before_them() -> None:
    stage = Stage()
    plan = stage.whole([{"role": "system", "content": "Split the task."}, user("All of it.")])
    system = {"role": "system", "content": "Work on one part."}
    parts = [stage.arrive([system, user(f"Part {number}: {'x' * number}")], after_s=0.02) for number in range(8)]
    assert {part.pipeline for part in parts} == {plan.pipeline}
    assert [part.kind for part in parts[1:]] == [Kind.SIBLING] * 7
    for part in parts:
        stage.end(part, takes_s=0.2)
    join = stage.arrive([{"role": "system", "content": "Put it together."}, user("1 2 3")])
    assert task_of(join) is task_of(plan)
    assert (task_of(join).hops, task_of(join).steps) == (10, 3)


def test_rows_of_a_job_are_no_siblings() -> None:
    stage = Stage()
    rows = [
        stage.arrive([SYSTEM, user(f"Row {number}")], call_class=CallClass.THROUGHPUT, after_s=0.01)
        for number in range(20)
    ]
    assert {row.pipeline for row in rows} == {None}


def test_parts_that_look_like_rows_are_parts_where_a_step_of_the_task_came_right_before() -> None:
    stage = Stage()
    plan = stage.whole([{"role": "system", "content": "Split the task."}, user("All of it.")])
    parts = [
        stage.arrive([SYSTEM, user(f"Part {number}")], call_class=CallClass.THROUGHPUT, after_s=0.02)
        for number in range(40)
    ]
    assert {part.pipeline for part in parts[:24]} == {plan.pipeline}
    assert all(part.goes_on for part in parts[:24])
    assert not any(part.goes_on for part in parts[24:]), "so many at once are a job"


def test_rows_that_begin_long_after_an_answer_are_a_job() -> None:
    stage = Stage()
    stage.whole([{"role": "system", "content": "Chat."}, user("Hello.")])
    assert not stage.arrive([SYSTEM, user("Row")], call_class=CallClass.THROUGHPUT, after_s=1.0).goes_on


def test_nothing_follows_from_a_call_that_got_no_answer() -> None:
    stage = Stage()
    stage.end(stage.arrive([{"role": "system", "content": "Plan."}, user("one")]), complete=False)
    step = stage.arrive([{"role": "system", "content": "Do."}, user("which?")], after_s=0.2)
    assert (step.kind, step.pipeline) == (Kind.FIRST, None)


def test_a_step_that_could_belong_to_two_tasks_is_given_to_neither() -> None:
    stage = Stage()
    planner = {"role": "system", "content": "Plan."}
    stage.whole([planner, user("one")], after_s=5.0)
    stage.whole([planner, user("two")], after_s=0.6, takes_s=0.1)
    step = stage.arrive([{"role": "system", "content": "Do."}, user("which?")], after_s=0.1)
    assert step.pipeline is None


def test_a_step_that_could_belong_to_two_tasks_is_given_to_the_one_whose_program_it_followed_before() -> None:
    stage = Stage()
    planner, worker, other = ({"role": "system", "content": word} for word in ("Plan.", "Work.", "Rank these."))
    stage.whole([planner, user("one")], after_s=5.0)
    stage.whole([worker, user("one")])
    plan = stage.whole([planner, user("two")], after_s=30.0)
    stage.whole([other, user("x")], after_s=-0.5, takes_s=0.4)
    step = stage.arrive([worker, user("two")], after_s=0.2)
    assert step.pipeline is plan.pipeline is not None


def test_the_first_streamed_answer_of_a_task_is_taken_for_the_one_that_is_read() -> None:
    stage = Stage()
    stage.whole(TASK, tools=[TOOL])
    stage.whole([*TASK, calls_tool("a"), result("a")], tools=[TOOL])
    last = stage.arrive([*TASK, calls_tool("a"), result("a"), calls_tool("b"), result("b")], tools=[TOOL], stream=True)
    assert last.final


def test_a_task_that_always_streams_says_nothing_by_it() -> None:
    stage = Stage()
    stage.whole(TASK, tools=[TOOL], stream=True)
    assert not stage.arrive([*TASK, calls_tool("a"), result("a")], tools=[TOOL], stream=True).final


def _streamed_task(stage: Stage, *systems: str) -> list[bool]:
    """Of each step whether it was taken for the one that is read."""
    stage.now_s += IDLE_S + 1.0
    return [
        stage.whole([{"role": "system", "content": system}, user(f"{stage.now_s}")], stream=True).final
        for system in systems
    ]


def test_where_all_is_streamed_the_program_that_always_came_last_is_taken_for_the_one_that_is_read() -> None:
    stage = Stage()
    plan, work, answer = "Plan.", "Do the next step.", "Answer the user."
    tasks = [_streamed_task(stage, plan, work, answer) for _ in range(6)]
    assert tasks == [[False, False, False]] * 4 + [[False, False, True]] * 2


def test_where_a_task_streams_twice_what_is_streamed_is_taken_for_what_is_read_once_such_tasks_ended_with_it() -> None:
    stage = Stage()
    found: list[bool] = []
    history: list[dict[str, Any]] = []
    for _ in range(6):
        stage.now_s += IDLE_S + 1.0
        history = [SYSTEM, user(f"Task {stage.now_s}")]
        for number in range(3):
            found.append(stage.whole(history, tools=[TOOL], stream=number == 2).final)
            id_ = f"{stage.now_s} {number}"
            history = [*history, calls_tool(id_), result(id_)]
    again = stage.arrive(history, tools=[TOOL], stream=True)
    assert (found, again.final) == ([False, False, True] * 6, True)


def test_of_a_loop_of_one_program_no_hop_is_taken_for_the_last() -> None:
    stage = Stage()
    for _ in range(20):
        stage.now_s += IDLE_S + 1.0
        history = [SYSTEM, user(f"Task {stage.now_s}")]
        for number in range(3):
            assert not stage.whole(history, tools=[TOOL], stream=True).final
            id_ = f"{stage.now_s} {number}"
            history = [*history, calls_tool(id_), result(id_)]


def test_where_nothing_is_to_be_recognised_only_what_callers_say_makes_a_task() -> None:
    stage = Stage()
    first = stage.whole(TASK, tools=[TOOL], recognise=False)
    second = stage.whole([*TASK, calls_tool("a"), result("a")], tools=[TOOL], recognise=False)
    step = stage.whole([{"role": "system", "content": "Another."}, user("x")], recognise=False)
    assert first.pipeline is second.pipeline is step.pipeline is None
    headers = {"x-twolane-pipeline": "p"}
    one = stage.whole(TASK, headers=headers, recognise=False)
    two = stage.whole(TASK, headers=headers, recognise=False)
    assert task_of(one) is task_of(two)

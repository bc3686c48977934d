"""Tasks that callers name, rightly or wrongly."""

from __future__ import annotations

from router.pipelines import Hop, Kind, Pipelines
from router.pipelines.hop import Pipeline
from router.pipelines.turns import QUIET_S, TTL_S
from tests.router.pipelines.calls import SYSTEM, Stage, said, task_of, user

WORK = [SYSTEM, user("Work.")]


def named(name: str, **more: str) -> dict[str, str]:
    return {"x-twolane-pipeline": name, **{f"x-twolane-{key.replace('_', '-')}": value for key, value in more.items()}}


def test_calls_with_one_name_are_one_task_from_the_first_on() -> None:
    stage = Stage()
    first = stage.whole(WORK, headers=named("p"))
    second = stage.arrive([user("something else")], headers=named("p"))
    assert task_of(first) is task_of(second)
    assert (first.kind, second.kind) == (Kind.FIRST, Kind.NEXT)
    assert first.is_hop


def test_a_name_counts_for_all_programs_behind_one_address_and_for_no_other() -> None:
    stage = Stage()
    python = stage.whole(WORK, headers=named("p"), client="10.0.0.1 OpenAI/Python")
    node = stage.whole(WORK, headers=named("p"), client="10.0.0.1 node")
    other = stage.whole(WORK, headers=named("p"), client="10.0.0.2 node")
    assert python.pipeline is node.pipeline
    assert other.pipeline is not node.pipeline


def test_the_same_id_in_another_header_is_another_task() -> None:
    stage = Stage()
    one = stage.whole(WORK, headers=named("7"))
    two = stage.whole([user("else")], headers={"x-session-id": "7"})
    assert one.pipeline is not two.pipeline


def test_an_id_of_ten_kilobytes_is_as_good_as_a_short_one_and_is_not_kept() -> None:
    stage = Stage()
    long = "p" * 10_000
    first = stage.whole(WORK, headers=named(long))
    second = stage.whole([user("else")], headers=named(long))
    assert task_of(first) is task_of(second)
    assert len(task_of(first).id) == 12


def test_an_id_that_is_used_again_after_the_final_hop_is_a_new_task_with_its_own_time() -> None:
    stage = Stage()
    first = stage.whole(WORK, headers=named("p", hop="final", deadline_ms="5000"))
    second = stage.arrive(WORK, headers=named("p", deadline_ms="5000"), after_s=60.0)
    assert second.pipeline is not first.pipeline
    assert task_of(second).deadline_s == second.arrived_s + 5.0


def test_an_id_is_forgotten_when_nothing_came_for_long() -> None:
    stage = Stage()
    first = stage.whole(WORK, headers=named("p"))
    second = stage.whole(WORK, headers=named("p"), after_s=TTL_S - 10.0)
    assert second.pipeline is first.pipeline
    assert stage.whole(WORK, headers=named("p"), after_s=TTL_S + 10.0).pipeline is not first.pipeline


def test_a_session_has_one_task_after_the_other() -> None:
    stage = Stage()
    headers = {"x-claude-code-session-id": "s"}
    first = stage.whole(WORK, headers=headers)
    beside = stage.whole([user("A question for a small model.")], headers=headers)
    assert beside.pipeline is first.pipeline
    turn = stage.whole([*WORK, said("Done."), user("Now the tests.")], headers=headers, after_s=200.0)
    assert turn.kind is Kind.TURN
    assert turn.pipeline is not first.pipeline
    later = stage.whole([user("Another question.")], headers=headers, after_s=QUIET_S + 1)
    assert later.pipeline is not turn.pipeline


def test_a_session_begins_a_new_task_with_its_own_time_after_a_final_hop() -> None:
    stage = Stage()
    session = {"x-session-id": "s"}
    stage.whole(WORK, headers={**session, "x-twolane-deadline-ms": "10000"}, takes_s=8.0)
    last = stage.whole([user("the answer")], headers={**session, "x-twolane-hop": "final"})
    assert task_of(last).closed
    hop = stage.arrive([user("another")], headers={**session, "x-twolane-deadline-ms": "10000"}, after_s=2.0)
    assert hop.pipeline is not last.pipeline
    assert task_of(hop).deadline_s == hop.arrived_s + 10.0


def test_what_still_runs_beside_a_final_hop_keeps_its_session_in_one_task() -> None:
    stage = Stage()
    session = {"x-session-id": "s"}
    beside = stage.arrive([user("a title")], headers=session)
    last = stage.whole(WORK, headers={**session, "x-twolane-hop": "final"})
    assert stage.arrive([user("more")], headers=session).pipeline is last.pipeline is beside.pipeline


def test_a_trace_counts_where_nothing_better_is_known() -> None:
    stage = Stage()
    headers = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    first = stage.whole(WORK, headers=headers)
    second = stage.whole([user("else")], headers=headers)
    assert task_of(first) is task_of(second)


def test_where_too_many_tasks_are_under_way_one_of_which_nothing_runs_is_let_go_of_first() -> None:
    stage = Stage(capacity=4)
    slow = stage.arrive(WORK, headers=named("slow"))
    others = [stage.whole([user(f"{number}")], headers=named(f"p{number}")) for number in range(20)]
    assert not task_of(slow).closed
    assert [task_of(other).closed for other in others] == [True] * 17 + [False] * 3
    assert len(stage.store) == 4


def test_the_store_is_bounded_though_a_call_of_each_task_runs() -> None:
    stage = Stage(capacity=100)
    first, *_ = [stage.arrive([user(f"{number}")], headers=named(f"p{number}")) for number in range(500)]
    assert len(stage.store) == 100
    stage.end(first)  # its task is closed, and the end changes nothing
    assert len(stage.store) == 100


def test_a_long_call_does_not_keep_other_tasks_open() -> None:
    stage = Stage()
    stage.arrive(WORK, headers=named("slow"))
    for number in range(5):
        stage.arrive([user(f"{number}")], headers=named(f"slow {number}"))
    short = stage.whole(WORK, headers=named("short"))
    stage.now_s += TTL_S
    for number in range(3):
        stage.whole([user(f"{number}")], headers=named("another"))
    assert task_of(short).closed
    assert len(stage.store.open()) == 7


def test_the_store_is_bounded_whatever_callers_send() -> None:
    stage = Stage(capacity=100)
    for number in range(2_000):
        stage.whole([SYSTEM, user(f"Row {number}")], headers=named(f"p{number}"), after_s=0.001, takes_s=0.001)
    assert len(stage.store) <= 100


def test_after_a_restart_hops_go_on_as_calls_of_which_nothing_is_known() -> None:
    stage = Stage()
    stage.whole(WORK, headers=named("p"))
    stage.store = Pipelines()
    hop = stage.arrive([*WORK, said("a"), user("b")], headers=named("p", hop="internal"))
    assert (hop.kind, _attained(hop), hop.backend) == (Kind.FIRST, 0.0, "")


def test_ids_of_tasks_do_not_tell_what_callers_named_them_and_differ_from_process_to_process() -> None:
    ids = set()
    for key in (b"one", b"two"):
        stage = Stage()
        stage.store = Pipelines(key=key)
        hop = stage.whole(WORK, headers=named("p"))
        ids.add(task_of(hop).id)
    assert len(ids) == 2


def test_a_task_is_told_of_once_when_it_is_over() -> None:
    stage = Stage()
    closed: list[Pipeline] = []
    stage.store.on_close = closed.append
    stage.whole(WORK, headers=named("p"))
    stage.whole(WORK, headers=named("p", hop="final"))
    stage.whole(WORK, headers=named("p"), after_s=5.0)
    assert [pipeline.hops for pipeline in closed] == [2]


def _believed(stage: Stage, hop: str, client: str = "liar") -> bool:
    tags = stage.arrive(WORK, headers={"x-twolane-hop": hop} if hop else {}, client=client).tags
    return stage.store.believes(client, tags)


def test_a_client_that_says_final_of_everything_is_not_believed_for_long() -> None:
    stage = Stage()
    believed = [_believed(stage, "final") for _ in range(100)]
    assert all(believed[:10])
    assert not any(believed[20:])


def test_a_client_that_says_final_of_the_last_hop_alone_is_believed() -> None:
    stage = Stage()
    assert all(_believed(stage, "final" if number % 4 == 3 else "") for number in range(400))


def test_a_client_that_mends_its_ways_is_believed_again() -> None:
    stage = Stage()
    for _ in range(50):
        _believed(stage, "final")
    for _ in range(20):
        _believed(stage, "internal")
    assert _believed(stage, "final")


def _attained(hop: Hop) -> float:
    assert hop.pipeline is not None
    return hop.pipeline.attained_s


def test_attained_service_counts_what_backends_did_and_not_the_time_in_line() -> None:
    stage = Stage()
    hop = stage.arrive(WORK, headers=named("p"))
    stage.now_s += 30.0
    stage.end(hop, takes_s=2.0)
    assert _attained(stage.arrive([user("next")], headers=named("p"))) == 2.0

"""When a hop should be complete, so that its task ends in time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.pipelines.due import Rest, due_s, out_of_reach
from router.pipelines.templates import Template
from tests.router.pipelines.calls import SYSTEM, Stage, task_of, user

REST = Rest(step_s=1.0, steps_left=3.0, gap_s=0.5, quickest_s=2.0)


def test_slack_is_split_by_the_work_that_is_left() -> None:
    # 4 s of work and 1.5 s between: 4.5 s of slack, a quarter of it for this hop.
    assert due_s(0.0, 10.0, REST) == pytest.approx(1.0 + 4.5 / 4)


def test_the_last_hop_may_take_all_that_is_left() -> None:
    assert due_s(5.0, 10.0, REST._replace(steps_left=0.0)) == pytest.approx(10.0)


def test_without_slack_a_hop_is_due_as_soon_as_it_can_be_done() -> None:
    assert due_s(0.0, 2.0, REST) == 1.0


times = st.floats(min_value=0.01, max_value=1e4)


@given(left=st.floats(min_value=0, max_value=100), step=times, gap=times, until=times)
def test_a_hop_is_never_due_before_it_can_be_done_nor_after_a_deadline_in_reach(
    left: float, step: float, gap: float, until: float
) -> None:
    found = due_s(0.0, until, Rest(step_s=step, steps_left=left, gap_s=gap, quickest_s=step))
    assert found >= step
    assert found <= max(step, until) * (1 + 1e-9)


def test_a_deadline_that_has_passed_is_out_of_reach_and_one_that_nobody_can_judge_is_not() -> None:
    assert out_of_reach(10.0, 10.0, REST, known=False)
    assert not out_of_reach(9.9, 10.0, REST, known=False)
    assert out_of_reach(9.9, 10.0, REST, known=True)
    assert not out_of_reach(8.0, 10.0, REST, known=True)


def test_a_template_knows_how_many_steps_are_left() -> None:
    template = Template()
    assert template.steps_left(1) == 2.0
    for steps in (4, 4, 4, 8):
        template.ended(steps, 1)
    assert 3.0 < template.steps_left(1) < 5.0
    assert template.steps_left(5) == pytest.approx(3.0)
    assert template.steps_left(40) == 0.5
    template.ended(10_000, 1)
    assert template.steps_left(9) > 0


def test_of_thousands_of_tasks_the_newest_tell_how_many_steps_are_left() -> None:
    template = Template()
    for steps in (*[10] * 20_000, *[4] * 200):
        template.ended(steps, 1)
    assert template.steps_left(1) == pytest.approx(3.0, abs=0.05)


def test_a_template_knows_which_manner_of_step_comes_last() -> None:
    template = Template()
    for _ in range(3):
        template.went_on(1, 0.1)
        template.ended(2, 2)
    assert not template.ends_with(2), "three times may be chance"
    template.ended(2, 2)
    assert template.ends_with(2)
    assert not template.ends_with(1)
    assert not template.ends_with(3)
    for _ in range(10):
        template.went_on(2, 0.1)
    assert not template.ends_with(2)
    for _ in range(1_000):
        template.ended(2, 2)
    assert template.ends_with(2)


def test_of_manners_that_never_repeat_only_the_first_are_remembered() -> None:
    template = Template()
    for number in range(1_000):
        for _ in range(5):
            template.ended(1, number)
    assert template.ends_with(15)
    assert not template.ends_with(16)


# --- through the store

HEADERS = {"x-twolane-pipeline": "p", "x-twolane-deadline-ms": "10000"}


def test_a_task_without_a_deadline_has_no_due_time() -> None:
    stage = Stage()
    hop = stage.arrive([SYSTEM, user("go")], headers={"x-twolane-pipeline": "p"})
    assert stage.store.due(hop, stage.now_s) is None


def test_the_deadline_counts_from_the_first_hop() -> None:
    stage = Stage()
    first = stage.whole([SYSTEM, user("go")], headers=HEADERS)
    hop = stage.arrive([SYSTEM, user("on")], headers={**HEADERS, "x-twolane-hop": "final"}, after_s=3.0)
    due = stage.store.due(hop, stage.now_s)
    assert due == pytest.approx(first.arrived_s + 10.0)


def test_hops_that_are_left_by_the_callers_word_leave_less_time_for_this_one() -> None:
    dues = []
    for left in ("0", "9"):
        stage = Stage()
        hop = stage.arrive([SYSTEM, user("go")], headers={**HEADERS, "x-twolane-hops-left": left})
        due = stage.store.due(hop, stage.now_s)
        assert due is not None
        dues.append(due)
    assert dues[0] > dues[1]


def test_a_call_alone_may_have_a_deadline() -> None:
    stage = Stage()
    hop = stage.arrive([SYSTEM, user("go")], headers={"x-twolane-deadline-ms": "500", "x-twolane-hops-left": "0"})
    assert stage.store.due(hop, stage.now_s) is not None


def test_a_hop_after_the_deadline_yields_and_is_not_dropped() -> None:
    stage = Stage()
    stage.whole([SYSTEM, user("go")], headers=HEADERS)
    hop = stage.arrive([SYSTEM, user("on")], headers=HEADERS, after_s=20.0)
    assert stage.store.due(hop, stage.now_s) is None
    assert task_of(hop).yields


def test_siblings_are_due_together_also_those_that_come_late() -> None:
    stage = Stage()
    for _ in range(3):  # three tasks of a plan, parts and an end
        stage.whole([SYSTEM, user("plan")], headers=HEADERS, after_s=100.0)
        stage.whole([SYSTEM, user("part")], headers=HEADERS)
        stage.whole([SYSTEM, user("end")], headers={**HEADERS, "x-twolane-hop": "final"})
    stage.whole([SYSTEM, user("plan")], headers=HEADERS, after_s=100.0)
    parts = [stage.arrive([SYSTEM, user(f"part {number}")], headers=HEADERS, after_s=0.05) for number in range(8)]
    dues = [stage.store.due(part, part.arrived_s) for part in parts]
    assert None not in dues
    late = stage.arrive([SYSTEM, user("part 9")], headers=HEADERS, after_s=0.4)
    late_due = stage.store.due(late, late.arrived_s)
    assert dues[0] is not None
    assert late_due == pytest.approx(dues[0], abs=0.01)

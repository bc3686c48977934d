"""Tasks whose calls wait for each other, in virtual time."""

from __future__ import annotations

import pytest

from bench.goodput.routers import OURS
from bench.pipelines.__main__ import figures
from bench.pipelines.tasks import KINDS, MIXES, Mix, mix
from bench.pipelines.virtual import by_kind, simulate


@pytest.fixture(scope="module")
def small() -> Mix:
    return mix("all_kinds", 3, load=0.4, seconds=20.0, rates={"tool_loop": 0.3, "fan_out": 0.2, "plan_execute": 0.3})


def test_a_mix_is_the_same_each_time_and_another_one_with_another_seed(small: Mix) -> None:
    again = mix("all_kinds", 3, load=0.4, seconds=20.0, rates={"tool_loop": 0.3, "fan_out": 0.2, "plan_execute": 0.3})
    assert again.tasks == small.tasks
    assert [call.body for call in again.calls] == [call.body for call in small.calls]
    assert mix("plans", 1).tasks != mix("plans", 2).tasks


def test_every_mix_has_tasks_of_its_kinds() -> None:
    for name, rates in MIXES.items():
        kinds = {task.kind for task in mix(name, 1, seconds=60.0).tasks}
        assert kinds == set(rates) <= set(KINDS)


def test_a_step_is_sent_when_the_one_before_was_answered_and_not_before(small: Mix) -> None:
    result = simulate(OURS[0], small)
    assert all(each.end_s is not None for each in result.ran)
    for each in result.ran:
        steps = each.task.steps
        assert each.calls == sum(len(step.bodies) for step in steps)
        assert each.end_s is not None
        assert each.end_s > sum(step.gap_s for step in steps)


def test_tags_name_the_task_the_hop_what_is_left_and_until_when(small: Mix) -> None:
    task = small.tasks[0]
    (first, *_), (last, *_) = (task.calls(number, 0.0, tagged=True) for number in (0, len(task.steps) - 1))
    assert first.client.headers["x-twolane-pipeline"] == task.name
    assert first.client.headers["x-twolane-hops-left"] == str(len(task.steps) - 1)
    assert last.client.headers["x-twolane-hops-left"] == "0"
    assert float(first.client.headers["x-twolane-deadline-ms"]) == pytest.approx(1000 * task.promise_s, abs=1)
    assert not task.calls(0, 0.0, tagged=False)[0].client.headers


def test_figures_are_of_all_tasks_and_of_the_chats_beside_them(small: Mix) -> None:
    result = simulate(OURS[0], small, tagged=True)
    row = figures([(small, result)])
    assert row["tasks"] == len(small.tasks) == sum(len(ran) for ran in by_kind(result.ran).values())
    assert 0 <= row["in_time"] <= 1
    assert row["given_up"] == 0
    assert row["mean_s"] > 0
    assert 0 <= row["ttft"] <= 1

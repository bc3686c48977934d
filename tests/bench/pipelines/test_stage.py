"""What is measured over HTTP; the measuring itself is run by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.emulator.reading import SEED_UNIT
from bench.goodput.routers import Place
from bench.pipelines.stage import begun, for_real, variants
from bench.pipelines.tasks import mix
from router.settings.load import parse


def test_twolane_is_run_with_tags_without_and_without_looking_for_tasks() -> None:
    among = variants("twolane,sglang-router cache_aware,smg cache_aware")
    assert [(variant.name, variant.tagged) for variant in among] == [
        ("twolane", False),
        ("twolane tagged", True),
        ("twolane, tasks off", False),
        ("sglang-router cache_aware", False),
        ("smg cache_aware", False),
    ]
    with pytest.raises(ValueError, match="apache"):
        variants("apache")


def test_looking_for_tasks_is_off_where_it_is_said_to_be(tmp_path: Path) -> None:
    place = Place(desk="http://127.0.0.1:1", rack="http://127.0.0.1:2", port=3, side_port=4, folder=tmp_path)
    for variant, on in zip(variants("twolane"), (True, True, False), strict=True):
        variant.router.launch(place)
        text = (tmp_path / "twolane.yaml").read_text()
        assert parse(text, "twolane.yaml", {}).pipelines.recognise is on


def test_a_real_model_is_sent_what_it_can_answer_in_a_given_length() -> None:
    made = for_real(mix("all_kinds", 1, seconds=60.0))
    bodies = [body for task in made.tasks for step in task.steps for body in step.bodies]
    bodies += [call.body for call in made.calls]
    assert {task.kind for task in made.tasks} == {"fan_out", "plan_execute"}
    assert all(body["max_tokens"] <= SEED_UNIT // 4 and "tools" not in body for body in bodies)
    assert all(len(message["content"]) <= 1_200 for body in bodies for message in body["messages"])


def test_no_router_is_sent_prompts_that_begin_like_those_of_another() -> None:
    made = for_real(mix("plans", 1, seconds=30.0))
    one, other = begun(made, 1), begun(made, 2)
    first = [body["messages"][0]["content"] for body in (one.tasks[0].steps[1].bodies[0], one.calls[0].body)]
    assert all(text.startswith("0001 ") for text in first)
    assert other.tasks[0].steps[1].bodies[0]["messages"][0]["content"].startswith("0002 ")
    assert one.tasks[0].steps[0].bodies[0]["messages"][1:] == other.tasks[0].steps[0].bodies[0]["messages"][1:]

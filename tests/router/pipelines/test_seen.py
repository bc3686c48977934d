"""What operators see of a task: its critical path, its figures, its picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry, generate_latest
from typer.testing import CliRunner

from classifiers.api import CallClass
from router.commands import cli
from router.pipelines.gantt import gantt
from router.pipelines.hop import Kind, Span
from router.pipelines.overview import Overview
from router.pipelines.pages import Pages
from router.pipelines.seen import critical, detail, measured
from router.pipelines.shown import KEPT
from tests.router.pipelines.calls import SYSTEM, Stage, task_of, user


def span(arrived_s: float, placed_s: float, first_s: float | None, ended_s: float) -> Span:
    return Span(Kind.NEXT, CallClass.MIXED, arrived_s, placed_s, first_s, ended_s, "desk", True, 100, 40, 10, False)


def test_the_critical_path_leads_over_the_slowest_sibling() -> None:
    plan, quick, slow, join = span(0, 0, 1, 2), span(2.5, 2.5, 3, 4), span(2.5, 3.5, 4, 7), span(7.25, 7.25, 8, 9)
    assert critical([join, quick, plan, slow]) == [plan, slow, join]
    path = measured([plan, quick, slow, join])
    assert tuple(path) == pytest.approx((3, 1.0, 2.25, 5.0, 0.75))


def test_the_parts_of_a_path_without_branches_make_up_its_whole_time() -> None:
    spans = [span(0, 0.5, 1, 2), span(3, 3, None, 4), span(4, 4.5, 5, 6)]
    assert sum(measured(spans)[1:]) == pytest.approx(6.0)


def test_no_hop_makes_no_path() -> None:
    assert not any(measured([]))


HEADERS = {"x-twolane-pipeline": "<secret & name>", "x-twolane-deadline-ms": "60000"}


def _ran(stage: Stage, *, last: str = "final", takes_s: float = 1.0) -> None:
    stage.whole([SYSTEM, user("plan")], headers=HEADERS, takes_s=takes_s)
    stage.whole([SYSTEM, user("do")], headers=HEADERS, takes_s=takes_s)
    stage.whole([SYSTEM, user("say")], headers={**HEADERS, "x-twolane-hop": last}, takes_s=takes_s)


def _overview(stage: Stage) -> tuple[Overview, CollectorRegistry]:
    registry = CollectorRegistry()
    return Overview(stage.store, registry, lambda: stage.now_s), registry


def test_a_task_under_way_is_shown_with_its_figures() -> None:
    stage = Stage()
    overview, _ = _overview(stage)
    _ran(stage, last="internal")
    document = overview.document()
    (row,) = document["open"]
    assert document["open_count"] == 1
    assert (row["hops"], row["state"], row["found"], row["deadline"]) == (3, "idle", "named", "open")
    assert row["makespan_s"] == pytest.approx(3.2)
    assert row["critical_path"]["own_s"] == pytest.approx(0.2)
    assert "secret" not in str(document)


def test_a_task_that_is_over_is_counted_by_whether_it_kept_its_deadline() -> None:
    stage = Stage()
    overview, registry = _overview(stage)
    _ran(stage)
    _ran(stage, takes_s=25.0)
    met, missed = overview.document()["over"][::-1]
    assert (met["deadline"], met["wasted_tokens"]) == ("met", 0)
    assert (missed["deadline"], missed["wasted_tokens"]) == ("missed", 3 * (50 + 20))
    text = generate_latest(registry).decode()
    assert 'twolane_pipelines_total{deadline="met",found="named"} 1.0' in text
    assert 'twolane_pipelines_total{deadline="missed",found="named"} 1.0' in text
    assert 'twolane_pipeline_tokens_total{kind="wasted"} 210.0' in text
    assert 'twolane_pipeline_hops_count{found="named"} 2.0' in text


def test_the_number_of_tasks_and_of_series_is_bounded() -> None:
    stage = Stage(capacity=10)
    overview, registry = _overview(stage)
    for number in range(KEPT + 100):
        headers = {"x-twolane-pipeline": f"p{number}"}
        stage.whole([user("a")], headers=headers)
        stage.whole([user("b")], headers={**headers, "x-twolane-hop": "final"})
    assert len(overview.document()["over"]) == KEPT
    assert len(generate_latest(registry).splitlines()) < 120


def test_the_picture_has_a_bar_for_each_hop_and_no_text_of_callers() -> None:
    stage = Stage()
    hop = stage.arrive([SYSTEM, user("plan")], headers=HEADERS)
    stage.now_s += 0.5
    stage.end(hop)
    document = detail(task_of(hop), stage.now_s)
    root = ET.fromstring(gantt(document))
    bars = [
        rect
        for rect in root.iter("{http://www.w3.org/2000/svg}rect")
        if rect.get("class") in ("line", "prefill", "answer")
    ]
    assert [bar.get("class") for bar in bars] == ["line", "prefill", "answer"]
    assert "secret" not in gantt(document)


def test_a_picture_of_a_task_without_an_ended_hop_is_a_picture_all_the_same() -> None:
    stage = Stage()
    hop = stage.arrive([SYSTEM, user("plan")], headers=HEADERS)
    ET.fromstring(gantt(detail(task_of(hop), stage.now_s)))


async def test_the_admin_port_lists_tasks_shows_one_and_draws_it() -> None:
    stage = Stage()
    overview, _ = _overview(stage)
    _ran(stage)
    app = web.Application()
    Pages(overview).add_to(app)
    async with TestClient(TestServer(app)) as client:
        document = await (await client.get("/pipelines")).json()
        id_ = document["over"][0]["id"]
        one = await (await client.get(f"/pipelines/{id_[:6]}")).json()
        assert [hop["critical"] for hop in one["hops_shown"]] == [True, True, True]
        picture = await client.get(f"/pipelines/{id_}.svg")
        assert picture.content_type == "image/svg+xml"
        ET.fromstring(await picture.text())
        assert (await client.get("/pipelines/none")).status == 404
        assert (await client.get("/pipelines/none.svg")).status == 404


def test_the_command_says_what_to_do_where_no_router_answers() -> None:
    done = CliRunner().invoke(cli, ["pipelines", "--once", "--admin", "http://127.0.0.1:9"])
    assert done.exit_code == 1
    assert "--admin names another" in done.output


def test_the_command_asks_for_an_id_where_a_picture_is_wanted() -> None:
    done = CliRunner().invoke(cli, ["pipelines", "--svg", "x.svg", "--admin", "http://127.0.0.1:9"])
    assert done.exit_code == 1
    assert "--id" in done.output

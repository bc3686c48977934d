"""Routers in front of a real emulated fleet: outcomes are what clients saw."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.goodput.__main__ import select
from bench.goodput.judge import judge
from bench.goodput.routers import ROUTERS, Place, Router, by_class, by_smg_priority, unlabelled
from bench.goodput.send import request, send
from bench.goodput.stage import Fleet, run
from bench.mixes.flood import flood
from bench.mixes.plan import Workload
from bench.servers.process import ROOT, free_port
from classifiers.api import CallClass
from tests.bench.serving import Always, serving

FAST = Fleet(desk=("--speed", "20"), rack=("--speed", "20"))


def named(name: str) -> Router:
    return next(router for router in ROUTERS if router.name == name)


@pytest.fixture(scope="module")
def short() -> Workload:
    return flood(2, seconds=2, load=0.3)


@pytest.mark.parametrize(
    "name",
    [
        "twolane",
        "static_lanes +labels",
        pytest.param(
            "nginx least_conn",
            marks=pytest.mark.skipif(
                shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin") is None, reason="no nginx here"
            ),
        ),
    ],
)
def test_every_call_gets_its_whole_answer_through_a_router(name: str, short: Workload) -> None:
    ran = run(named(name), short, FAST)
    assert len(ran.outcomes) == len(short.calls)
    for outcome in ran.outcomes:
        assert outcome.complete, outcome
        if outcome.call.stream:
            assert outcome.tokens == outcome.call.asked.output_tokens
            assert outcome.first_s is not None
            assert outcome.last_s is not None
            assert outcome.end_s is not None
            assert 0 < outcome.first_s <= outcome.last_s <= outcome.end_s
    assert judge(ran.outcomes).mean_share > 0.9


def test_labels_go_into_headers_where_a_router_is_given_them(short: Workload) -> None:
    call = short.of(CallClass.THROUGHPUT)[0]
    assert b"throughput" not in request(call, 1, unlabelled)
    assert b"x-twolane-class: throughput\r\n" in request(call, 1, by_class)
    assert b"X-SMG-Priority: bulk\r\n" in request(call, 1, by_smg_priority)


def test_the_settings_of_every_variant_of_twolane_are_read(tmp_path: Path) -> None:
    place = Place(desk="http://127.0.0.1:1", rack="http://127.0.0.1:2", port=3, side_port=4, folder=tmp_path)
    ours = [router for router in ROUTERS if router.label is by_class or router.name in ("twolane", "least_loaded")]
    assert len(ours) >= 4
    for router in ours:
        launch = router.launch(place)
        said = subprocess.run(
            [sys.executable, "-m", "router", "check", launch.command[-1]],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        assert said.returncode == 0, said.stdout + said.stderr


async def test_a_call_that_is_refused_or_cut_off_is_a_miss_with_its_reason(short: Workload) -> None:
    few = replace(short, calls=short.calls[:2])
    refusal = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
    async with serving(lambda: Always(refusal)) as port:
        outcomes = await send(few, port, unlabelled)
    assert [(each.status, each.kept) for each in outcomes] == [(503, False)] * 2
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
    async with serving(lambda: Always(half, hang_up=True)) as port:
        outcomes = await send(few, port, unlabelled)
    assert [each.kept for each in outcomes] == [False] * 2
    assert all("closed" in each.error for each in outcomes)
    outcomes = await send(few, free_port(), unlabelled)
    assert not any(each.kept for each in outcomes)


def test_names_select_routers_by_a_part_or_exactly() -> None:
    assert [router.name for router in select("twolane")] == ["twolane"]
    assert {router.name for router in select("sglang, nginx")} == {
        "sglang-router cache_aware",
        "sglang-router power_of_two",
        "nginx least_conn",
    }
    assert list(select("")) == list(ROUTERS)
    with pytest.raises(ValueError, match="apache"):
        select("apache")

"""Workloads in virtual time: quick, repeatable, and close to what the same workload gives over HTTP."""

from __future__ import annotations

import pytest

from bench.goodput.judge import judge
from bench.goodput.routers import OURS, ROUTERS, Own
from bench.goodput.stage import Fleet, run
from bench.goodput.virtual import settings_of, simulate
from bench.mixes.flood import flood
from bench.mixes.programs import fan_out, faults
from classifiers.api import CallClass


def own(name: str) -> Own:
    return next(each for each in OURS if each.name == name)


def test_every_variant_has_settings_that_are_read() -> None:
    for each in OURS:
        assert [backend.name for backend in settings_of(each).backends] == ["desk", "rack"]


def test_labels_help_where_parts_of_a_task_look_like_rows() -> None:
    workload = fan_out(1)
    blind, told = (judge(simulate(own(name), workload)) for name in ("twolane", "twolane +labels"))
    assert told.classes[CallClass.MIXED].share > blind.classes[CallClass.MIXED].share


def test_the_flood_does_not_break_promises_and_the_same_seed_gives_the_same() -> None:
    workload = flood(1, seconds=20)
    blind, told = (judge(simulate(own(name), workload)) for name in ("twolane", "twolane +labels"))
    assert min(blind.mean_share, told.mean_share) > 0.9
    assert judge(simulate(own("twolane +labels"), workload)) == told
    assert sum(each.calls for each in told.classes.values()) == len(workload.calls)


def test_static_lanes_keep_rows_and_lose_hops_in_the_flood() -> None:
    figures = judge(simulate(own("static_lanes +labels"), flood(1)))
    assert figures.classes[CallClass.THROUGHPUT].share > 0.95
    assert figures.classes[CallClass.MIXED].share < 0.3


def test_faults_and_strangers_are_part_of_the_simulation() -> None:
    workload = faults(1)
    outcomes = simulate(own("twolane +labels"), workload)
    figures = judge(outcomes)
    assert sum(each.calls for each in figures.classes.values()) == sum(not call.direct for call in workload.calls)
    assert figures.mean_share > 0.3


@pytest.mark.slow
def test_virtual_and_real_time_agree_on_how_long_things_take() -> None:
    """At the median; a busy machine delays some calls, and then others."""
    workload = flood(2, seconds=6, load=0.4)
    router = next(each for each in ROUTERS if each.name == "static_lanes +labels")
    real = run(router, workload, Fleet()).outcomes
    virtual = simulate(own("static_lanes +labels"), workload)
    pairs = [
        (one.end_s, other.end_s)
        for one, other in zip(real, virtual, strict=True)
        if one.end_s is not None and other.end_s is not None
    ]
    assert len(pairs) == len(workload.calls)
    errors = sorted(abs(one - other) / other for one, other in pairs)
    assert errors[len(errors) // 2] < 0.2

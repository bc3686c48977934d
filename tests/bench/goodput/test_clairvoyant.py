"""The search finds real schedules: played on the engines they give what it says, and none is above the bound."""

from __future__ import annotations

import pytest

from bench.goodput.bound import bound
from bench.goodput.clairvoyant import Sent, clairvoyant, play
from bench.goodput.judge import judge
from bench.goodput.routers import OURS, unlabelled
from bench.goodput.virtual import ENGINES, arriving, simulate
from bench.mixes.flood import flood
from bench.mixes.programs import faults


def test_a_schedule_is_played_as_it_says() -> None:
    workload = flood(1, seconds=3, load=0.2)
    arrivals = [arriving(call, unlabelled) for call in workload.calls]
    at_once = [Sent("rack", call.at_s) for call in workload.calls]
    late = [Sent("rack", call.at_s + 7.0) for call in workload.calls]
    one, other = (play(workload.calls, arrivals, schedule, ENGINES) for schedule in (at_once, late))
    assert [each.call for each in one] == list(workload.calls)
    for soon, later in zip(one, other, strict=True):
        assert soon.end_s is not None
        assert later.end_s is not None
        assert later.end_s == pytest.approx(soon.end_s + 7.0, abs=1e-6)


def test_it_is_at_least_as_good_as_where_it_began_and_not_better_than_the_bound() -> None:
    workload = flood(3, seconds=20, load=1.3)
    begun, _ = clairvoyant(workload, ENGINES, tries=0)
    found, schedule = clairvoyant(workload, ENGINES, tries=60, seed=1)
    assert begun.mean_share >= max(judge(simulate(own, workload)).mean_share for own in OURS[:3]) - 1e-9
    assert found.mean_share >= begun.mean_share
    assert found.mean_share <= bound(workload, ENGINES).mean_share + 1e-6
    assert all(sent.at_s >= call.at_s for sent, call in zip(schedule, workload.calls, strict=True))
    arrivals = [arriving(call, unlabelled) for call in workload.calls]
    assert judge(play(workload.calls, arrivals, schedule, ENGINES)) == found


def test_what_a_schedule_cannot_know_is_refused() -> None:
    with pytest.raises(ValueError, match="faults"):
        clairvoyant(faults(1, seconds=10), ENGINES, tries=1)

"""Disturbances are what they are called, and a run without one is the plain run."""

from __future__ import annotations

import pytest

from bench.goodput.judge import judge
from bench.goodput.routers import OURS
from bench.goodput.stress import DISTURBANCES, shares
from bench.goodput.virtual import simulate
from bench.mixes.flood import flood

TWOLANE = OURS[0]
SHORT = flood(3, seconds=8.0)


def test_undisturbed_is_the_plain_run() -> None:
    mean, by_class = shares(TWOLANE, "nothing", SHORT)
    plain = judge(simulate(TWOLANE, SHORT, seed=SHORT.seed))
    assert mean == plain.mean_share
    assert by_class == {label: seen.share for label, seen in plain.classes.items()}


@pytest.mark.parametrize("name", [name for name in DISTURBANCES if name != "nothing"])
def test_a_disturbance_changes_what_happens_or_what_is_known_of_it(name: str) -> None:
    disturb, lag_s = DISTURBANCES[name]
    disturbed = disturb(SHORT)
    assert lag_s > 0 or disturbed != SHORT
    assert all(SHORT.seconds / 4 <= fault.at_s <= SHORT.seconds for fault in disturbed.faults)
    assert [call for call in disturbed.calls if not call.direct] == list(SHORT.calls)
    assert all(call.at_s >= SHORT.seconds / 4 for call in disturbed.calls if call.direct)


def test_a_server_at_half_speed_does_less() -> None:
    undisturbed, _ = shares(TWOLANE, "nothing", SHORT)
    slow, _ = shares(TWOLANE, "rack at half speed", SHORT)
    assert slow <= undisturbed

"""A backend that an operator took out: nothing new goes there, what runs goes on, and callers are told."""

from __future__ import annotations

import pytest

import policies
from router.applicant import Placed
from router.engines.api import Loading, Ready
from router.errors import NoBackend
from router.fleet.fleet import Fleet
from router.fleet.ledger import Outcome
from router.line import Line
from tests.router.builders import applicant, fleet_of, settings

DESK = {"name": "desk", "lane": "latency"}
RACK = {"name": "rack", "lane": "throughput"}


def line_for(fleet: Fleet) -> Line:
    made = Line(fleet, policies.build("least_loaded", {}), max_waiting=9, ageing_s=30.0, chance=lambda: 0.0)
    fleet.on_change = made.pump
    return made


def test_new_calls_go_elsewhere_and_running_ones_go_on() -> None:
    fleet = fleet_of(DESK, RACK)
    line = line_for(fleet)
    running = line.apply(applicant(), 0.0)
    assert running is not None
    fleet.drain(running.backend, True, 1.0)
    others = [line.apply(applicant(), 1.0) for _ in range(2)]
    assert all(placed is not None and placed.backend is not running.backend for placed in others)
    assert running.lease.closed is None
    running.lease.close(Outcome.COMPLETED, 2.0)
    assert running.backend.account.own == 0


def test_who_waits_gets_the_room_of_a_backend_that_is_put_back() -> None:
    fleet = fleet_of(DESK, RACK)
    line = line_for(fleet)
    desk = fleet.backends()[0]
    fleet.drain(desk, True, 0.0)
    for _ in range(2):
        assert line.apply(applicant(), 0.0) is not None
    told: list[object] = []
    waiting = applicant()
    waiting.granted = told.append
    assert line.apply(waiting, 0.0) is None
    fleet.drain(desk, False, 1.0)
    [placed] = told
    assert isinstance(placed, Placed)
    assert placed.backend is desk


def test_with_all_taken_out_a_call_is_told_at_once_and_one_that_waits_too() -> None:
    fleet = fleet_of(DESK)
    line = line_for(fleet)
    (desk,) = fleet.backends()
    for _ in range(2):
        line.apply(applicant(), 0.0)
    told: list[object] = []
    waiting = applicant()
    waiting.granted = told.append
    assert line.apply(waiting, 0.0) is None
    fleet.drain(desk, True, 1.0)
    assert [type(each) for each in told] == [NoBackend]
    with pytest.raises(NoBackend, match="desk is drained"):
        line.apply(applicant(), 1.0)


def test_no_evidence_puts_it_back_and_a_reload_leaves_it_out_unless_it_is_another_server() -> None:
    fleet = fleet_of(DESK)
    (desk,) = fleet.backends()
    fleet.drain(desk, True, 0.0)
    fleet.loading(desk, Loading())
    fleet.probed(desk, Ready(), None, since_s=1.0, now_s=1.0)
    assert not desk.health.available(1.0)
    fleet.apply(settings(DESK, RACK))
    assert not fleet.backends()[0].health.available(1.0)
    fleet.apply(settings({**DESK, "url": "http://127.0.0.1:9999"}))
    assert not fleet.backends()[0].health.drained

"""Waiting for a place: leaving and expiring never cost a slot."""

from __future__ import annotations

import asyncio

import pytest

import policies
from classifiers.api import CallClass
from router.dispatch import Dispatcher
from router.errors import WaitedTooLong
from router.fleet.fleet import Fleet
from router.fleet.ledger import Outcome
from router.line import Line
from tests.router.builders import applicant, fleet_of

DESK = {"name": "desk", "lane": "latency", "max_inflight": 1}


def dispatcher_for(fleet: Fleet) -> Dispatcher:
    line = Line(fleet, policies.build("workload_aware", {}), max_waiting=100, ageing_s=30.0)
    return Dispatcher(fleet, line, asyncio.get_running_loop().time)


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def test_a_waiting_call_gets_the_room_that_another_leaves() -> None:
    fleet = fleet_of(DESK)
    dispatcher = dispatcher_for(fleet)
    first = await dispatcher.place(applicant(arrived_s=now_s()))
    second = asyncio.get_running_loop().create_task(dispatcher.place(applicant(arrived_s=now_s())))
    await asyncio.sleep(0)
    assert len(dispatcher.line) == 1
    first.lease.close(Outcome.COMPLETED, now_s())
    placed = await second
    assert placed.backend.name == "desk"
    placed.lease.close(Outcome.COMPLETED, now_s())
    assert len(fleet.ledger) == 0


async def test_after_max_wait_the_call_is_told_so_and_the_line_is_empty() -> None:
    dispatcher = dispatcher_for(fleet_of(DESK))
    await dispatcher.place(applicant(arrived_s=now_s()))
    with pytest.raises(WaitedTooLong, match=r"within 0\.02 s") as caught:
        await dispatcher.place(applicant(arrived_s=now_s(), max_wait_s=0.02))
    assert caught.value.retry_after_s is not None
    assert len(dispatcher.line) == 0


async def test_a_call_that_waited_elsewhere_already_waits_only_the_rest() -> None:
    dispatcher = dispatcher_for(fleet_of(DESK))
    await dispatcher.place(applicant(arrived_s=now_s()))
    with pytest.raises(WaitedTooLong):
        await dispatcher.place(applicant(arrived_s=now_s() - 100.0, max_wait_s=30.0))


async def test_a_client_that_leaves_is_out_of_the_line_at_once() -> None:
    fleet = fleet_of(DESK)
    dispatcher = dispatcher_for(fleet)
    await dispatcher.place(applicant(arrived_s=now_s()))
    waiting = asyncio.get_running_loop().create_task(dispatcher.place(applicant(arrived_s=now_s())))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert len(dispatcher.line) == 0
    assert len(fleet.ledger) == 1


@pytest.mark.parametrize("leave_first", [True, False])
async def test_a_client_that_leaves_in_the_turn_in_which_room_appears_frees_it_again(leave_first: bool) -> None:
    fleet = fleet_of(DESK)
    dispatcher = dispatcher_for(fleet)
    first = await dispatcher.place(applicant(arrived_s=now_s()))
    leaving, staying = (
        asyncio.get_running_loop().create_task(dispatcher.place(applicant(CallClass.TTFT, arrived_s=now_s())))
        for _ in range(2)
    )
    await asyncio.sleep(0)
    if leave_first:
        leaving.cancel()
        first.lease.close(Outcome.COMPLETED, now_s())
    else:
        first.lease.close(Outcome.COMPLETED, now_s())
        leaving.cancel()
    placed = await asyncio.wait_for(staying, 1.0)
    await asyncio.gather(leaving, return_exceptions=True)
    assert fleet.ledger.account("desk").own == 1
    placed.lease.close(Outcome.COMPLETED, now_s())
    assert len(fleet.ledger) == 0
    assert len(dispatcher.line) == 0

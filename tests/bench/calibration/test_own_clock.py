"""A server's own clock stands still while it waits for a processor, and never goes faster than the other one."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.calibration.own_clock import Counts, OwnClock, Watch


def clock(*counts: tuple[float, float, float]) -> OwnClock:
    made = OwnClock(Counts(*counts[0]))
    for each in counts[1:]:
        made.looked(Counts(*each))
    return made


def test_it_shows_the_same_while_nothing_is_waited_for() -> None:
    never = clock((10.0, 1.0, 2.0), (11.0, 2.0, 2.0), (12.0, 2.0, 2.0))
    assert [never.read(at_s) for at_s in (9.0, 10.0, 10.7, 12.0, 15.0)] == [9.0, 10.0, 10.7, 12.0, 15.0]
    assert never.stood_still_0_1 == 0.0


def test_it_is_behind_by_what_was_waited() -> None:
    half = clock((10.0, 0.0, 0.0), (11.0, 0.5, 0.5), (12.0, 0.5, 0.5))
    assert half.read(10.5) == pytest.approx(10.25)
    assert half.read(11.0) == half.read(11.5) - 0.5 == pytest.approx(10.5)
    assert half.read(20.0) == pytest.approx(19.5)
    assert half.stood_still_0_1 == 0.25


def test_what_waits_beside_a_thread_that_runs_is_not_counted() -> None:
    assert clock((0.0, 0.0, 0.0), (1.0, 1.0, 3.0)).read(1.0) == pytest.approx(1.0)
    assert clock((0.0, 0.0, 0.0), (1.0, 0.25, 3.0)).read(1.0) == pytest.approx(0.25)


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 4), st.floats(0, 4)), min_size=1, max_size=20))
def test_it_never_goes_back_and_never_faster(steps: list[tuple[float, float, float]]) -> None:
    counts = [(0.0, 0.0, 0.0)]
    for went_by_s, ran_s, waited_s in steps:
        at_s, ran, waited = counts[-1]
        counts.append((at_s + went_by_s, ran + ran_s, waited + waited_s))
    made = clock(*counts)
    shown = [made.read(at_s) for at_s, _, _ in counts]
    for place in range(1, len(counts)):
        went_by_s = counts[place][0] - counts[place - 1][0]
        assert -1e-9 <= shown[place] - shown[place - 1] <= went_by_s + 1e-9


async def test_a_process_is_watched_while_it_is_entered() -> None:
    async with Watch(os.getpid()) as watch:
        await watch.sleep_until(asyncio.get_running_loop().time() + 0.05)
        assert watch.clock.read(asyncio.get_running_loop().time()) <= asyncio.get_running_loop().time()
    assert watch.clock.last.ran_s >= watch.clock.first.ran_s > 0
    assert 0.0 <= watch.clock.stood_still_0_1 < 1.0


async def test_without_a_process_there_is_no_other_clock() -> None:
    async with Watch(None) as watch:
        await watch.sleep_until(asyncio.get_running_loop().time() + 0.05)
    now_s = asyncio.get_running_loop().time()
    assert watch.clock.read(now_s) == now_s

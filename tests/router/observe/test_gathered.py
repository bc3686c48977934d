"""Ended calls are told a few at once, soon, in order, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from router.observe.gathered import AT_ONCE, Ended, Gathered
from tests.router.observe.test_goodput import ended
from tests.scripted import eventually


def call(number: int) -> Ended:
    return Ended(ended(request_id=str(number)), None, float(number), number)


class Observer:
    def __init__(self) -> None:
        self.told: list[list[int]] = []
        self.gathered = Gathered(self._tell)

    def _tell(self, calls: Sequence[Ended]) -> None:
        self.told.append([each.unix_ns for each in calls])


async def test_so_many_are_told_at_once_in_the_order_in_which_they_ended() -> None:
    observer = Observer()
    for number in range(2 * AT_ONCE + 1):
        observer.gathered.add(call(number))
    assert observer.told == [list(range(AT_ONCE)), list(range(AT_ONCE, 2 * AT_ONCE))]


async def test_a_single_call_is_told_soon() -> None:
    observer = Observer()
    observer.gathered.add(call(0))
    await eventually(lambda: observer.told == [[0]])
    observer.gathered.add(call(1))
    await eventually(lambda: observer.told == [[0], [1]])


async def test_who_shows_figures_has_them_told_now_and_none_is_told_twice() -> None:
    observer = Observer()
    observer.gathered.add(call(1))
    observer.gathered.flush()
    observer.gathered.flush()
    await asyncio.sleep(0.3)
    assert observer.told == [[1]]

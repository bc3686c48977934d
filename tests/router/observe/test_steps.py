"""Work in steps: the same result either way, and others get their turn in between."""

from __future__ import annotations

import asyncio
from itertools import count

from router.observe.steps import MOST_AT_ONCE_S, Steps, at_once, in_turns
from router.tasks import Tasks


def squares(most: int) -> Steps[list[int]]:
    found = []
    for number in range(most):
        found.append(number * number)
        yield
    return found


async def test_both_ways_make_the_same() -> None:
    assert at_once(squares(5)) == await in_turns(squares(5)) == [0, 1, 4, 9, 16]
    assert at_once(squares(0)) == await in_turns(squares(0)) == []


async def test_others_get_their_turn_when_a_millisecond_is_over() -> None:
    ticks = count()
    turns = 0
    over = asyncio.Event()

    async def other() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            await asyncio.sleep(0)

    tasks = Tasks()
    task = tasks.spawn(other(), name="other")
    await in_turns(squares(100), lambda: next(ticks) * MOST_AT_ONCE_S * 0.3)  # each look takes 0.3 ms
    over.set()
    await task
    assert 20 < turns < 60

"""Work in steps: what takes many milliseconds lets the event loop go on in between.

It is a generator that yields wherever it may be left for a while, and returns what it has made.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from typing import Final, TypeVar

Made = TypeVar("Made")
Steps = Generator[None, None, Made]

MOST_AT_ONCE_S: Final = 0.001


def at_once(steps: Steps[Made]) -> Made:
    """To the end, for who has nobody waiting."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made: Made = end.value
            return made


async def in_turns(steps: Steps[Made], clock: Callable[[], float] = time.perf_counter) -> Made:
    """To the end, giving way when it has taken a millisecond."""
    began_s = clock()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made: Made = end.value
            return made
        if clock() - began_s > MOST_AT_ONCE_S:
            await asyncio.sleep(0)
            began_s = clock()

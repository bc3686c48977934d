"""The clock of a server that shares its machine: it stands still while the server waits for a processor.

Linux counts how long each thread ran and how long it could have run and did not (`/proc/PID/task/TID/schedstat`, in
nanoseconds). On the clock of a server that had to wait for half of the time, calls take half as long, as they would on
an idle machine, but for caches that others have filled.
"""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_right
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from bench.cpu import family

EVERY_S = 0.02
LEAST_SLEEP_S = 0.002


class Counts(NamedTuple):
    """Since a moment in the past, of all threads together."""

    at_s: float
    ran_s: float
    waited_s: float


class OwnClock:
    """Readings of one clock against the other, which it shows at first."""

    def __init__(self, counts: Counts) -> None:
        self.first = self.last = counts
        self._at_s = [counts.at_s]
        self._lost_s = [0.0]

    def looked(self, counts: Counts) -> None:
        self._at_s.append(counts.at_s)
        self._lost_s.append(self._lost_s[-1] + _lost_s(self.last, counts))
        self.last = counts

    def read(self, at_s: float) -> float:
        """What it shows at a moment of the other one."""
        place = bisect_right(self._at_s, at_s)
        if place == 0:
            return at_s
        if place == len(self._at_s):
            return at_s - self._lost_s[-1]
        since_s, until_s = self._at_s[place - 1 : place + 1]
        share = (at_s - since_s) / (until_s - since_s)
        return at_s - self._lost_s[place - 1] - share * (self._lost_s[place] - self._lost_s[place - 1])

    @property
    def stood_still_0_1(self) -> float:
        """Share of the time since it was started."""
        went_by_s = self.last.at_s - self.first.at_s
        return self._lost_s[-1] / went_by_s if went_by_s else 0.0


def _lost_s(before: Counts, after: Counts) -> float:
    """Between two looks. While one thread runs, others that wait beside it are not counted: the server gets on."""
    ran_s, went_by_s = after.ran_s - before.ran_s, after.at_s - before.at_s
    return min(after.waited_s - before.waited_s, max(0.0, went_by_s - ran_s))


class Watch:
    """Looks at the threads that a process and its descendants have when it is entered; `clock` goes on meanwhile."""

    def __init__(self, pid: int | None) -> None:
        """With None it looks at nothing, and the clock is that of the event loop."""
        self._pid = pid
        self._files: list[int] = []
        self.clock = OwnClock(Counts(0.0, 0.0, 0.0))
        self._task: asyncio.Task[None] | None = None
        self._stack = ExitStack()

    async def __aenter__(self) -> Self:
        for thread in _threads(self._pid):
            with suppress(OSError):
                self._files.append(file := os.open(thread, os.O_RDONLY))
                self._stack.callback(os.close, file)
        self.clock = OwnClock(self._look())
        self._task = asyncio.get_running_loop().create_task(self._go_on())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self.clock.looked(self._look())
        self._stack.close()

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            self.clock.looked(self._look())

    def _look(self) -> Counts:
        ran_ns = waited_ns = 0
        for file in self._files:
            with suppress(OSError):  # the thread has ended
                ran, waited, _ = os.pread(file, 64, 0).split()
                ran_ns += int(ran)
                waited_ns += int(waited)
        return Counts(asyncio.get_running_loop().time(), ran_ns / 1e9, waited_ns / 1e9)

    async def sleep_until(self, shown_s: float) -> None:
        """Until the clock shows so much. It never goes faster than the other one."""
        loop = asyncio.get_running_loop()
        while (left_s := shown_s - self.clock.read(loop.time())) > 0:  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(max(left_s, LEAST_SLEEP_S))


def _threads(pid: int | None) -> list[Path]:
    if pid is None:
        return []
    return [file for member in family(pid) for file in Path(f"/proc/{member}/task").glob("*/schedstat")]

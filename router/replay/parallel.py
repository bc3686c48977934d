"""Several settings at once, one process each: a simulation keeps one core busy, and they have nothing in common.

Processes are forked, so that none has to read the calls again. Where a system cannot fork, or has one core, settings
are tried one after the other.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, Generic, TypeVar

_LOOK_S: Final = 0.2
"""Between two looks at how far they are."""

Result = TypeVar("Result")
Work = Callable[[Callable[[int], None]], Result]
"""Told how many calls have arrived as it goes. What it gives has to be picklable."""


class Broken(Exception):
    """A process ended without a result."""


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(works: Sequence[Work[Result]], jobs: int, moved: Callable[[int, int], None]) -> list[Result]:
    """The results, in order. `moved` is told which work has come how far. Raises `Broken`."""
    if min(jobs, len(works)) <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        return [work(partial(moved, number)) for number, work in enumerate(works)]
    return _Forked(works, jobs, moved).run()


class _Forked(Generic[Result]):
    def __init__(self, works: Sequence[Work[Result]], jobs: int, moved: Callable[[int, int], None]) -> None:
        self._context = multiprocessing.get_context("fork")
        self._works = works
        self._jobs = jobs
        self._moved = moved
        self._counts: Any = self._context.Array("q", len(works), lock=False)
        self._going: dict[Connection, tuple[int, BaseProcess]] = {}
        self._results: dict[int, Result] = {}

    def run(self) -> list[Result]:
        waiting = list(range(len(self._works)))
        try:
            while waiting or self._going:
                while waiting and len(self._going) < self._jobs:
                    self._start(waiting.pop(0))
                for ended in wait(list(self._going), _LOOK_S):
                    assert isinstance(ended, Connection)
                    self._take(ended)
                for number, count in enumerate(self._counts):
                    self._moved(number, count)
        finally:
            for _, process in self._going.values():
                process.terminate()
                process.join()
        return [self._results[number] for number in range(len(self._works))]

    def _start(self, number: int) -> None:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=self._work, args=(number, theirs), daemon=True)
        process.start()
        theirs.close()
        self._going[ours] = number, process

    def _work(self, number: int, answer: Connection) -> None:
        """In the other process."""

        def count(arrived: int) -> None:
            self._counts[number] = arrived

        answer.send(self._works[number](count))

    def _take(self, ended: Connection) -> None:
        number, process = self._going.pop(ended)
        try:
            self._results[number] = ended.recv()
        except EOFError:
            process.join()
            raise Broken(f"a process ended without a result (exit code {process.exitcode})") from None
        finally:
            ended.close()
        process.join()

"""Waiting for a place: the asynchronous side of the line, with its futures and timers."""

from __future__ import annotations

import asyncio
from functools import partial
from math import inf

from router.applicant import Applicant, Placed
from router.errors import RouterError
from router.fleet.fleet import Fleet
from router.fleet.ledger import Outcome
from router.line import Line
from router.tasks import Clock

_SOONEST_S = 0.005
"""A policy that asks to be asked again at once is not asked in a circle."""


class Dispatcher:
    """Gives each call a place, at once or when room appears, and pumps the line when the fleet changes."""

    def __init__(self, fleet: Fleet, line: Line, clock: Clock) -> None:
        self.line = line
        self._clock = clock
        self._look: asyncio.TimerHandle | None = None
        self._looks_s = inf
        fleet.on_change = self._changed
        line.on_look = self._look_at

    def _changed(self, now_s: float) -> None:
        self.line.pump(now_s)

    def _look_at(self, at_s: float) -> None:
        """The line wants to be asked again then. One timer, for the soonest such time."""
        if at_s >= self._looks_s:
            return
        if self._look is not None:
            self._look.cancel()
        self._looks_s = at_s
        self._look = asyncio.get_running_loop().call_later(max(_SOONEST_S, at_s - self._clock()), self._looks)

    def _looks(self) -> None:
        self._look, self._looks_s = None, inf
        self.line.pump(self._clock())

    async def place(self, applicant: Applicant) -> Placed:
        """Returns with an open lease. Raises `RouterError` where there is no place, now or within `max_wait`.

        Cancelled (the client left): the call is out of the line before the next one is looked at.
        """
        placed = self.line.apply(applicant, self._clock())
        return placed if placed is not None else await self._wait(applicant)

    async def _wait(self, applicant: Applicant) -> Placed:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Placed] = loop.create_future()
        applicant.granted = partial(self._granted, future)
        left_s = applicant.ask.arrived_s + applicant.ask.rules.max_wait_s - self._clock()
        timer = loop.call_later(max(0.0, left_s), self._expired, applicant, future)
        try:
            return await future
        except asyncio.CancelledError:
            if not self.line.leave(applicant) and not future.cancelled() and future.exception() is None:
                # Room was found in the very turn in which the client left.
                future.result().lease.close(Outcome.IGNORED, self._clock())
            raise
        finally:
            timer.cancel()
            applicant.granted = None
            del future  # it keeps the error that it raises, which keeps this frame

    def _granted(self, future: asyncio.Future[Placed], result: Placed | RouterError) -> None:
        if future.cancelled():
            if isinstance(result, Placed):  # its client left earlier in this very turn
                result.lease.close(Outcome.IGNORED, self._clock())
        elif isinstance(result, RouterError):
            future.set_exception(result)
        else:
            future.set_result(result)

    def _expired(self, applicant: Applicant, future: asyncio.Future[Placed]) -> None:
        if self.line.leave(applicant) and not future.cancelled():
            future.set_exception(self.line.waited_too_long(applicant))

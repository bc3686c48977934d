"""What both sides' connections have in common: one timer for all limits, one waiter, a socket that need not be read.

The timer is re-armed only when it rings too early. To move a limit into the future is one store into `_deadline_s`;
where that is done for each piece, the connections do it themselves.
"""

from __future__ import annotations

import asyncio
from math import inf


class TimedProtocol(asyncio.Protocol):
    """A base class and not a part, since what it holds is touched for each token."""

    __slots__ = ("_alarm", "_alarm_at_s", "_clock", "_deadline_s", "_loop", "_paused", "_transport", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._clock = loop.time
        self._transport: asyncio.Transport
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at_s = inf
        self._deadline_s = inf

    # --- the timer

    def _out_of_time(self) -> None:
        """The deadline has passed."""
        raise NotImplementedError

    def _set_deadline(self, at_s: float) -> None:
        self._deadline_s = at_s
        if at_s < self._alarm_at_s:
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_at_s = at_s
            self._alarm = self._loop.call_at(at_s, self._rung)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _rung(self) -> None:
        self._alarm = None
        self._alarm_at_s = inf
        if self._clock() >= self._deadline_s:
            self._out_of_time()
        elif self._deadline_s != inf:
            self._set_deadline(self._deadline_s)

    # --- the waiter

    async def _woken(self) -> None:
        waiter = self._waiter = self._loop.create_future()
        try:
            await waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- reading

    def _pause_reading(self) -> None:
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

"""Keeps so many calls open at once until all that were planned are over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from time import monotonic

from bench.soak.call import Call, Manner
from bench.soak.client import Connection, Seen, connect

PATIENCE_S = 60.0
"""Longer than any limit of the router that a call can meet."""


BACK_OFF_S = 0.1


class Driver:
    """A closed loop. `on_seen` is told of each call that is over; what else went wrong is in `complaints`."""

    def __init__(self, port: int, calls: Iterator[Call], on_seen: Callable[[Seen], None]) -> None:
        self._port = port
        self._calls = calls
        self._on_seen = on_seen
        self._connections: set[Connection] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._done = asyncio.Event()
        self._lanes = 0
        self.begun = 0
        self.over = 0
        self.connects = 0
        self.complaints: list[str] = []

    async def run(self, concurrency: int) -> None:
        """Return when the calls have run out and each is over."""
        for _ in range(concurrency):
            self._lanes += 1
            self._next(None)
        patience = asyncio.get_running_loop().create_task(self._lose_patience())
        try:
            await self._done.wait()
        finally:
            patience.cancel()
            for connection in tuple(self._connections):
                connection.abort()

    def _next(self, free: Connection | None) -> None:
        """Begin the next call, on this connection if it fits."""
        call = next(self._calls, None)
        if call is None:
            if free is not None:
                self._drop(free)
            self._lanes -= 1
            if not self._lanes:
                self._done.set()
            return
        self.begun += 1
        if free is not None and free.usable and call.manner is not Manner.SLOW_READER:
            free.send(call)
            return
        if free is not None:
            self._drop(free)
        task = asyncio.get_running_loop().create_task(self._connect(call))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, call: Call) -> None:
        try:
            connection = await connect(self._port, self, call)
        except OSError as error:
            seen = Seen(call, monotonic())
            seen.error = f"no connection to the router: {error}"
            self._told(seen)
            self._next(None)
            return
        self.connects += 1
        self._connections.add(connection)
        connection.send(call)

    def _drop(self, connection: Connection) -> None:
        self._connections.discard(connection)
        connection.abort()

    def _told(self, seen: Seen) -> None:
        self.over += 1
        self._on_seen(seen)

    # --- from the connections

    def ended(self, connection: Connection, seen: Seen) -> None:
        self._told(seen)
        free: Connection | None = connection
        if not connection.usable or seen.call.manner is Manner.SLOW_READER:
            self._drop(connection)
            free = None
        if seen.status in (429, 503):  # told to come back later
            asyncio.get_running_loop().call_later(BACK_OFF_S, self._next, free)
        else:
            self._next(free)

    def stray(self, data: bytes) -> None:
        self.complaints.append(f"bytes that belong to no call: {data[:200]!r}")

    async def _lose_patience(self) -> None:
        while True:
            await asyncio.sleep(1)
            for connection in tuple(self._connections):
                if connection.age_s > PATIENCE_S:
                    connection.give_up(f"no end after {PATIENCE_S:g} s")

"""Pages that are open, and the task that tells them what is new: one frame a second, made once for all of them.

With no page open there is no task. A page that reads too slowly misses frames, which it can see from their numbers, and
holds up nobody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from router.errors import Overloaded
from router.tasks import Tasks

TICK_S: Final = 1.0
MOST_PAGES: Final = 32
_BEHIND: Final = 8
"""Frames that may wait for a slow page."""


class Page:
    """One open page. The end of the stream is None."""

    def __init__(self) -> None:
        self._frames: deque[bytes | None] = deque(maxlen=_BEHIND)
        self._news = asyncio.Event()
        self._begun = False

    def begin(self, everything: bytes) -> None:
        """Its first frame. Those that were made before it add nothing to it, and would come too early."""
        self._begun = True
        self._add(everything)

    def put(self, frame: bytes | None) -> None:
        if self._begun or frame is None:
            self._add(frame)

    def _add(self, frame: bytes | None) -> None:
        self._frames.append(frame)
        self._news.set()

    async def frame(self) -> bytes | None:
        """The next frame, as bytes of the stream."""
        while not self._frames:
            self._news.clear()
            await self._news.wait()
        return self._frames.popleft()


class Events:
    """`frame` makes one; it runs in the event loop, so it has to give way."""

    def __init__(self, frame: Callable[[int], Awaitable[bytes]], tasks: Tasks) -> None:
        """`frame` is given its number, which counts up while pages are open."""
        self._frame = frame
        self._tasks = tasks
        self._pages: set[Page] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def pages(self) -> int:
        return len(self._pages)

    @asynccontextmanager
    async def page(self) -> AsyncIterator[Page]:
        """A page is open as long as this is entered. Raises `Overloaded` where there are too many."""
        if len(self._pages) >= MOST_PAGES:
            raise Overloaded(f"{MOST_PAGES} pages are open already; close one")
        page = Page()
        self._pages.add(page)
        if self._task is None or self._task.done():
            self._task = self._tasks.spawn(self._tell(), name="dashboard")
        try:
            yield page
        finally:
            self._pages.discard(page)

    def close(self) -> None:
        """End all streams, e.g. since the router ends or another key is asked for."""
        for page in self._pages:
            page.put(None)

    async def _tell(self) -> None:
        number = 0
        while self._pages:
            await asyncio.sleep(TICK_S)
            number += 1
            frame = await self._frame(number)
            for page in self._pages:
                page.put(frame)


def event(name: str, data: bytes) -> bytes:
    """One event of a `text/event-stream`; `data` is JSON without line breaks."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)

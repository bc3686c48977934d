"""Pages that are open, and what they cost while none is."""

from __future__ import annotations

import pytest

from router.dashboard.events import MOST_PAGES, Events, event
from router.errors import Overloaded
from router.tasks import Tasks


async def numbered(number: int) -> bytes:
    return b"%d" % number


async def test_frames_are_made_once_for_all_pages_and_never_while_none_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.dashboard.events.TICK_S", 0.01)
    made: list[int] = []

    async def frame(number: int) -> bytes:
        made.append(number)
        return b"%d" % number

    tasks = Tasks()
    events = Events(frame, tasks)
    assert len(tasks) == 0
    async with events.page() as one, events.page() as other:
        for page in (one, other):
            page.begin(b"all")
            assert await page.frame() == b"all"
        assert [await one.frame(), await one.frame()] == [await other.frame(), await other.frame()]
    assert events.pages == 0
    for task in tuple(tasks._tasks):
        await task
    count = len(made)
    assert count < 6
    async with events.page() as later:
        later.begin(b"all")
        assert [await later.frame(), await later.frame()] == [b"all", b"1"]
    await tasks.close()


async def test_a_slow_page_misses_frames_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.dashboard.events.TICK_S", 0.001)
    tasks = Tasks()
    events = Events(numbered, tasks)
    async with events.page() as slow, events.page() as quick:
        slow.begin(b"0")
        quick.begin(b"0")
        for _ in range(40):
            await quick.frame()
        assert int(await slow.frame() or b"0") > 1
        events.close()
        while await slow.frame() is not None:
            pass
    await tasks.close()


async def test_no_frame_comes_before_the_one_with_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.dashboard.events.TICK_S", 0.001)
    tasks = Tasks()
    events = Events(numbered, tasks)
    async with events.page() as quick, events.page() as slow:
        quick.begin(b"all")
        for _ in range(4):
            await quick.frame()
        slow.begin(b"all")
        assert await slow.frame() == b"all"
        assert int(await slow.frame() or b"0") > 3
    async with events.page() as ended:
        events.close()
        assert await ended.frame() is None, "the end comes even where nothing came before"
    await tasks.close()


async def test_there_is_room_for_so_many_pages() -> None:
    tasks = Tasks()
    events = Events(numbered, tasks)
    from contextlib import AsyncExitStack

    async with AsyncExitStack() as stack:
        for _ in range(MOST_PAGES):
            await stack.enter_async_context(events.page())
        with pytest.raises(Overloaded, match="close one"):
            await stack.enter_async_context(events.page())
    await tasks.close()


def test_an_event_is_framed_as_the_standard_has_it() -> None:
    assert event("frame", b"{}") == b"event: frame\ndata: {}\n\n"

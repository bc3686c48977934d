"""What a process cannot show from outside: no task and no object of a call is left when all calls are over."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from pathlib import Path

from bench.soak.client import Seen
from bench.soak.driver import Driver
from bench.soak.fleet import Backends, settings
from bench.soak.judge import WRONG
from bench.soak.schedule import FAULTY, calls
from bench.soak.tally import Tally
from router.app import App
from router.applicant import Applicant
from router.call import Call
from router.fleet.ledger import Lease
from router.settings.model import Settings
from router.wire.connection import Connection
from router.wire.request_reader import RequestReader
from router.wire.response_reader import ResponseReader
from router.wire.server_connection import ServerConnection
from router.wire.server_exchange import HttpExchange
from tests.scripted import eventually

OF_CALLS = (Applicant, Call, Connection, HttpExchange, Lease, RequestReader, ResponseReader, ServerConnection)
CALLS = 1500


def living() -> Counter[str]:
    """Objects that only calls and their connections make."""
    gc.collect()
    return Counter(type(thing).__name__ for thing in gc.get_objects() if type(thing) in OF_CALLS)


def tasks() -> Counter[str]:
    """By what they do; probes come and go."""
    names = (task.get_coro().__qualname__ for task in asyncio.all_tasks())  # type: ignore[union-attr]
    return Counter(name for name in names if "robe" not in name and "ask" not in name)


async def test_no_task_and_no_object_is_left_of_calls_under_faults(tmp_path: Path) -> None:
    before = living()
    with Backends(tmp_path) as backends:
        app = App(Settings.model_validate(settings(backends.ports)))
        listen, _ = await app.start()
        try:
            await eventually(lambda: all(row["health"] == "up" for row in app.backends()))
            tasks_before = tasks()
            tally = Tally(CALLS)
            in_the_middle: set[str] = set()

            def take(seen: Seen) -> None:
                tally.take(seen)
                if tally.kinds.total() == CALLS // 2:
                    in_the_middle.update(living())

            await Driver(listen.port, calls(11, CALLS, FAULTY), take).run(64)
            assert in_the_middle == {kind.__name__ for kind in OF_CALLS}
            assert {kind: tally.kinds[kind] for kind in WRONG if tally.kinds[kind]} == {}
            await eventually(lambda: tasks() == tasks_before, within_s=10)
            await eventually(lambda: living() == before, within_s=10)
        finally:
            await app.close()

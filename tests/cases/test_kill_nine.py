"""SIGKILL for the router while calls run: broken transfers and no false end, and it starts again at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.servers.process import free_port
from bench.servers.router import RouterProcess
from bench.soak.apis import APIS
from bench.soak.call import Call
from bench.soak.client import Seen
from bench.soak.fleet import Backends, settings
from bench.soak.judge import Kind, look
from bench.soak.load import begin, make
from bench.soak.order import Framing, Order
from bench.soak.script import expected
from tests.scripted import eventually

LATER_MS = 60_000
"""When the router is long dead."""

MakeOrder = Callable[[int], Order]
"""From the number of the call."""


class House:
    """Backends that stay, and a router that does not; its ports, settings and folder are always the same."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self.backends = stack.enter_context(Backends(folder))
        listen, admin = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self._settings = settings(self.backends.ports, caps=[100] * 4, listen=listen, admin=admin)
        self.router = self._start()

    def _start(self) -> RouterProcess:
        return self._stack.enter_context(RouterProcess(self._settings, folder=self._folder))

    def restart(self) -> None:
        self.router = self._start()

    @property
    def port(self) -> int:
        return int(self.router.url.rpartition(":")[2])

    def files(self) -> dict[str, bytes]:
        """All that is on disk but the logs."""
        return {path.name: path.read_bytes() for path in self._folder.iterdir() if path.suffix != ".log"}

    async def kill_under(self, calls: Sequence[Call], *, answered: bool) -> list[Seen]:
        """What comes of calls that are at a backend, and (`answered`) in the middle of their answer."""
        begun = [await begin(self.port, call) for call in calls]
        async with asyncio.timeout(10):
            while await self.backends.open_calls() < len(calls):
                await asyncio.sleep(0.01)
        await eventually(lambda: not answered or all(connection.received_bytes for connection, _ in begun))
        await asyncio.to_thread(self.router.process.kill)
        return list(await asyncio.gather(*(seen for _, seen in begun)))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with ExitStack() as stack:
        yield House(tmp_path, stack)


def of_each_api(*makers: MakeOrder) -> list[Call]:
    orders = [(api, maker) for api in APIS.values() for maker in makers]
    return [
        Call(api=api, order=make_order(n), call_class="ttft") for n, (api, make_order) in enumerate(orders, start=1)
    ]


STREAMS = of_each_api(
    lambda n: Order(n=n, stream=True, pieces=1000, batch=1, gap_ms=20),
    lambda n: Order(n=n, stream=True, pieces=1000, batch=7, gap_ms=20),
    lambda n: Order(n=n, stream=True, pieces=5, batch=5, gap_ms=LATER_MS),
)
"""The last kind lacks little but its ending."""
WHOLES = of_each_api(
    lambda n: Order(n=n, pieces=200, batch=1, gap_ms=LATER_MS, framing=Framing.LENGTH),
    lambda n: Order(n=n, pieces=200, batch=1, gap_ms=LATER_MS, framing=Framing.CHUNKED),
    lambda n: Order(n=n, pieces=200, batch=5, gap_ms=LATER_MS, framing=Framing.UNTIL_CLOSE),
)
SILENT = of_each_api(lambda n: Order(n=n, think_ms=LATER_MS))


@pytest.mark.parametrize("calls", [STREAMS, WHOLES], ids=["streams", "whole answers"])
async def test_an_answer_in_the_middle_is_broken_and_what_came_of_it_is_true(house: House, calls: list[Call]) -> None:
    for seen in await house.kill_under(calls, answered=True):
        assert (seen.status, seen.complete, seen.error) == (200, False, "")
        body = expected(seen.call.api, seen.call.order).body
        assert body.startswith(seen.body)
        assert 0 < seen.size < len(body)


async def test_a_call_without_an_answer_gets_none(house: House) -> None:
    for seen in await house.kill_under(SILENT, answered=False):
        assert (seen.status, seen.complete, seen.size) == (0, False, 0)


async def test_backends_are_not_left_working_for_nobody(house: House) -> None:
    await house.kill_under([*STREAMS, *WHOLES[:4]], answered=True)
    async with asyncio.timeout(2):
        while await house.backends.open_calls():
            await asyncio.sleep(0.01)


async def test_it_starts_again_on_the_same_ports_and_serves_at_once(house: House) -> None:
    before, port = house.files(), house.port
    for first in (1001, 2001):
        await house.kill_under(STREAMS, answered=True)
        await asyncio.to_thread(house.restart)
        assert house.port == port
        assert house.files() == before
        again = [Call(api=api, order=Order(n=first + n, stream=n % 2 == 0)) for n, api in enumerate(APIS.values())]
        seen = await asyncio.gather(*(make(house.port, call) for call in again))
        assert [look(one).kind for one in seen] == [Kind.COMPLETE] * len(again)
    journal = await house.backends.journal()
    assert journal.complaints == []
    assert max(journal.generations(n) for n in range(1001, 2010)) == 1

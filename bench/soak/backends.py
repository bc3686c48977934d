"""Four inference servers in one process that do what each call orders, faults included, and keep a journal of it.

    python -m bench.soak.backends CONTROL_PORT PORT PORT PORT PORT

Raw protocols, so that the router is what is loaded. The control port takes one JSON document a line and answers with
one: `{"do": "down", "place": 2, "ms": 500, "cut": true}`, `{"do": "hang", "place": 2, "on": true}`,
`{"do": "journal"}`, `{"do": "open"}`.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import httptools
import uvloop

from bench.soak.apis import BY_PATH, Api
from bench.soak.engines import ENGINES, MODEL, NOT_FOUND, PROBES, own_model
from bench.soak.journal import Fate, Journal
from bench.soak.order import Fault, Framing, Order, Then, Way, read
from bench.soak.script import STATUS, End, script

GZIP = b"\x1f\x8b"
RESET = struct.pack("ii", 1, 0)
BEFORE_RESET_S = 0.003
"""For the router to read what was written."""
LATE_RESET_S = 1.1
"""A reset of a kept connection before this says that the call was not read; see `router.wire.unread`."""
_NO_WRITES: Iterator[tuple[int, bytes]] = iter(())


class Place:
    """One backend: a port that can be closed for a while."""

    def __init__(self, number: int, port: int, journal: Journal) -> None:
        self.journal = journal
        self.probes = PROBES[ENGINES[number]]
        self.models = {f'{{"model":"{name}"'.encode() for name in (MODEL, own_model(number))}
        self.connections: set[Served] = set()
        self.hangs = False
        """It reads calls and answers none, and its probes are fine."""
        self._port = port
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Served(self), "127.0.0.1", self._port, backlog=4096)

    async def down(self, seconds: float, *, cut: bool) -> None:
        """Refuse connections for a while; with `cut` those that are open end, too, as when a process is killed."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        if cut:
            for connection in tuple(self.connections):
                connection.cut()
        await asyncio.sleep(seconds)
        await self.listen()

    @property
    def open_calls(self) -> int:
        return sum(connection.busy for connection in self.connections)


class Served(asyncio.Protocol):
    """One connection."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._target = b""
        self._body: list[bytes] = []
        self._order: Order | None = None
        self._writes = _NO_WRITES
        self._end = End.NEXT
        self._timer: asyncio.TimerHandle | None = None
        self._calls = 0
        self._written = False
        self._full = False
        self._held = False

    @property
    def busy(self) -> bool:
        return self._order is not None

    # --- bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports do not derive from it
        self._place.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._place.connections.discard(self)
        self._disarm()
        self._over(Fate.LEFT)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._place.journal.complain(f"not a request: {data[:200]!r} ({error})")
            self._transport.abort()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        target, body = self._target, b"".join(self._body)
        self._target = b""
        self._body.clear()
        if (api := BY_PATH.get(target)) is not None:
            self._call(api, body)
        else:
            self._transport.write(self._place.probes.get(target, NOT_FOUND))

    # --- a call

    def _call(self, api: Api, body: bytes) -> None:
        journal = self._place.journal
        if body.startswith(GZIP):
            body = gzip.decompress(body)
        asked = read(body)
        if asked is None:
            journal.complain(f"no order in a body of {len(body)} bytes: {body[:200]!r}")
            self._transport.abort()
            return
        order = asked.order
        if self._order is not None:
            journal.complain(f"call {order.n} came on a connection that call {self._order.n} is on")
        if not asked.intact or body[: body.index(b",")] not in self._place.models:
            journal.complain(f"the body of call {order.n} has changed: {body[:200]!r}")
        if journal.visited(order.n) and order.fault is Fault.LOADING:
            order = replace(order, fault=Fault.NONE)
        if self._place.hangs:
            order = replace(order, fault=Fault.UNANSWERED, way=Way.HANG)
        if order.fault not in STATUS or order.fault is Fault.ERROR:
            journal.generates(order.n)
        self._disarm()
        self._order = order
        self._calls += 1
        self._written = False
        answer = script(api, order)
        self._writes, self._end = answer.writes, answer.end
        self._go_on()

    def _go_on(self) -> None:
        for wait_ms, data in self._writes:
            if wait_ms:
                self._timer = self._loop.call_later(wait_ms / 1000, self._write, data)
                return
            if data:
                self._written = True
                self._transport.write(data)
            if self._full:
                self._held = True
                return
        self._finish()

    def _write(self, data: bytes) -> None:
        if data:
            self._written = True
            self._transport.write(data)
        if self._full:
            self._held = True
        else:
            self._go_on()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self._held:
            self._held = False
            self._go_on()

    def _finish(self) -> None:
        match self._end:
            case End.NEXT:
                order = self._order
                self._over(Fate.ANSWERED)
                if order is not None and order.then is not Then.KEEP:
                    self._after(order)
            case End.CLOSE:
                self._over(Fate.ANSWERED)
                self._transport.close()
            case End.RESET:
                late = self._calls > 1 and not self._written
                self._timer = self._loop.call_later(LATE_RESET_S if late else BEFORE_RESET_S, self._reset)
            case End.HANG:
                pass

    def _over(self, fate: Fate) -> None:
        if self._order is not None:
            self._place.journal.ended(self._order.n, fate)
            self._order = None

    # --- ends of a connection

    def _after(self, order: Order) -> None:
        """The answer promised to keep it."""
        end = self._reset if order.then is Then.RESET else self._transport.close
        if order.then is Then.DEAF:
            self._transport.pause_reading()
        self._timer = self._loop.call_later(order.then_ms / 1000, end)

    def _reset(self) -> None:
        self._over(Fate.ANSWERED)
        if not self._transport.is_closing():
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self._transport.abort()

    def cut(self) -> None:
        """As the end of a process does it. But where the end of the connection is the end of the answer and no end
        mark can be missed, nobody could tell; so that comes as a reset."""
        order = self._order
        self._over(Fate.CUT)
        if order is not None and order.framing is Framing.UNTIL_CLOSE and not order.stream:
            self._reset()
        else:
            self._transport.abort()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Control:
    """Obeys the conductor of a run."""

    def __init__(self, places: list[Place], journal: Journal) -> None:
        self._places = places
        self._journal = journal

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(json.dumps(await self._obey(json.loads(line))).encode() + b"\n")
        writer.close()

    async def _obey(self, command: dict[str, Any]) -> dict[str, Any]:
        match command:
            case {"do": "down", "place": int(place), "ms": int(ms), "cut": bool(cut)}:
                await self._places[place].down(ms / 1000, cut=cut)
                return {"done": True}
            case {"do": "hang", "place": int(place), "on": bool(on)}:
                self._places[place].hangs = on
                return {"done": True}
            case {"do": "journal"}:
                return self._journal.as_json()
            case {"do": "open"}:
                connections = sum(len(place.connections) for place in self._places)
                return {"calls": sum(place.open_calls for place in self._places), "connections": connections}
            case _:
                return {"error": f"unknown command: {command}"}


async def serve(control_port: int, ports: list[int]) -> None:
    """On the loopback address, until SIGTERM or Ctrl-C."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    journal = Journal()
    places = [Place(number, port, journal) for number, port in enumerate(ports)]
    for place in places:
        await place.listen()
    server = await asyncio.start_server(Control(places, journal).serve, "127.0.0.1", control_port)
    print("ready", flush=True)
    await stop.wait()
    server.close()


def main() -> None:
    control_port, *ports = map(int, sys.argv[1:])
    uvloop.run(serve(control_port, ports))


if __name__ == "__main__":
    main()

"""The clients: each call goes out when its time has come, whatever became of others, and is watched to its end."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import httptools

from bench.mixes.plan import PATH, Call, Fault, Workload

_TOKEN = re.compile(rb'"(?:content|arguments)":\s*"(?: \w|\\")')
"""A piece of an answer: tokens of emulated servers begin with a space."""

PATIENCE_S = 75.0
"""When a client leaves: later than any promise, so that who is late still takes up room, as in life."""

Label = Callable[[Call], Mapping[str, str]]
"""Header fields that tell a router what a call is."""


@dataclass(slots=True)
class Outcome:
    """What a client saw. Times in seconds since the call was due."""

    call: Call
    status: int | None = None
    first_s: float | None = None
    end_s: float | None = None
    tokens: int = 0
    last_s: float | None = None
    error: str = ""

    @property
    def complete(self) -> bool:
        return self.status == 200 and self.end_s is not None

    @property
    def tpot_s(self) -> float | None:
        """Mean gap between tokens of a stream."""
        if self.first_s is None or self.last_s is None or self.tokens < 2:
            return None
        return (self.last_s - self.first_s) / (self.tokens - 1)

    @property
    def kept(self) -> bool:
        """Whether the call got what it was promised."""
        promise = self.call.promise
        if not self.complete:
            return False
        first_s, tpot_s = (self.first_s, self.tpot_s) if self.call.stream else (self.end_s, None)
        return (
            _within(first_s, promise.ttft_s)
            and _within(tpot_s, promise.tpot_s, unknown=True)
            and _within(self.end_s, promise.complete_s)
        )


def _within(value_s: float | None, limit_s: float | None, *, unknown: bool = False) -> bool:
    if limit_s is None:
        return True
    return unknown if value_s is None else value_s <= limit_s


class _Watch(asyncio.Protocol):
    """One connection for one call."""

    def __init__(self, outcome: Outcome, due_s: float, done: asyncio.Future[None]) -> None:
        self._outcome = outcome
        self._due_s = due_s
        self._done = done
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports do not derive from it

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._outcome.error = str(error)
            self._transport.abort()

    def on_body(self, data: bytes) -> None:
        if self._outcome.call.stream and (tokens := len(_TOKEN.findall(data))):
            now_s = self._loop.time() - self._due_s
            if self._outcome.first_s is None:
                self._outcome.first_s = now_s
            self._outcome.tokens += tokens
            self._outcome.last_s = now_s

    def on_message_complete(self) -> None:
        self._outcome.status = self._parser.get_status_code()
        self._outcome.end_s = self._loop.time() - self._due_s
        self._transport.close()
        self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._outcome.end_s is None and not self._outcome.error:
            self._outcome.error = f"closed: {exc or 'without an answer'}"
        self._finish()

    def send(self, data: bytes) -> None:
        self._transport.write(data)

    def leave(self) -> None:
        self._outcome.error = "client left"
        self._transport.abort()

    def _finish(self) -> None:
        if not self._done.done():
            self._done.set_result(None)


def request(call: Call, port: int, label: Label) -> bytes:
    fields = {
        "Host": f"127.0.0.1:{port}",
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": call.client.user_agent,
        "Authorization": f"Bearer {call.client.key}",
        "Content-Length": str(len(call.data)),
        **call.client.headers,
        **label(call),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {PATH} HTTP/1.1\r\n{lines}\r\n".encode() + call.data


async def _one(call: Call, port: int, label: Label, began_s: float) -> Outcome:
    loop = asyncio.get_running_loop()
    due_s = began_s + call.at_s
    await asyncio.sleep(due_s - loop.time())
    outcome, done = Outcome(call), loop.create_future()
    try:
        _, watch = await loop.create_connection(
            lambda: _Watch(outcome, due_s, done), "127.0.0.1", port, local_addr=(call.client.address, 0)
        )
    except OSError as error:
        outcome.error = str(error)
        return outcome
    watch.send(request(call, port, label))
    leaves = loop.call_at(due_s + PATIENCE_S, watch.leave)
    await done
    leaves.cancel()
    return outcome


Ports = Mapping[str, int]
"""Of the servers behind the router, by lane."""


async def send(workload: Workload, port: int, label: Label, *, servers: Ports | None = None) -> Sequence[Outcome]:
    """All calls, in the order of the workload; faults and calls past the router need to know the `servers`."""
    behind = servers or {}
    for call in workload.calls:
        assert call.data  # written before the clock runs
    began_s = asyncio.get_running_loop().time() + 0.05
    calls = (_one(call, behind[call.direct] if call.direct else port, label, began_s) for call in workload.calls)
    faults = [_break(fault, behind[fault.lane], began_s) for fault in workload.faults]
    outcomes = await asyncio.gather(*calls)
    await asyncio.gather(*faults)
    return outcomes


async def _break(fault: Fault, port: int, began_s: float) -> None:
    await asyncio.sleep(began_s + fault.at_s - asyncio.get_running_loop().time())
    named = {"speed": fault.speed, "sequences": fault.sequences, "frozen": fault.frozen}
    body = json.dumps({key: value for key, value in named.items() if value is not None})
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"POST /emulator HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    await reader.readuntil(b"\r\n\r\n")
    writer.close()

"""The scripted backends as the conductor sees them, and settings for a router in front of them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.servers.process import ServerProcess, free_port
from bench.soak.engines import ANY, ENGINES, name_of, own_model
from bench.soak.journal import Journal

START_S = 20.0
ANSWER_LIMIT_BYTES = 256 * 2**20
LANES = ("latency", "throughput", "latency", "throughput")
LIMITS = {"connect": "2s", "first_byte": "3s", "idle": "3s"}
"""So that a backend that hangs holds its call for seconds and not for minutes."""


class Backends:
    """`python -m bench.soak.backends`, ready when the constructor returns."""

    def __init__(self, folder: Path) -> None:
        self.ports = tuple(free_port() for _ in ENGINES)
        self._control = free_port()
        command = [sys.executable, "-m", "bench.soak.backends", str(self._control), *map(str, self.ports)]
        self.process = ServerProcess(command, log=folder / "backends.log")
        with self.process.stopped_on_failure():
            self.process.wait_until(lambda: "ready" in self.process.output(), timeout_s=START_S, what="backends")

    async def ask(self, **command: Any) -> dict[str, Any]:
        """One command to the control port."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._control, limit=ANSWER_LIMIT_BYTES)
        try:
            writer.write(json.dumps(command).encode() + b"\n")
            answer: dict[str, Any] = json.loads(await reader.readline())
        finally:
            writer.close()
        return answer

    async def down(self, place: int, seconds: float, *, cut: bool) -> None:
        """Close its port for a while; with `cut` its connections as well. Returns when it listens again."""
        await self.ask(do="down", place=place, ms=round(seconds * 1000), cut=cut)

    async def hang(self, place: int, *, on: bool) -> None:
        """It reads calls and answers none, though its probes are fine."""
        await self.ask(do="hang", place=place, on=on)

    async def journal(self) -> Journal:
        return Journal.of(await self.ask(do="journal"))

    async def open_calls(self) -> int:
        return int((await self.ask(do="open"))["calls"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.stop()


def settings(
    ports: Sequence[int], *, caps: Sequence[int] = (32, 32, 32, 32), without: int | None = None, **more: Any
) -> dict[str, Any]:
    """`caps`: calls at once per backend; `without`: a backend that is left out."""
    places = [place for place in range(len(ports)) if place != without]
    backends = [
        {
            "name": name_of(place),
            "url": f"http://127.0.0.1:{ports[place]}",
            "engine": ENGINES[place],
            "lane": LANES[place],
            "max_inflight": caps[place],
        }
        for place in places
    ]
    document: Mapping[str, Any] = {
        "listen": "127.0.0.1:0",
        "admin": "127.0.0.1:0",
        "backends": backends,
        "models": {ANY: {name_of(place): own_model(place) for place in places}},
        "timeouts": LIMITS,
        "health": {"interval": "250ms", "timeout": "2s", "down_after": 2, "break_after": 8, "retry_after": "300ms"},
        "classes": {name: {"max_wait": "20s"} for name in ("ttft", "mixed", "throughput")},
        "log": {"level": "warning", "format": "json"},
        "shutdown_grace": "2s",
    }
    return {**document, **more}

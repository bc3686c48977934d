"""What happens around the calls: backends that go down and come back, new settings, wrong settings, hangup signals."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

from bench.servers.router import RouterProcess
from bench.soak.engines import ENGINES
from bench.soak.fleet import Backends, settings

BEFORE_S, AFTER_S = 0.1, 0.5
"""Around the instant in which a backend goes down: what it had accepted and not read ends there."""
_POLICIES = ("workload_aware", "workload_aware", "least_loaded", "round_robin", "static_lanes", "prefix_affinity")
_WRONG_FILES: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (
    lambda good: {**good, "backends": "none"},
    lambda good: {**good, "no_such_key": 1},
    lambda good: {**good, "listen": "127.0.0.1:1"},
    lambda good: {**good, "classify": {"rules": [{"if": {"prompt_tokens": ">many"}, "then": "ttft"}]}},
)


class Weather:
    """Blows until it is stopped. Its intervals are short: a run of a minute sees all of it."""

    def __init__(self, backends: Backends, router: RouterProcess, seed: int) -> None:
        self._backends = backends
        self._router = router
        self._rng = random.Random(seed)
        self._outages: list[float] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped = asyncio.Event()
        self.counts: Counter[str] = Counter()

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        for event, least_s, most_s in (
            (self._down, 1.0, 3.0),
            (self._reload, 1.0, 3.0),
            (self._storm, 3.0, 8.0),
        ):
            self._tasks.append(loop.create_task(self._now_and_then(event, least_s, most_s)))

    async def stop(self) -> None:
        """Fair again: all backends up, the first settings in force. Raises what went wrong in here."""
        self._stopped.set()
        await asyncio.gather(*self._tasks)
        self._router.write(settings(self._backends.ports))

    def outage(self, began_s: float, ended_s: float) -> bool:
        """Whether a backend was going down between two instants of the monotonic clock."""
        return any(began_s - AFTER_S <= at_s <= ended_s + BEFORE_S for at_s in self._outages)

    async def _now_and_then(self, event: Callable[[], Awaitable[None]], least_s: float, most_s: float) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), self._rng.uniform(least_s, most_s))
                break
            await event()

    async def _down(self) -> None:
        """One at a time, and one of the two that offer Ollama's API stays."""
        cut = self._rng.random() < 0.7
        self._outages.append(monotonic())
        self.counts["backend restarts" if cut else "ports closed for new connections"] += 1
        await self._backends.down(self._rng.randrange(len(ENGINES)), self._rng.uniform(0.05, 1.2), cut=cut)

    async def _reload(self) -> None:
        rng = self._rng
        wanted = settings(
            self._backends.ports,
            caps=[rng.choice((4, 8, 16, 32, 64)) for _ in ENGINES],
            without=len(ENGINES) - 1 if rng.random() < 0.15 else None,
            policy=rng.choice(_POLICIES),
            line={"max_waiting": 60 if rng.random() < 0.05 else 10_000},
            expose=rng.choice(("full", "minimal", "none")),
        )
        kind = rng.choices(("new settings", "wrong settings", "half of a settings file"), (70, 20, 10))[0]
        self.counts[kind] += 1
        match kind:
            case "new settings":
                self._router.write(wanted)
            case "wrong settings":
                self._router.write(rng.choice(_WRONG_FILES)(wanted))
            case _:
                text = self._router.file.read_text(encoding="utf-8")
                self._router.file.write_text(text[: len(text) // 2] + '\n"', encoding="utf-8")

    async def _storm(self) -> None:
        self.counts["storms of SIGHUP"] += 1
        for _ in range(self._rng.randint(20, 60)):
            self._router.process.signal(signal.SIGHUP)
            await asyncio.sleep(self._rng.choice((0, 0, 0.001, 0.005)))

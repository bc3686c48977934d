"""The rounds: one task per backend that keeps asking what it is, whether it is well, and how busy."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable

import structlog

from router.engines.api import Identity, Loading
from router.fleet.backend import Backend
from router.fleet.fleet import Fleet
from router.fleet.health import State
from router.fleet.probes import Prober
from router.tasks import Clock, Tasks

log = structlog.get_logger("twolane.fleet")

_IDENTIFY_EACH_S = 30.0
"""A server may be restarted with another model behind the same address."""
_FAST_S = 0.25
"""Between probes of a backend that is not up: it should get calls soon after it comes back."""


class Rounds:
    """Owner of the probing tasks."""

    def __init__(self, fleet: Fleet, make_prober: Callable[[Backend], Prober], clock: Clock) -> None:
        self._fleet = fleet
        self._make_prober = make_prober
        self._clock = clock
        self._tasks = Tasks()
        self._by_backend: dict[Backend, asyncio.Task[None]] = {}
        self._heard = asyncio.Event()
        self.interval_s = 2.0

    def watch(self, backends: Iterable[Backend]) -> None:
        """Probe exactly these from now on."""
        wanted = set(backends)
        for backend in self._by_backend.keys() - wanted:
            self._by_backend.pop(backend).cancel()
        for backend in wanted - self._by_backend.keys():
            self._by_backend[backend] = self._tasks.spawn(self._round(backend), name=f"probe {backend.name}")

    async def first_answers(self, within_s: float) -> None:
        """Return when each backend has been heard of once, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while any(backend.health.state is State.UNKNOWN for backend in self._fleet.backends()):
                    self._heard.clear()
                    await self._heard.wait()

    async def close(self) -> None:
        await self._tasks.close()
        self._by_backend.clear()

    async def _round(self, backend: Backend) -> None:
        prober = self._make_prober(backend)
        try:
            identified_s = float("-inf")
            while True:
                if not _settled(backend) or self._clock() - identified_s >= _IDENTIFY_EACH_S:
                    if await self._identify(backend, prober.identify):
                        identified_s = self._clock()
                await self._check(backend, prober)
                await asyncio.sleep(self.interval_s if _settled(backend) else min(_FAST_S, self.interval_s))
        finally:
            await prober.close()

    async def _identify(self, backend: Backend, identify: Callable[[], Awaitable[Identity | Loading | None]]) -> bool:
        answer = await identify()
        if not isinstance(answer, Identity):
            return False
        if backend.identity != answer:
            log.info(
                "backend_recognised",
                backend=backend.name,
                engine=answer.engine,
                version=answer.version,
                slots=answer.slots,
                context_tokens=answer.context_tokens,
                models=(answer.models or ())[:10],
            )
        self._fleet.identified(backend, answer)
        return True

    async def _check(self, backend: Backend, prober: Prober) -> None:
        before, since_s = backend.health.state, self._clock()
        probe = await prober.check(backend.engine)
        self._fleet.probed(backend, probe.readiness, probe.load, since_s=since_s, now_s=self._clock())
        self._heard.set()
        after = backend.health.state
        if after is not before:
            level = log.info if after is State.UP else log.warning
            level("backend_" + after, backend=backend.name, why=backend.health.reason)


def _settled(backend: Backend) -> bool:
    return backend.identity is not None and backend.health.state is State.UP

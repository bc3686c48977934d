"""The rounds: one task per backend that keeps asking what it is, whether it is well, and how busy."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

import structlog

from router.engines.api import Identity
from router.fleet.backend import Backend
from router.fleet.fleet import Fleet
from router.fleet.health import State
from router.fleet.probes import Prober
from router.settings.backend import Backend as BackendSettings
from router.tasks import Clock, Tasks

log = structlog.get_logger("twolane.fleet")

_IDENTIFY_EACH_S = 30.0
"""A server may be restarted with another model behind the same address."""
_FAST_S = 0.25
"""Between probes of a backend that is not up, or is loading: it should get calls soon after it comes back."""
_SLOWER = 1.2
"""Each of these pauses is so much longer than the one before while nothing changes, up to the usual interval: a server
that is off for the night is not asked four times a second, which took 2 % of a core each."""


class _Asked(NamedTuple):
    """What a prober was made with."""

    settings: BackendSettings
    timeout_s: float


class Rounds:
    """Owner of the probing tasks."""

    def __init__(self, fleet: Fleet, make_prober: Callable[[Backend, float], Prober], clock: Clock) -> None:
        """`make_prober` is given the longest wait for an answer as well, in seconds."""
        self._fleet = fleet
        self._make_prober = make_prober
        self._clock = clock
        self._tasks = Tasks()
        self._by_backend: dict[Backend, tuple[_Asked, asyncio.Task[None]]] = {}
        self._heard = asyncio.Event()
        self.interval_s = 2.0

    def watch(self, backends: Iterable[Backend], *, timeout_s: float) -> None:
        """Probe exactly these from now on, with the settings that they have now; `timeout_s`: for an answer."""
        wanted = {backend: _Asked(backend.settings, timeout_s) for backend in backends}
        for backend, (asked, task) in tuple(self._by_backend.items()):
            if wanted.get(backend) != asked:
                task.cancel()
                del self._by_backend[backend]
        for backend, asked in wanted.items():
            if backend not in self._by_backend:
                task = self._tasks.spawn(self._round(backend, timeout_s), name=f"probe {backend.name}")
                self._by_backend[backend] = (asked, task)

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

    async def _round(self, backend: Backend, timeout_s: float) -> None:
        prober = self._make_prober(backend, timeout_s)
        pause_s, before = 0.0, State.UP
        try:
            identified_s = float("-inf")
            while True:
                if not _settled(backend) or self._clock() - identified_s >= _IDENTIFY_EACH_S:
                    await prober.identify()
                    identified_s = self._clock()
                await self._check(backend, prober)
                state = backend.health.state
                pause_s = self.interval_s if _settled(backend) else next_pause_s(pause_s, before, state)
                before = state
                await asyncio.sleep(min(pause_s, self.interval_s))
        finally:
            await prober.close()

    async def _check(self, backend: Backend, prober: Prober) -> None:
        before, since_s = backend.health.state, self._clock()
        probe = await prober.check()
        if prober.identity is not None and prober.identity != backend.identity:
            _tell(backend, prober.identity)
            self._fleet.identified(backend, prober.identity)
        self._fleet.probed(backend, probe.readiness, probe.load, since_s=since_s, now_s=self._clock())
        self._heard.set()
        after = backend.health.state
        if after is not before:
            level = log.info if after is State.UP else log.warning
            level("backend_" + after, backend=backend.name, why=backend.health.reason)


def next_pause_s(pause_s: float, before: State, now: State) -> float:
    """After a pause of this length, until a backend that is not settled is asked again; `before`: its state then."""
    return _FAST_S if now is not before or now is State.LOADING or not pause_s else pause_s * _SLOWER


def _tell(backend: Backend, identity: Identity) -> None:
    log.info(
        "backend_recognised",
        backend=backend.name,
        engine=identity.engine,
        version=identity.version,
        slots=identity.slots,
        context_tokens=identity.context_tokens,
        models=(identity.models or ())[:10],
    )


def _settled(backend: Backend) -> bool:
    return backend.identity is not None and backend.health.state is State.UP

"""Traces switched on, changed and off while the router runs; OpenTelemetry is imported only where there are some."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from router.observe.trace_context import Begin

if TYPE_CHECKING:
    from router.observe.traces import Traces


class Wanted(NamedTuple):
    """Where spans go; see `router.settings.traces`."""

    endpoint: str | None
    share_0_1: float
    per_minute: int | None
    headers: Mapping[str, str]


_NONE: Final = Wanted(None, 0.0, None, {})


class Tracing:
    """Owner of the traces that are written now; `retire` ends those that were replaced."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._wanted = _NONE
        self._replaced: list[Traces] = []
        self.traces: Traces | None = None
        """None: calls are not traced, which costs nothing."""

    def configure(self, wanted: Wanted) -> Begin | None:
        """Returns what begins the trace of a call from now on; `retire` has to follow."""
        if wanted != self._wanted:
            if self.traces is not None:
                self._replaced.append(self.traces)
            self.traces = self._made(wanted)
            self._wanted = wanted
        return self.traces.begin if self.traces is not None else None

    def _made(self, wanted: Wanted) -> Traces | None:
        if wanted.endpoint is None:
            return None
        traces: Traces = import_module("router.observe.traces").Traces(
            wanted.endpoint,
            headers=wanted.headers,
            share_0_1=wanted.share_0_1,
            per_minute=wanted.per_minute,
            version=self._version,
            bits=random.getrandbits,
        )
        return traces

    async def retire(self) -> None:
        """Return when the spans of replaced traces are sent, or given up."""
        while self._replaced:
            await asyncio.to_thread(self._replaced.pop().close)

    async def close(self) -> None:
        if self.traces is not None:
            self._replaced.append(self.traces)
            self.traces = None
        await self.retire()

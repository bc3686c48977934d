"""What must be left of a run: nothing. Asked of the router, of its process, of its log and of the backends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.servers.router import RouterProcess
from bench.soak import watch
from bench.soak.fleet import Backends

SETTLE_S = 30.0
"""For connections that are kept, and for calls that backends hang on."""
EXPECTED_EVENTS = frozenset({"reload_refused", "backend_down", "backend_broken", "backend_loading", "backend_up"})
"""What the router may complain of under faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """All of it should be 0 but `sockets`, which should be what it was before."""

    leases: int
    waiting: float
    open_calls: float
    calls_at_backends: int
    watch_failures: float
    sockets: int

    def left_over(self, sockets_before: int) -> Iterator[str]:
        for name, count in (
            ("open leases", self.leases),
            ("calls in the line", self.waiting),
            ("open calls", self.open_calls),
            ("calls open at backends", self.calls_at_backends),
            ("streams that the router's reader gave up on", self.watch_failures),
        ):
            if count:
                yield f"{name} at the end: {count:g}"
        if self.sockets > sockets_before:
            yield f"the router has {self.sockets} sockets at the end and had {sockets_before} before"


async def settled(backends: Backends, router: RouterProcess, sockets_before: int) -> Rest:
    """What is left when nothing is, or after `SETTLE_S`."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + SETTLE_S
    while True:
        rest = await _rest(backends, router)
        if not any(rest.left_over(sockets_before)) or loop.time() > until_s:
            return rest
        await asyncio.sleep(0.2)


async def _rest(backends: Backends, router: RouterProcess) -> Rest:
    rows = await asyncio.to_thread(router.backends)
    return Rest(
        leases=sum(row["own"] for row in rows.values()),
        waiting=await asyncio.to_thread(router.metric, "twolane_line_waiting"),
        open_calls=await asyncio.to_thread(router.metric, "twolane_open_calls"),
        calls_at_backends=await backends.open_calls(),
        watch_failures=await asyncio.to_thread(router.metric, "twolane_watch_failures_total"),
        sockets=watch.sockets(router.process.pid),
    )


def complaints(log: str) -> Iterator[str]:
    """Lines of the router's log that faults do not explain."""
    for line in log.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            if "Traceback" in line or "Error" in line:
                yield line[:500]
            continue
        if isinstance(event, Mapping) and event.get("event") not in EXPECTED_EVENTS:
            yield line[:1000]

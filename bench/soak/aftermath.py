"""What must be left of a run: nothing. Asked of the router, of its process, of its log and of the backends."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from bench.servers.process import open_directly
from bench.servers.router import RouterProcess
from bench.soak import watch
from bench.soak.fleet import Backends

SETTLE_S = 30.0
"""For connections that are kept, and for calls that backends hang on."""
EXPECTED_EVENTS = frozenset({"reload_refused", "backend_down", "backend_broken", "backend_loading", "backend_up"})
"""What the router may complain of under faults."""
AUDIT: Final = "twolane.audit"
"""Logger that tells who changed what; that is no complaint."""
UNWANTED = frozenset({"router_error", "shutdown", "refused"})
"""Outcomes that no call of a soak should have."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """How the router itself counted the calls."""

    by_outcome: Counter[str]
    left_unplaced: int
    """Clients that left before the call had a backend: while they sent it, or in the line."""

    def mistakes(self, calls: int, left: int) -> Iterator[str]:
        """Each call is counted once; one whose client left may have been gone before it was read."""
        counted = self.by_outcome.total()
        if not calls - left <= counted <= calls:
            yield f"the router counted {counted} of {calls} calls, of which {left} were left by their clients"
        for outcome in UNWANTED & self.by_outcome.keys():
            yield f"outcome {outcome}: {self.by_outcome[outcome]} calls"


def books(router: RouterProcess) -> Books:
    with open_directly(f"{router.admin}/metrics", timeout_s=10) as response:
        families = list(text_string_to_metric_families(response.read().decode()))
    by_outcome: Counter[str] = Counter()
    left_unplaced = 0
    for sample in (sample for family in families for sample in family.samples if sample.name == "twolane_calls_total"):
        outcome = sample.labels["outcome"]
        by_outcome[outcome] += int(sample.value)
        if outcome == "client_gone" and not sample.labels["backend"]:
            left_unplaced += int(sample.value)
    return Books(by_outcome=by_outcome, left_unplaced=left_unplaced)


def complaints(log: str) -> Iterator[str]:
    """Lines of the router's log that faults do not explain."""
    for line in log.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            if "Traceback" in line or "Error" in line:
                yield line[:500]
            continue
        if not isinstance(event, Mapping) or event.get("logger") == AUDIT:
            continue
        if event.get("event") not in EXPECTED_EVENTS:
            yield line[:1000]

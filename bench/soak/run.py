"""A soak from its start to its verdict."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from bench import cpu
from bench.servers.process import ServerFailed
from bench.servers.router import RouterProcess
from bench.soak import aftermath, schedule, watch
from bench.soak.aftermath import Books, Rest
from bench.soak.call import Call
from bench.soak.driver import Driver
from bench.soak.fleet import Backends, settings
from bench.soak.judge import Kind
from bench.soak.schedule import FAULTY, Rates
from bench.soak.tally import Tally, Violation
from bench.soak.weather import Weather
from router.files import raise_limit

MOST_GROWTH_KB = 100.0
"""Of memory per 10,000 calls, that is taken for none."""
JUDGED_FROM_CALLS = 100_000
"""In shorter runs caches fill and the allocator finds its size."""
PROGRESS_S = 5.0

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`seconds`: no call begins later; None: all calls are made."""

    calls: int = 200_000
    seconds: float | None = None
    seed: int = 1
    concurrency: int = 128
    rates: Rates = FAULTY
    weather: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run found. `cpu_us`: per call, by process. `growth_kb`: of memory, per 10,000 calls."""

    plan: Plan
    calls: int
    seconds: float
    connects: int
    tally: Tally
    weather: Counter[str]
    cpu_us: dict[str, float]
    samples: list[watch.Sample]
    growth_kb: float | None
    sockets_before: int
    rest: Rest
    books: Books
    violations: list[Violation]


async def soak(plan: Plan, tell: Tell) -> Report:
    """Raises `ServerFailed` where a process does not start, or ends before it is told to."""
    raise_limit()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="twolane-soak-")))
        backends = stack.enter_context(Backends(folder))
        router = stack.enter_context(RouterProcess(settings(backends.ports), folder=folder))
        router.process.wait_until(
            lambda: all(row["health"] == "up" for row in router.backends().values()),
            timeout_s=20,
            what="four backends that are up",
        )
        return await _Soak(plan, backends, router, tell).run()


class _Soak:
    """One run."""

    def __init__(self, plan: Plan, backends: Backends, router: RouterProcess, tell: Tell) -> None:
        self._plan = plan
        self._backends = backends
        self._router = router
        self._tell = tell
        self._tally = Tally(plan.calls)
        self._driver = Driver(_port(router.url), self._calls(), self._tally.take)
        self._weather = Weather(backends, router, plan.seed)
        self._watch = watch.Watch(router.process.pid, _port(router.admin), lambda: self._driver.over)
        self._began_s = time.monotonic()

    def _calls(self) -> Iterator[Call]:
        plan = self._plan
        planned = schedule.calls(plan.seed, plan.calls, plan.rates)
        limit_s = plan.seconds
        if limit_s is None:
            return planned
        return takewhile(lambda _: time.monotonic() - self._began_s < limit_s, planned)

    async def run(self) -> Report:
        sockets_before = await watch.fewest_sockets(self._router.process.pid)
        used_before = self._cpu_s()
        try:
            await self._drive()
        except OSError as error:
            for process in (self._router.process, self._backends.process):
                if (code := process.returncode) is not None:
                    command = " ".join(process.command)
                    raise ServerFailed(
                        f"ended with code {code} under the calls: {command}\n{process.tail()}"
                    ) from error
            raise
        seconds = time.monotonic() - self._began_s
        used = self._cpu_s()
        rest = await aftermath.settled(self._backends, self._router, sockets_before)
        books = await asyncio.to_thread(aftermath.books, self._router)
        calls = self._driver.over
        growth_kb = watch.growth_kb(self._watch.samples, calls)
        return Report(
            plan=self._plan,
            calls=calls,
            seconds=seconds,
            connects=self._driver.connects,
            tally=self._tally,
            weather=self._weather.counts,
            cpu_us={name: (used[name] - used_before[name]) / max(1, calls) * 1e6 for name in used},
            samples=self._watch.samples,
            growth_kb=growth_kb,
            sockets_before=sockets_before,
            rest=rest,
            books=books,
            violations=[
                *await self._wrong_calls(),
                *(Violation(0, words) for words in self._wrong_rest(rest, sockets_before, growth_kb)),
                *(Violation(0, words) for words in books.mistakes(calls, self._tally.kinds[Kind.LEFT])),
            ],
        )

    async def _drive(self) -> None:
        """All calls, with the weather and the watch beside them."""
        loop = asyncio.get_running_loop()
        self._began_s = time.monotonic()
        beside = [loop.create_task(work) for work in (self._watch.run(), self._progress())]
        if self._plan.weather:
            self._weather.start()
        try:
            await self._driver.run(self._plan.concurrency)
        finally:
            await self._weather.stop()
            for task in beside:
                task.cancel()
        for outcome in await asyncio.gather(*beside, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    async def _wrong_calls(self) -> list[Violation]:
        return list(self._tally.violations(await self._backends.journal(), self._weather.outage))

    def _wrong_rest(self, rest: Rest, sockets_before: int, growth_kb: float | None) -> Iterator[str]:
        if never_ended := self._driver.begun - self._driver.over:
            yield f"{never_ended} calls never ended"
        yield from self._driver.complaints
        yield from rest.left_over(sockets_before)
        yield from (f"log of the router: {line}" for line in aftermath.complaints(self._router.process.output()))
        if self._driver.over >= JUDGED_FROM_CALLS and growth_kb is not None and growth_kb > MOST_GROWTH_KB:
            yield f"memory grows by {growth_kb:.0f} KB per 10,000 calls; {MOST_GROWTH_KB:.0f} are allowed"

    def _cpu_s(self) -> dict[str, float]:
        return {
            "router": cpu.cpu_seconds(self._router.process.pid),
            "backends": cpu.cpu_seconds(self._backends.process.pid),
            "clients": time.process_time(),
        }

    async def _progress(self) -> None:
        before = 0
        while True:
            await asyncio.sleep(PROGRESS_S)
            over = self._driver.over
            rate = (over - before) / PROGRESS_S
            before = over
            rss_mb = watch.rss_kb(self._router.process.pid) / 1024
            self._tell(
                f"{over:,} calls, {rate:,.0f} a second, router {rss_mb:.1f} MB, wrong so far: {self._tally.wrong}"
            )


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])

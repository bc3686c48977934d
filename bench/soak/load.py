"""Load that hurts those who are not prepared: many streams at once, a backend that hangs, clients that hardly read.

    python -m bench.soak.load [--only streams,hang,slow]

What is compared is compared in one run: calls beside the load with calls without it, in turns.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer
import uvloop

from bench import cpu
from bench.results import percentile
from bench.servers.process import ROOT
from bench.servers.router import RouterProcess
from bench.soak import watch
from bench.soak.apis import CHAT
from bench.soak.call import Call, Exit, Manner
from bench.soak.client import Connection, Seen, connect
from bench.soak.engines import MODEL
from bench.soak.fleet import Backends, settings
from bench.soak.judge import Kind, look
from bench.soak.order import Order
from bench.soak.script import begins
from router.files import raise_limit

DEFAULT_JSON = ROOT / ".cache" / "bench" / "soak-load.json"
LARGE = "large"
MANY = 20_000
"""As good as no limit on the calls of a backend."""
AT_ONCE = 50
"""Connections that wait to be accepted; a full backlog costs a second each."""
MOST_RATIO = 2.0
"""Of the 99th percentile beside the load to that without it."""
MOST_READER_MB = 10.0
CLOSED_S = 1.0
MOST_STREAM_KB = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Streams that were all open at once. `wrong`: in how many a token was missing or other than it should be."""

    streams: int
    open_at_once: int
    wrong: int
    stream_kb: float
    """Memory of the router for each."""

    def failures(self) -> list[str]:
        found = []
        if self.wrong:
            found.append(f"{self.wrong} of {self.streams} streams are wrong")
        if self.open_at_once < self.streams:
            found.append(f"only {self.open_at_once} of {self.streams} streams were open at once")
        if self.stream_kb > MOST_STREAM_KB:
            found.append(f"{self.stream_kb:.1f} KB for each stream, {MOST_STREAM_KB:g} are allowed")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Calls beside a load, and the same without it. Milliseconds from the request to the end of the answer."""

    calls: int
    quiet_p50_ms: float
    quiet_p99_ms: float
    p50_ms: float
    p99_ms: float
    wrong: int

    @property
    def ratio(self) -> float:
        return self.p99_ms / self.quiet_p99_ms

    def failures(self) -> list[str]:
        found = []
        if self.wrong:
            found.append(f"{self.wrong} of {self.calls} calls are wrong")
        if self.ratio > MOST_RATIO:
            found.append(f"p99 beside the load is {self.ratio:.2f} times that without; {MOST_RATIO:g} are allowed")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang(Beside):
    """`hung`: calls that met the backend that hangs and were ended with a 504."""

    hung: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowReaders(Beside):
    """`reader_mb`: memory of the router for each of them. `closed_s`: from their leaving until no backend works on."""

    readers: int
    reader_mb: float
    closed_s: float

    def failures(self) -> list[str]:
        found = Beside.failures(self)
        if self.reader_mb > MOST_READER_MB:
            found.append(f"{self.reader_mb:.1f} MB for each slow reader, {MOST_READER_MB:g} are allowed")
        if self.closed_s > CLOSED_S:
            found.append(f"backends still work {CLOSED_S:g} s after the clients have left")
        return found


class _Ear:
    """Hears of one call."""

    def __init__(self) -> None:
        self.seen: asyncio.Future[Seen] = asyncio.get_running_loop().create_future()

    def ended(self, connection: Connection, seen: Seen) -> None:
        connection.abort()
        if not self.seen.done():
            self.seen.set_result(seen)

    def stray(self, data: bytes) -> None:
        raise RuntimeError(f"bytes that belong to no call: {data[:200]!r}")


async def begin(port: int, call: Call) -> tuple[Connection, asyncio.Future[Seen]]:
    """Send it on a connection of its own."""
    ear = _Ear()
    connection = await connect(port, ear, call)
    connection.send(call)
    return connection, ear.seen


async def make(port: int, call: Call) -> Seen:
    """Send it on a connection of its own, and wait for its end."""
    _, seen = await begin(port, call)
    return await seen


@dataclass(frozen=True, slots=True)
class Stage:
    """Fresh processes."""

    backends: Backends
    large: Backends
    """Serves the model `LARGE` alone."""
    router: RouterProcess

    @property
    def port(self) -> int:
        return int(self.router.url.rpartition(":")[2])


@asynccontextmanager
async def stage(policy: str = "workload_aware") -> AsyncIterator[Stage]:
    """Four backends without limits on their calls, one in a process of its own for large answers, a router in front."""
    raise_limit()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="twolane-load-")))
        backends, large = (stack.enter_context(Backends(folder)) for _ in range(2))
        wanted = settings(backends.ports, caps=[MANY] * len(backends.ports), policy=policy)
        wanted["backends"].append({"name": LARGE, "url": f"http://127.0.0.1:{large.ports[0]}", "engine": "llamacpp"})
        wanted["models"][LARGE] = {LARGE: MODEL}
        router = stack.enter_context(RouterProcess(wanted, folder=folder))
        await asyncio.to_thread(router.process.wait_until, lambda: _all_up(router), timeout_s=20, what="backends")
        yield Stage(backends, large, router)


def _all_up(router: RouterProcess) -> bool:
    return all(row["health"] == "up" for row in router.backends().values())


# --- many streams


async def streams(count: int, *, pieces: int = 20, gap_ms: int = 1000) -> Streams:
    """All of them, each with a token every `gap_ms`; each is checked to the byte."""
    async with stage() as place:
        await asyncio.gather(*(make(place.port, _paced(n, 3, 10)) for n in range(1, 200)))
        before = cpu.memory(place.router.process.pid)
        opening = asyncio.Semaphore(AT_ONCE)
        open_streams: list[asyncio.Future[Seen]] = []

        async def one(n: int) -> None:
            async with opening:
                _, seen = await begin(place.port, _paced(n, pieces, gap_ms))
                open_streams.append(seen)

        await asyncio.gather(*(one(1000 + n) for n in range(count)))
        most, held_kb = 0.0, 0.0
        while not all(seen.done() for seen in open_streams):
            now_open = await asyncio.to_thread(place.router.metric, "twolane_open_calls")
            if now_open >= most:
                most = now_open
                held_kb = (cpu.memory(place.router.process.pid).pss_bytes - before.pss_bytes) / 1024
            await asyncio.sleep(0.25)
        seen = await asyncio.gather(*open_streams)
    wrong = sum(look(one).kind is not Kind.COMPLETE for one in seen)
    return Streams(streams=count, open_at_once=int(most), wrong=wrong, stream_kb=held_kb / count)


def _paced(n: int, pieces: int, gap_ms: int) -> Call:
    return Call(api=CHAT, order=Order(n=n, stream=True, pieces=pieces, batch=1, gap_ms=gap_ms), call_class="ttft")


# --- calls beside a load


async def _paced_calls(port: int, first: int, count: int, each_ms: float) -> list[Seen]:
    """Short streams, begun at a fixed pace whatever becomes of those before."""
    tasks = []
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    for number in range(count):
        await asyncio.sleep(max(0.0, began_s + number * each_ms / 1000 - loop.time()))
        order = Order(n=first + number, stream=True, pieces=8, batch=2, think_ms=10, gap_ms=5)
        tasks.append(loop.create_task(make(port, Call(api=CHAT, order=order, call_class="ttft"))))
    return list(await asyncio.gather(*tasks))


def _complete_ms(seen: Sequence[Seen]) -> list[float]:
    return [one.took_s * 1000 for one in seen if look(one).kind is Kind.COMPLETE]


async def hang(calls: int = 300, *, rounds: int = 3, each_ms: float = 8) -> Hang:
    """In each round `calls` while all is well, then `calls` while one of the four backends answers none."""
    quiet: list[Seen] = []
    beside: list[Seen] = []
    async with stage(policy="round_robin") as place:
        await _paced_calls(place.port, 1, 100, each_ms)
        for number in range(rounds):
            first = 1000 + number * 2 * calls
            quiet += await _paced_calls(place.port, first, calls, each_ms)
            await place.backends.hang(0, on=True)
            beside += await _paced_calls(place.port, first + calls, calls, each_ms)
            await place.backends.hang(0, on=False)
            await _recovered(place)
    hung = sum(look(one).kind is Kind.TIMEOUT for one in beside)
    measured = _beside(quiet, beside)
    return Hang(**{**measured, "wrong": measured["wrong"] - hung}, hung=hung)  # type: ignore[arg-type]


async def _recovered(place: Stage) -> None:
    """Calls that fail may have taken the backend out; a trial call brings it back."""
    n = 1_000_000
    while not await asyncio.to_thread(_all_up, place.router):
        n += 1
        await make(place.port, _paced(n, 2, 0))
        await asyncio.sleep(0.05)


def _beside(quiet: Sequence[Seen], beside: Sequence[Seen]) -> dict[str, float]:
    quiet_ms, beside_ms = _complete_ms(quiet), _complete_ms(beside)
    return {
        "calls": len(beside),
        "quiet_p50_ms": percentile(quiet_ms, 0.5),
        "quiet_p99_ms": percentile(quiet_ms, 0.99),
        "p50_ms": percentile(beside_ms, 0.5),
        "p99_ms": percentile(beside_ms, 0.99),
        "wrong": len(quiet) + len(beside) - len(quiet_ms) - len(beside_ms),
    }


async def slow_readers(
    readers: int = 20, *, calls: int = 300, each_ms: float = 10, stream_mb: int = 200
) -> SlowReaders:
    """Calls before and while so many clients hardly read streams that would be `stream_mb` long."""
    async with stage() as place:
        await _paced_calls(place.port, 1, 200, each_ms)
        quiet = await _paced_calls(place.port, 1000, calls, each_ms)
        before_kb = watch.rss_kb(place.router.process.pid)
        slow = [await begin(place.port, _large(100_000 + n, stream_mb)) for n in range(readers)]
        beside = await _paced_calls(place.port, 10_000, calls, each_ms)
        most_kb = watch.rss_kb(place.router.process.pid)
        for connection, _ in slow:
            connection.leave()
        read = await asyncio.gather(*(seen for _, seen in slow))
        closed_s = await _until_closed(place.large)
    measured = _beside(quiet, beside)
    altered = sum(begins(CHAT, one.call.order, one.size) != one.body for one in read)
    return SlowReaders(
        **{**measured, "wrong": measured["wrong"] + altered},  # type: ignore[arg-type]
        readers=readers,
        reader_mb=(most_kb - before_kb) / 1024 / readers,
        closed_s=closed_s,
    )


async def _until_closed(backends: Backends) -> float:
    """Seconds until the backends have no open call."""
    began_s = monotonic()
    while await backends.open_calls():
        if monotonic() - began_s > CLOSED_S:
            break
        await asyncio.sleep(0.01)
    return monotonic() - began_s


def _large(n: int, stream_mb: int) -> Call:
    size = 4000
    order = Order(n=n, stream=True, pieces=stream_mb * 10**6 // size, size=size, batch=16)
    call = Call(api=CHAT, order=order, manner=Manner.SLOW_READER, read_pause_ms=200, exit=Exit.CLOSE)
    return replace(call, call_class="throughput", model=LARGE)


# --- the command

Result = Streams | Hang | SlowReaders

LOADS: dict[str, Callable[[], Coroutine[Any, Any, Result]]] = {
    "streams": lambda: streams(5000),
    "hang": hang,
    "slow": slow_readers,
}


def main(
    only: Annotated[str, typer.Option(metavar="NAMES", help="Comma-separated; default: streams,hang,slow.")] = "",
    json_path: Annotated[Path, typer.Option("--json", metavar="PATH", help="Where the figures go.")] = DEFAULT_JSON,
) -> None:
    """Exit code 1 where a bound does not hold."""
    names = [name for name in only.split(",") if name] or list(LOADS)
    found: dict[str, Result] = {name: uvloop.run(LOADS[name]()) for name in names}
    for name, result in found.items():
        print(f"{name}: " + ", ".join(f"{key} {value:.4g}" for key, value in asdict(result).items()))
        for failure in result.failures():
            print(f"  {failure}")
    json_path.parent.mkdir(parents=True, exist_ok=True)
    json_path.write_text(json.dumps({name: asdict(result) for name, result in found.items()}, indent=1))
    if any(result.failures() for result in found.values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)

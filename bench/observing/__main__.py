"""`python -m bench.observing`: what seeing costs. Routers that see nothing, as usual, more, and everything, in one run.

    blind    nothing is told of calls, no times of tokens are kept
    default  metrics, goodput, gaps between tokens, dashboard, audit
    logged   and a line in the log per call
    decided  default, and the decision log
    traced   default, and each call as spans, sent to a collector, with no bound (`traces.per_minute: null`)
    all      all of that as it is set by default, so with at most 10 traces a second, and a scrape each second

All run at once, on one core; each round measures each of them right after the others, in turning order, and ratios are
taken within a round. All are started anew several times, since where a process happens to have its memory makes it
several percent faster or slower for as long as it lives. Calls are those of many programs, no two of one text
(`bench.observing.traffic`): of calls that are all alike most are not judged, so what is seen of them would look dearer
than it is. Targets hold for `default` and `all` against `blind`: calls/s at least 0.9 times, CPU per token at most 1.1.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench.observing import traffic
from bench.peers import Launch, Peer, Place
from bench.servers.process import ROOT
from bench.stage import Running, Stage, stage

BLIND, DEFAULT, LOGGED, DECIDED, TRACED, ALL = NAMES = ("blind", "default", "logged", "decided", "traced", "all")
ON = (DEFAULT, ALL)
LEAST_CALLS, MOST_CPU = 0.9, 1.1
DEFAULT_JSON = ROOT / ".cache" / "bench" / "observing.json"
FIGURES = ("calls/s", "CPU us per call", "CPU us per token")


@dataclass(slots=True)
class Figures:
    """By figure and router, one value a round."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, figure: str, name: str, value: float) -> None:
        self.values.setdefault(figure, {}).setdefault(name, []).append(value)

    def median(self, figure: str, name: str) -> float:
        return median(self.values[figure][name])

    def ratio(self, figure: str, name: str) -> float:
        """Median over the rounds of the value over that of the blind router in the same round."""
        pairs = zip(self.values[figure][name], self.values[figure][BLIND], strict=True)
        return median(value / blind for value, blind in pairs)

    def missed(self) -> list[str]:
        """Targets that do not hold, in words."""
        found = []
        for name in (name for name in ON if name in self.values["calls/s"]):
            if (calls := self.ratio("calls/s", name)) < LEAST_CALLS:
                found.append(
                    f"{name}: calls/s are {calls:.2f} times those of {BLIND}; at least {LEAST_CALLS} is wanted"
                )
            if (cpu := self.ratio("CPU us per token", name)) > MOST_CPU:
                found.append(f"{name}: CPU per token is {cpu:.2f} times that of {BLIND}; at most {MOST_CPU} is wanted")
        return found


def config(place: Place, name: str, collector_port: int) -> str:
    text = (
        f"listen: 127.0.0.1:{place.port}\nadmin: 127.0.0.1:{place.side_port}\n"
        "backends:\n"
        f"  - {{name: scripted, url: {place.backend}, engine: openai, lane: latency}}\n"
    )
    if name in (LOGGED, ALL):
        text += "log: {calls: true, format: json}\n"
    if name in (DECIDED, ALL):
        text += f"decisions: {{file: {place.folder / 'decisions.jsonl'}}}\n"
    if name in (TRACED, ALL):
        bound = ", per_minute: null" if name == TRACED else ""
        text += f"traces: {{endpoint: 'http://127.0.0.1:{collector_port}'{bound}}}\n"
    return text


def launch(place: Place, name: str, collector_port: int) -> Launch:
    path = place.folder / "twolane.yaml"
    path.write_text(config(place, name, collector_port))
    command = (
        ("-m", "bench.observing.blind", str(path)) if name == BLIND else ("-m", "router", "serve", "-c", str(path))
    )
    return Launch(command=(sys.executable, *command), settings={"admin": str(place.side_port)})


class _Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def collector() -> Iterator[int]:
    """Takes spans and forgets them."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def scraped(running: Running) -> Iterator[None]:
    """Each second, as a Prometheus in a hurry would."""
    over = threading.Event()
    url = f"http://127.0.0.1:{running.launch.settings['admin']}/metrics"

    def scrape() -> None:
        while not over.wait(1.0):
            with urllib.request.urlopen(url, timeout=10) as answer:
                answer.read()

    thread = threading.Thread(target=scrape, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


SENT = [(agent, body.decode()) for agent, body in traffic.calls()]


def measure_round(place: Stage, order: Sequence[Running], figures: Figures, *, calls_s: float, tokens_s: float) -> None:
    for running in order:
        with ExitStack() as stack:
            if running.name == ALL:
                stack.enter_context(scraped(running))
            calls = place.loader.calls(port=running.port, pid=running.pid, sent=SENT, concurrency=32, seconds=calls_s)
            tokens = place.loader.tokens(
                port=running.port, pid=running.pid, streams=100, interval_ms=20, seconds=tokens_s
            )
        figures.add("calls/s", running.name, calls.calls / calls.seconds)
        figures.add("CPU us per call", running.name, (calls.cpu_s or 0.0) / calls.calls * 1e6)
        figures.add("CPU us per token", running.name, (tokens.cpu_s or 0.0) / tokens.tokens * 1e6)


def measure(launches: int, rounds: int, calls_s: float, tokens_s: float, names: Sequence[str]) -> Figures:
    figures = Figures()
    for _ in range(launches):
        _measure_launch(figures, rounds, calls_s, tokens_s, names)
    return figures


def _measure_launch(figures: Figures, rounds: int, calls_s: float, tokens_s: float, names: Sequence[str]) -> None:
    with stage() as place, collector() as collector_port, ExitStack() as stack:
        peers = [Peer(name=name, launch=partial(launch, name=name, collector_port=collector_port)) for name in names]
        running = [stack.enter_context(place.started(peer)) for peer in peers]
        measure_round(place, running, Figures(), calls_s=calls_s / 2, tokens_s=tokens_s / 2)  # until they are warm
        for number in range(rounds):
            turn = number % len(running)
            measure_round(place, running[turn:] + running[:turn], figures, calls_s=calls_s, tokens_s=tokens_s)


def table(figures: Figures, names: Sequence[str]) -> Table:
    made = Table(title="what seeing costs: medians, and ratios to the blind router within a round")
    made.add_column("router")
    for figure in FIGURES:
        made.add_column(figure, justify="right")
    for name in names:
        cells = (f"{figures.median(figure, name):.1f} ({figures.ratio(figure, name):.2f} x)" for figure in FIGURES)
        made.add_row(name, *cells)
    return made


def _spans_within_the_window() -> None:
    """Spans wait for 5 s by default, so what sending them takes would fall into the window of another router."""
    os.environ.setdefault("OTEL_BSP_SCHEDULE_DELAY", "1000")


def observing(
    launches: Annotated[int, typer.Option(help="So often all routers are started anew.")] = 4,
    rounds: Annotated[int, typer.Option(help="Each measures all routers once; so many per launch.")] = 3,
    calls_s: Annotated[float, typer.Option(help="Seconds of calls per router and round.")] = 2.0,
    tokens_s: Annotated[float, typer.Option(help="Seconds of tokens per router and round.")] = 1.2,
    only: Annotated[str, typer.Option(help="Of the routers beside `blind`, these; separated by commas.")] = "",
    json_path: Annotated[Path, typer.Option("--json", metavar="PATH", help="Where all rounds go.")] = DEFAULT_JSON,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 where a target does not hold.")] = False,
) -> None:
    """Compare routers that see nothing, as usual and everything, in one run."""
    began_s = time.monotonic()
    _spans_within_the_window()
    names = [name for name in NAMES if name == BLIND or not only or name in only.split(",")]
    figures = measure(launches, rounds, calls_s, tokens_s, names)
    console = Console(width=110)
    console.print(table(figures, names))
    for words in figures.missed():
        console.print(f"missed: {words}")
    json_path.parent.mkdir(parents=True, exist_ok=True)
    json_path.write_text(json.dumps(figures.values, indent=1))
    console.print(f"{time.monotonic() - began_s:.0f} s; all rounds: {json_path}")
    if check and figures.missed():
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(observing)

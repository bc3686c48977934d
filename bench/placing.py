"""`python -m bench.placing`: what finding a place costs, by the size of the fleet and the length of the line.

One process, no sockets, CPU time. A call is offered to a line in front of a fleet in the middle of its work, is placed
and ends at once, so that the next one finds the same: with 2 and with 64 backends, with nobody waiting and with
100,000 rows of a job that find no room.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from bench import report
from bench.servers.process import ROOT
from classifiers.api import CallClass, Features, Source, Verdict
from classifiers.lengths import Lengths
from policies.api import Ask
from router.applicant import Applicant
from router.engines.api import Identity, Ready
from router.fleet.fleet import Fleet
from router.fleet.ledger import Outcome
from router.line import Line
from router.plan import Plan
from router.settings.model import Settings

DEFAULT_JSON = ROOT / ".cache" / "bench" / "placing.json"
BACKENDS = (2, 64)
WAITING = (0, 100_000)
LIMIT_US = 100.0
"""With two backends and nobody waiting."""
MOST_TIMES = 2.0
ROUNDS = 400
_BUSY = 3
"""Calls that each backend works on."""


def settings_of(backends: int) -> Settings:
    """Half of them with slots, half with many sequences."""
    named = [
        {
            "name": f"b{number}",
            "url": f"http://127.0.0.1:{10_000 + number}",
            "lane": "latency" if number % 2 == 0 else "throughput",
            "max_inflight": 4 if number % 2 == 0 else 16,
        }
        for number in range(backends)
    ]
    return Settings.model_validate({"backends": named, "line": {"max_waiting": 1_000_000}})


class Stage:
    """A line in front of a fleet in the middle of its work; time stands still but for a microsecond a call."""

    def __init__(self, backends: int, waiting: int) -> None:
        settings = settings_of(backends)
        self.plan = Plan.of(settings)
        self.fleet = Fleet(settings)
        self.line = Line(self.fleet, self.plan.policy, max_waiting=settings.line.max_waiting, ageing_s=120.0)
        self.now_s = 1.0
        for number, backend in enumerate(self.fleet.backends()):
            engine = "llamacpp" if number % 2 == 0 else "vllm"
            self.fleet.identified(backend, Identity(engine=engine, slots=None, context_tokens=32_768, models=("m",)))
            self.fleet.probed(backend, Ready(), None, since_s=0.0, now_s=0.0)
            for _ in range(_BUSY):
                ask = self.applicant(CallClass.TTFT).ask
                self.fleet.lease(backend, CallClass.TTFT, 0.9, slot=True, ask=ask)
        for _ in range(waiting):
            self._joins()

    def _joins(self) -> None:
        """A row that waits: it may go nowhere, since slots enough are to stay free for others."""
        row = self.applicant(CallClass.THROUGHPUT)
        free = {lane: 1_000_000 for lane in row.ask.rules.lanes}
        row.ask = replace(row.ask, rules=replace(row.ask.rules, keep_free=free))
        assert self.line.apply(row, self.now_s) is None

    def applicant(self, call_class: CallClass) -> Applicant:
        chat = call_class is CallClass.TTFT
        verdict = Verdict(call_class=call_class, confidence=1.0, source=Source.HEADER, reasons=("test",))
        features = Features(surface="openai_chat", model="m", prompt_tokens=200 if chat else 2_000, stream=chat)
        ask = Ask(
            features=features,
            verdict=verdict,
            rules=self.plan.rules[call_class],
            arrived_s=self.now_s,
            lengths=Lengths(p50_tokens=90, p90_tokens=180),
        )
        return Applicant(ask=ask, model="m", surface="openai_chat")

    def place_us(self) -> float:
        """A chat comes and has its place; microseconds."""
        self.now_s += 1e-6
        applicant = self.applicant(CallClass.TTFT)
        started_s = time.process_time()
        placed = self.line.apply(applicant, self.now_s)
        spent_s = time.process_time() - started_s
        assert placed is not None
        placed.lease.close(Outcome.IGNORED, self.now_s)
        return spent_s * 1e6


def measure() -> list[dict[str, Any]]:
    """The median of each case; the cases take turns, so that a machine that slows down does so for all."""
    stages = {(backends, waiting): Stage(backends, waiting) for backends in BACKENDS for waiting in WAITING}
    us: dict[tuple[int, int], list[float]] = {key: [] for key in stages}
    for _ in range(ROUNDS):
        for key, stage in stages.items():
            us[key].append(stage.place_us())
    return [
        {"backends": backends, "waiting": waiting, "median_us": median(taken)}
        for (backends, waiting), taken in us.items()
    ]


def placing(
    json_path: Annotated[Path, typer.Option("--json", metavar="PATH", help="Where the whole run goes.")] = DEFAULT_JSON,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 where a goal is missed.")] = False,
) -> None:
    """Measure what finding a place costs."""
    cases = measure()
    base = cases[0]["median_us"]
    for case in cases:
        print(
            f"{case['backends']:3} backends, {case['waiting']:7,} waiting: {case['median_us']:6.1f} us "
            f"({case['median_us'] / base:.2f}x)"
        )
    command = shlex.join(["python", "-m", "bench.placing", *sys.argv[1:]])
    json_path.parent.mkdir(parents=True, exist_ok=True)
    json_path.write_text(json.dumps({"command": command, "machine": report.machine(), "cases": cases}, indent=1))
    missed = base > LIMIT_US or any(case["median_us"] > MOST_TIMES * max(base, LIMIT_US) for case in cases)
    print(
        f"{'missed' if missed else 'holds'}: at most {LIMIT_US:g} us with two backends, {MOST_TIMES:g} times that else"
    )
    if check and missed:
        raise typer.Exit(1)


def main() -> None:
    typer.run(placing)


if __name__ == "__main__":
    main()

"""A run as people and as machines read it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from bench.soak.judge import Kind
from bench.soak.run import Report
from bench.soak.schedule import call_of

NARROWEST = 160
"""Columns that the tables need."""
SHOWN = 20
"""Violations that are printed."""


def show(report: Report, console: Console) -> None:
    kinds = [kind for kind in Kind if report.tally.kinds[kind]]
    console.print(_table("fault", sorted(report.tally.by_fault.items()), kinds))
    console.print(_table("client", sorted(report.tally.by_manner.items()), kinds))
    weather = ", ".join(f"{count} {name}" for name, count in sorted(report.weather.items()))
    console.print(f"Weather: {weather or 'none'}")
    for line in figures(report):
        console.print(line)
    for violation in report.violations[:SHOWN]:
        console.print(f"{violation.n or '-'}: {violation.words}", markup=False, highlight=False)
        if violation.n:
            call = call_of(report.plan.seed, violation.n, report.plan.rates)
            console.print(f"    {call}", markup=False, highlight=False)
    count = len(report.violations)
    console.print(f"{count} violations; repeat with --seed {report.plan.seed}" if count else "Nothing wrong.")


def _table(what: str, rows: Iterable[tuple[str, Mapping[Kind, int]]], kinds: list[Kind]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(what)
    table.add_column("calls", justify="right")
    for kind in kinds:
        table.add_column(kind, justify="right")
    for name, counts in rows:
        cells = [f"{counts[kind]:,}" if counts[kind] else "" for kind in kinds]
        table.add_row(name, f"{sum(counts.values()):,}", *cells)
    return table


def figures(report: Report) -> Iterable[str]:
    """One line each."""
    rate = report.calls / report.seconds
    yield f"{report.calls:,} calls in {report.seconds:.0f} s, {rate:,.0f} a second, {report.connects:,} connections"
    yield "CPU per call: " + ", ".join(f"{name} {used:.0f} us" for name, used in report.cpu_us.items())
    memory = [sample.rss_kb for sample in report.samples]
    growth = "too few samples" if report.growth_kb is None else f"{report.growth_kb:+.1f} KB per 10,000 calls"
    if memory:
        yield f"Memory of the router: {memory[0] / 1024:.1f} MB at first, {memory[-1] / 1024:.1f} MB at last, {growth}"
        health = sorted(sample.health_ms for sample in report.samples)
        yield f"Admin port: median {health[len(health) // 2]:.1f} ms, slowest {health[-1]:.0f} ms"
    books = report.books
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in books.by_outcome.most_common())
    yield f"The router's own count: {outcomes}; {books.left_unplaced:,} clients left before a backend was found"
    rest = report.rest
    yield (
        f"At the end: {rest.leases} leases, {rest.waiting:g} waiting, {rest.open_calls:g} open calls, "
        f"{rest.calls_at_backends} calls at backends, sockets {report.sockets_before} before and {rest.sockets} after"
    )


def as_json(report: Report, *, at: datetime, command: str) -> bytes:
    document: dict[str, Any] = {
        "at": at.isoformat(timespec="seconds"),
        "command": command,
        "plan": asdict(report.plan),
        "calls": report.calls,
        "seconds": report.seconds,
        "connects": report.connects,
        "answer_bytes": report.tally.answer_bytes,
        "by_fault": report.tally.by_fault,
        "by_client": report.tally.by_manner,
        "codes": report.tally.codes,
        "weather": report.weather,
        "cpu_us_per_call": report.cpu_us,
        "growth_kb_per_10000_calls": report.growth_kb,
        "sockets_before": report.sockets_before,
        "rest": asdict(report.rest),
        "router_counted": report.books.by_outcome,
        "left_unplaced": report.books.left_unplaced,
        "samples": [asdict(sample) for sample in report.samples],
        "violations": [asdict(violation) for violation in report.violations],
    }
    return json.dumps(document, indent=1).encode()

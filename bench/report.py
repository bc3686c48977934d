"""A run as people and machines read it: a table on the terminal, JSON in a file."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from importlib import metadata
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.results import DIRECT, METRICS, Finding, Metric, Run

PACKAGES = ("aiohttp", "uvloop", "httptools", "orjson", "pydantic")
"""Of this environment: what the speed of Twolane and of the plain proxy hangs on."""
NARROWEST = 132
"""Columns, where the output is not a terminal."""


def machine() -> dict[str, object]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _cpu_name(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
    }


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def as_json(run: Run, *, at: datetime, command: str, facts: Mapping[str, object], plan: Mapping[str, object]) -> bytes:
    """Everything, all rounds included. `facts` are those of `machine`."""
    summary = {
        metric.key: {peer: _figures(run, metric, peer) for peer in run.rounds.values.get(metric.key, {})}
        for metric in METRICS
        if metric.key in run.rounds.values
    }
    return json.dumps(
        {
            "date": at.isoformat(timespec="seconds"),
            "command": command,
            "machine": facts,
            "plan": plan,
            "peers": run.launched,
            "missing": run.missing,
            "failures": [asdict(failure) for failure in run.failures],
            "notes": run.notes,
            "summary": summary,
            "targets": [asdict(finding) for finding in run.findings()],
            "rounds": run.rounds.values,
        },
        indent=1,
    ).encode()


def _figures(run: Run, metric: Metric, peer: str) -> dict[str, float | None]:
    summary = run.rounds.summary(metric, peer)
    assert summary is not None
    return {**asdict(summary), "ratio_to_sglang_router": run.rounds.ratio(metric, peer)}


def show(run: Run, console: Console) -> None:
    """Table, targets, and whatever kept a figure from being there."""
    console.print(_table(run))
    for finding in run.findings():
        console.print(_verdict(finding))
    for peer, reason in run.missing.items():
        console.print(f"[yellow]missing[/] {escape(peer)}: {escape(reason)}")
    for failure in run.failures:
        console.print(f"[red]failed[/] {escape(failure.peer)}, {failure.measurement}: {escape(failure.reason)}")
    for note in run.notes:
        console.print(f"[yellow]note[/] {escape(note)}")


def _table(run: Run) -> Table:
    peers = [DIRECT, *run.launched]
    table = Table(
        title="Relay cost on one scripted backend: median, (x sglang-router), least .. most of the rounds",
        title_justify="left",
    )
    table.add_column("")
    for peer in peers:
        table.add_column(peer, justify="right")
    for metric in METRICS:
        if metric.key in run.rounds.values:
            table.add_row(metric.words, *(_cell(run, metric, peer) for peer in peers))
    return table


def _cell(run: Run, metric: Metric, peer: str) -> str:
    summary = run.rounds.summary(metric, peer)
    if summary is None:
        return "-"
    ratio = run.rounds.ratio(metric, peer)
    head = f"{summary.median:.{metric.digits}f}"
    if ratio is not None:
        head += f" ({ratio:.2f}x)"
    return f"{head}\n[dim]{summary.least:.{metric.digits}f} .. {summary.most:.{metric.digits}f}[/]"


def _verdict(finding: Finding) -> str:
    word = {True: "[green]holds[/]", False: "[red]does not hold[/]", None: "[yellow]not measured[/]"}[finding.holds]
    measured = "" if finding.measured is None else f" (measured: {finding.measured:.3g})"
    return f"{word} {escape(finding.words)}{measured}"


def failed(findings: Sequence[Finding]) -> bool:
    """For `--check`: a target that was missed. One that was not asked for is no failure."""
    return any(finding.holds is False for finding in findings)

"""`python -m bench.goodput.stress`: what is left of goodput when something is wrong with the backends.

The same workload in virtual time, undisturbed and with one disturbance from a quarter of the arrivals on: figures that
are old or stand still, a backend at half its speed, half of its slots gone, clients that call it past the router.
A disturbance takes capacity away as well, so no router could keep all; `of undisturbed` is what this one keeps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from bench import report
from bench.goodput.judge import judge
from bench.goodput.routers import OURS, Own
from bench.goodput.virtual import simulate
from bench.mixes.catalogue import MIXES
from bench.mixes.plan import Call, Fault, Workload
from bench.mixes.senders import Lengths, client, poisson, rows
from classifiers.api import CallClass

STRANGERS: Final = {"throughput": 1.0, "latency": 0.3}
"""Calls a second of clients that know a backend's own address."""

Disturb = Callable[[Workload], Workload]


def _same(workload: Workload) -> Workload:
    return workload


def _with(*faults: Fault) -> Disturb:
    """`at_s` as a share of the arrivals' time."""

    def disturb(workload: Workload) -> Workload:
        timed = [replace(fault, at_s=fault.at_s * workload.seconds) for fault in faults]
        return replace(workload, faults=(*workload.faults, *timed))

    return disturb


def _strangers(workload: Workload) -> Workload:
    chance = Random(f"strangers {workload.seed}")
    sender = client(chance, "stranger")
    calls: list[Call] = [*workload.calls]
    for lane, rate in STRANGERS.items():
        times = [at_s for at_s in poisson(chance, rate, workload.seconds) if at_s > workload.seconds / 4]
        calls += [replace(call, direct=lane) for call in rows(chance, times, Lengths(prompt=600, output=100), sender)]
    return replace(workload, calls=sorted(calls, key=lambda call: call.at_s))


DISTURBANCES: Final[Mapping[str, tuple[Disturb, float]]] = {
    "nothing": (_same, 0.0),
    "figures 2 s old": (_same, 2.0),
    "figures 10 s old": (_same, 10.0),
    "figures frozen": (
        _with(Fault(at_s=0.25, lane="throughput", frozen=True), Fault(at_s=0.25, lane="latency", frozen=True)),
        0.0,
    ),
    "clients past the router": (_strangers, 0.0),
    "the same, figures 10 s old": (_strangers, 10.0),
    "rack at half speed": (_with(Fault(at_s=0.25, lane="throughput", speed=0.5)), 0.0),
    "desk at half speed": (_with(Fault(at_s=0.25, lane="latency", speed=0.5)), 0.0),
    "desk loses 2 of 4 slots": (_with(Fault(at_s=0.25, lane="latency", sequences=2)), 0.0),
}
"""By name: what is done to the workload, and how old figures of load are, in seconds."""


def shares(own: Own, name: str, workload: Workload) -> tuple[float, Mapping[CallClass, float]]:
    """Mean of the classes' shares inside the promise, and each."""
    disturb, lag_s = DISTURBANCES[name]
    figures = judge(simulate(own, disturb(workload), seed=workload.seed, figures_lag_s=lag_s))
    return figures.mean_share, {label: seen.share for label, seen in figures.classes.items()}


def stress(
    mix: Annotated[str, typer.Option(help=f"One of {', '.join(MIXES)}.")] = "flood",
    load: Annotated[float, typer.Option(help="Factor of the rates.")] = 1.0,
    seeds: Annotated[int, typer.Option(help="So many, from 1 on.")] = 3,
    only: Annotated[str, typer.Option(metavar="NAMES", help="Comma-separated variants.")] = "twolane,twolane +labels",
) -> None:
    """Compare each disturbance with the undisturbed run."""
    if mix not in MIXES:
        raise typer.BadParameter(f"no such workload: {mix}; known: {', '.join(MIXES)}")
    known = {own.name: own for own in OURS}
    names = [word.strip() for word in only.split(",") if word.strip()]
    if unknown := [name for name in names if name not in known]:
        raise typer.BadParameter(f"no such variant: {', '.join(unknown)}; known: {', '.join(known)}")
    workloads = [MIXES[mix](seed, load=load) for seed in range(1, seeds + 1)]
    table = Table(title=f"{mix} at {load:g}, {seeds} seeds")
    for column in ("router", "disturbance", *(f"{label.value} %" for label in CallClass), "mean %", "of undisturbed"):
        table.add_column(column, justify="left" if column in ("router", "disturbance") else "right")
    for name in names:
        _add_rows(table, known[name], workloads)
        table.add_section()
    console = Console()
    if not console.is_terminal:
        console.width = report.NARROWEST
    console.print(table)


def _add_rows(table: Table, own: Own, workloads: Sequence[Workload]) -> None:
    undisturbed = 0.0
    for name in DISTURBANCES:
        sys.stderr.write(f"{own.name}: {name}\n")
        seen = [shares(own, name, workload) for workload in workloads]
        mean = fmean(each for each, _ in seen)
        undisturbed = undisturbed or mean
        by_class = [[each[label] for _, each in seen if label in each] for label in CallClass]
        table.add_row(
            own.name,
            name,
            *(f"{100 * fmean(column):.0f}" if column else "-" for column in by_class),
            f"{100 * mean:.0f}",
            f"{mean / undisturbed:.2f}" if undisturbed else "-",
        )


if __name__ == "__main__":
    typer.run(stress)

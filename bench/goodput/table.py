"""The table of a comparison: a row for each router, and what is possible at all in its title."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from bench.goodput.bound import bound
from bench.goodput.clairvoyant import clairvoyant
from bench.goodput.judge import ClassFigures, Figures
from bench.mixes.plan import Workload
from classifiers.api import CallClass
from router.simulate.pace import EngineSpec

WIDTH = 150
"""Columns of a table that goes to a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardsticks:
    """Mean shares that are compared with."""

    bound: float
    """Nobody can exceed this."""
    clairvoyant: float | None
    """Of the best schedule that a search found, which knows everything; None: none was searched."""

    def of(self, share: float) -> tuple[float | None, float | None]:
        """A share as part of each."""
        return share / self.bound if self.bound else None, share / self.clairvoyant if self.clairvoyant else None


def yardsticks(workload: Workload, engines: Mapping[str, EngineSpec], *, tries: int, seed: int) -> Yardsticks:
    found = None
    if tries and not workload.faults and not any(call.direct for call in workload.calls):
        found = clairvoyant(workload, engines, tries=tries, seed=seed)[0].mean_share
    return Yardsticks(bound=bound(workload, engines).mean_share, clairvoyant=found)


def table_of(workload: Workload, most: Yardsticks) -> Table:
    possible = f"bound {100 * most.bound:.0f} %"
    if most.clairvoyant is not None:
        possible += f", clairvoyant {100 * most.clairvoyant:.0f} %"
    calls = f"{len(workload.calls)} calls in {workload.seconds:g} s"
    table = Table(title=f"{workload.name}, seed {workload.seed}: {calls} ({possible})")
    table.add_column("router")
    for name in (
        "ttft %",
        "mixed %",
        "through-\nput %",
        "mean %",
        "of\nbound",
        "of clair-\nvoyant",
        "TTFT s\np50 / p95",
        "hop s\np50 / p95",
        "batch s\np50 / p95",
        "batch\ntokens/s",
        "failed",
    ):
        table.add_column(name, justify="right")
    return table


def cells(figures: Figures, *of: float | None) -> Sequence[str]:
    by_class = [figures.classes.get(label) for label in (CallClass.TTFT, CallClass.MIXED, CallClass.THROUGHPUT)]
    chat, hop, batch = by_class
    return (
        *("-" if each is None else f"{100 * each.share:.0f}" for each in by_class),
        f"{100 * figures.mean_share:.0f}",
        *("-" if each is None else f"{each:.2f}" for each in of),
        _pair(chat, "ttft"),
        _pair(hop, "complete"),
        _pair(batch, "complete"),
        f"{figures.batch_tokens_per_s:.0f}",
        ", ".join(f"{count}x {words}" for words, count in figures.errors.items()) or "0",
    )


def _pair(figures: ClassFigures | None, what: str) -> str:
    if figures is None:
        return "-"
    middle, high = (
        (figures.ttft_p50_s, figures.ttft_p95_s) if what == "ttft" else (figures.complete_p50_s, figures.complete_p95_s)
    )
    return "-" if middle is None or high is None else f"{middle:.2f} / {high:.2f}"

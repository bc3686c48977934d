"""`python -m bench.goodput.sweep`: many workloads, seeds and loads in virtual time, against yardsticks and the bound.

A row for each router and workload: mean of the classes' shares over the seeds, the worst seed, what that is of the best
of the sketches (which know all labels, and whose number was chosen after the fact), of the best schedule that a search
found which knows everything, and of the fluid upper bound.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import report
from bench.goodput.bound import Bound, bound
from bench.goodput.clairvoyant import clairvoyant
from bench.goodput.judge import Figures, judge
from bench.goodput.routers import OURS
from bench.goodput.sketch import best
from bench.goodput.virtual import ENGINES, simulate
from bench.mixes.catalogue import HELD_OUT, MIXES
from bench.mixes.traces import NoTraces
from bench.servers.process import ROOT

DEFAULT_JSON = ROOT / ".cache" / "bench" / "sweep.json"
SKETCH = "best sketch"
SEARCHED = "clairvoyant"


@dataclass(slots=True, kw_only=True)
class Cell:
    """One router on one workload at one load; a figure for each seed."""

    figures: list[Figures] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return fmean(each.mean_share for each in self.figures)

    @property
    def worst(self) -> float:
        return min(each.mean_share for each in self.figures)

    @property
    def batch_tokens_per_s(self) -> float:
        return fmean(each.batch_tokens_per_s for each in self.figures)

    def shares(self) -> Mapping[str, float]:
        """Mean of each class over the seeds in which it occurs."""
        labels = {label for each in self.figures for label in each.classes}
        return {
            label.value: fmean(each.classes[label].share for each in self.figures if label in each.classes)
            for label in sorted(labels)
        }


@dataclass(slots=True, kw_only=True)
class Block:
    """All routers on one workload at one load."""

    mix: str
    load: float
    bounds: list[Bound] = field(default_factory=list)
    cells: dict[str, Cell] = field(default_factory=dict)

    @property
    def bound(self) -> float:
        return fmean(each.mean_share for each in self.bounds)

    def add(self, seed: int, routers: Sequence[str], *, tries: int = 0) -> None:
        """`tries` of the search for a schedule; 0: none is searched. Raises `NoTraces`."""
        workload = (MIXES | HELD_OUT)[self.mix](seed, load=self.load)
        self.bounds.append(bound(workload, ENGINES))
        for own in OURS:
            if own.name in routers:
                self.cells.setdefault(own.name, Cell()).figures.append(judge(simulate(own, workload, seed=seed)))
        self.cells.setdefault(SKETCH, Cell()).figures.append(best(workload)[1])
        if tries and not workload.faults:
            found, _ = clairvoyant(workload, ENGINES, tries=tries, seed=seed)
            self.cells.setdefault(SEARCHED, Cell()).figures.append(found)

    def as_json(self) -> dict[str, Any]:
        return {
            "mix": self.mix,
            "load": self.load,
            "bound": self.bound,
            "routers": {
                name: {
                    "mean_share": cell.mean,
                    "worst_share": cell.worst,
                    "shares": cell.shares(),
                    "batch_tokens_per_s": cell.batch_tokens_per_s,
                    "of_bound": cell.mean / self.bound,
                    "seeds": [each.as_json() for each in cell.figures],
                }
                for name, cell in self.cells.items()
            },
        }


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split(",") if word.strip()]


def sweep(
    mixes: Annotated[str, typer.Option(help="Comma-separated workloads; held-out ones only by name.")] = "",
    seeds: Annotated[int, typer.Option(help="So many, from 1 on.")] = 5,
    loads: Annotated[str, typer.Option(help="Comma-separated factors of the rates.")] = "1.0",
    only: Annotated[str, typer.Option(metavar="NAMES", help="Comma-separated variants; default: all.")] = "",
    tries: Annotated[int, typer.Option(help="Changes that the search for the best schedule tries.")] = 0,
    json_path: Annotated[Path, typer.Option("--json", metavar="PATH")] = DEFAULT_JSON,
) -> None:
    """Compare Twolane's policies in virtual time."""
    chosen = [word.strip() for word in mixes.split(",") if word.strip()] or list(MIXES)
    if unknown := [name for name in chosen if name not in MIXES | HELD_OUT]:
        raise typer.BadParameter(f"no such workload: {', '.join(unknown)}; known: {', '.join(MIXES | HELD_OUT)}")
    known = [own.name for own in OURS]
    routers = [word.strip() for word in only.split(",") if word.strip()] or known
    if unknown := [name for name in routers if name not in known]:
        raise typer.BadParameter(f"no such variant: {', '.join(unknown)}; known: {', '.join(known)}")
    blocks = [Block(mix=mix, load=load) for mix in chosen for load in numbers(loads)]
    done: list[Block] = []
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("simulating", total=len(blocks) * seeds)
        for block in blocks:
            progress.update(task, description=f"{block.mix} at {block.load:g}")
            try:
                for seed in range(1, seeds + 1):
                    block.add(seed, routers, tries=tries)
                    progress.advance(task)
            except NoTraces as error:
                progress.console.print(f"{block.mix}: {error}")
                continue
            done.append(block)
            _keep(json_path, done)
    _show(done)


def _keep(path: Path, blocks: Sequence[Block]) -> None:
    document = {
        "command": shlex.join(["python", "-m", "bench.goodput.sweep", *sys.argv[1:]]),
        "blocks": [block.as_json() for block in blocks],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))


def _show(blocks: Sequence[Block]) -> None:
    table = Table()
    for name in ("workload", "load", "router"):
        table.add_column(name)
    for name in (
        "ttft %",
        "mixed %",
        "through-\nput %",
        "mean %",
        "worst\nseed %",
        "of\nsketch",
        "of clair-\nvoyant",
        "of\nbound",
        "batch\ntokens/s",
    ):
        table.add_column(name, justify="right")
    for block in blocks:
        yardsticks = [block.cells[name].mean if name in block.cells else 0.0 for name in (SKETCH, SEARCHED)]
        for name, cell in block.cells.items():
            shares = cell.shares()
            table.add_row(
                block.mix,
                f"{block.load:g}",
                name,
                *(f"{100 * shares[key]:.0f}" if key in shares else "-" for key in ("ttft", "mixed", "throughput")),
                f"{100 * cell.mean:.0f}",
                f"{100 * cell.worst:.0f}",
                *(f"{cell.mean / most:.2f}" if most else "-" for most in (*yardsticks, block.bound)),
                f"{cell.batch_tokens_per_s:.0f}",
            )
        table.add_section()
    console = Console()
    if not console.is_terminal:
        console.width = report.NARROWEST
    console.print(table)


if __name__ == "__main__":
    typer.run(sweep)

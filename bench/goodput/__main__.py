"""`python -m bench.goodput`: one emulated fleet, one workload, each router in front of it in turn."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from bench import report
from bench.goodput.judge import judge
from bench.goodput.routers import ROUTERS, Router
from bench.goodput.stage import Fleet, run
from bench.goodput.table import WIDTH, Yardsticks, cells, table_of, yardsticks
from bench.goodput.virtual import ENGINES
from bench.mixes.catalogue import HELD_OUT, MIXES
from bench.mixes.plan import Workload
from bench.peers import Missing
from bench.servers.process import ROOT, ServerFailed

DEFAULT_JSON = ROOT / ".cache" / "bench" / "goodput.json"


def select(only: str) -> Sequence[Router]:
    """Routers whose names contain one of the comma-separated words; all for none. Raises `ValueError`."""
    wanted = [word.strip() for word in only.split(",") if word.strip()]
    exact = {router.name for router in ROUTERS}
    found = [
        router
        for router in ROUTERS
        if not wanted or any(word == router.name or (word not in exact and word in router.name) for word in wanted)
    ]
    if not found:
        raise ValueError(f"no router is called {only} (known: {', '.join(sorted(exact))})")
    return found


def goodput(
    mix: Annotated[str, typer.Option(help=f"Workload: {', '.join(MIXES)}.")] = "flood",
    seed: Annotated[int, typer.Option()] = 1,
    load: Annotated[float, typer.Option(help="Multiplies the rate of arrivals.")] = 1.0,
    seconds: Annotated[float, typer.Option(help="Of arrivals.")] = 40.0,
    only: Annotated[str, typer.Option(metavar="NAMES", help="Comma-separated routers; default: all.")] = "",
    tries: Annotated[
        int, typer.Option(help="Changes that the search for the best schedule tries; 0: no search.")
    ] = 400,
    json_path: Annotated[Path, typer.Option("--json", metavar="PATH", help="Where the figures go.")] = DEFAULT_JSON,
) -> None:
    """Measure how many calls each router brings home inside what they were promised."""
    try:
        routers = select(only)
        workload = (MIXES | HELD_OUT)[mix](seed, load=load, seconds=seconds)
    except (ValueError, KeyError) as error:
        raise typer.BadParameter(str(error)) from None
    progress = Console(stderr=True)
    with progress.status("what is possible at all"):
        most = yardsticks(workload, ENGINES, tries=tries, seed=seed)
    table = table_of(workload, most)
    results: dict[str, Any] = {}
    at = datetime.now(UTC)
    for number, router in enumerate(routers):
        with progress.status(f"{router.name} ({number + 1} of {len(routers)})"):
            results[router.name] = _measured(router, workload, table, most)
        _keep(json_path, _document(workload, results, at, load, most))  # a run that is broken off leaves what it has
    console = Console()
    if not console.is_terminal:
        console.width = max(report.NARROWEST, WIDTH)
    console.print(table)
    console.print(f"All figures: {json_path}")


def _keep(path: Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))


def _document(
    workload: Workload, results: dict[str, Any], at: datetime, load: float, most: Yardsticks
) -> dict[str, Any]:
    return {
        "at": at.isoformat(timespec="seconds"),
        "command": shlex.join(["python", "-m", "bench.goodput", *sys.argv[1:]]),
        "machine": report.machine(),
        "load_average": os.getloadavg(),
        "workload": {
            "name": workload.name,
            "seed": workload.seed,
            "load": load,
            "seconds": workload.seconds,
            "calls": len(workload.calls),
        },
        "bound": most.bound,
        "clairvoyant": most.clairvoyant,
        "routers": results,
    }


def _measured(router: Router, workload: Workload, table: Table, most: Yardsticks) -> dict[str, Any]:
    """The figures of one router, which also become a row."""
    try:
        ran = run(router, workload, Fleet())
    except (Missing, ServerFailed) as error:
        table.add_row(router.name, *["-"] * 10, str(error).splitlines()[0])
        return {"missing": str(error)}
    figures = judge(ran.outcomes)
    of_bound, of_clairvoyant = most.of(figures.mean_share)
    table.add_row(router.name, *cells(figures, of_bound, of_clairvoyant))
    return {
        "command": shlex.join(ran.launch.command),
        "settings": dict(ran.launch.settings),
        **figures.as_json(),
        "of_bound": of_bound,
        "of_clairvoyant": of_clairvoyant,
    }


if __name__ == "__main__":
    typer.run(goodput)

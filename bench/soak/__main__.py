"""`python -m bench.soak`: calls under faults through a real router, each answer checked by its content."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console

from bench.servers.process import ROOT, ServerFailed
from bench.soak import report
from bench.soak.run import Plan, soak

DEFAULT_JSON = ROOT / ".cache" / "bench" / "soak.json"


def main(
    calls: Annotated[int, typer.Option(help="How many; 1000000 takes about five times as long.")] = 200_000,
    seconds: Annotated[float | None, typer.Option(help="Begin no call after so long.")] = None,
    seed: Annotated[int, typer.Option(help="Of the calls, their faults and the weather.")] = 1,
    concurrency: Annotated[int, typer.Option(help="Calls that are open at once.")] = 128,
    weather: Annotated[bool, typer.Option(help="Backends go down, settings change.")] = True,
    json_path: Annotated[Path, typer.Option("--json", metavar="PATH", help="Where the whole run goes.")] = DEFAULT_JSON,
) -> None:
    """Exit code 1 where a single call did not get what is promised, or anything was left over."""
    plan = Plan(calls=calls, seconds=seconds, seed=seed, concurrency=concurrency, weather=weather)
    at = datetime.now(UTC)
    progress = Console(stderr=True)
    try:
        done = uvloop.run(soak(plan, progress.print))
    except ServerFailed as error:
        progress.print(str(error), markup=False)
        raise typer.Exit(1) from None
    console = Console()
    if not console.is_terminal:
        console.width = report.NARROWEST
    report.show(done, console)
    json_path.parent.mkdir(parents=True, exist_ok=True)
    json_path.write_bytes(
        report.as_json(done, at=at, command=shlex.join(["python", "-m", "bench.soak", *sys.argv[1:]]))
    )
    console.print(f"The whole run: {json_path}")
    if done.violations:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)

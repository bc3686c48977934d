"""`python -m bench`: what Twolane costs in the path, beside others that do the same."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench import report
from bench.peers import PEERS, Peer
from bench.relay import MEASUREMENTS, QUICK, Plan, measure
from bench.servers.process import ROOT

DEFAULT_JSON = ROOT / ".cache" / "bench" / "relay.json"


def select(only: str) -> tuple[Sequence[Peer], Sequence[str]]:
    """Peers and measurements named in a comma-separated list; a kind of which none is named is taken whole.

    Raises `ValueError` for a name that is neither.
    """
    names = {name.strip() for name in only.split(",") if name.strip()}
    known = {*MEASUREMENTS, *(peer.name for peer in PEERS)}
    if unknown := names - known:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))} (known: {', '.join(sorted(known))})")
    peers = [peer for peer in PEERS if peer.name in names] or PEERS
    measurements = [word for word in MEASUREMENTS if word in names] or MEASUREMENTS
    return peers, measurements


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and shorter rounds: under 45 seconds.")] = False,
    only: Annotated[
        str, typer.Option(metavar="NAMES", help="Comma-separated peers and measurements; default: all.")
    ] = "",
    json_path: Annotated[Path, typer.Option("--json", metavar="PATH", help="Where the whole run goes.")] = DEFAULT_JSON,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 where a target does not hold.")] = False,
) -> None:
    """Measure the relay cost of Twolane, nginx, sglang-router, smg and a plain aiohttp proxy in one run."""
    try:
        peers, measurements = select(only)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--only") from None
    plan = QUICK if quick else Plan()
    at, facts = datetime.now(UTC), report.machine()
    progress = Console(stderr=True)
    with progress.status("preparing") as status:
        run = measure(plan, peers, measurements, tell=status.update)
    console = Console()
    if not console.is_terminal:
        console.width = report.NARROWEST
    report.show(run, console)
    command = shlex.join(["python", "-m", "bench", *sys.argv[1:]])
    json_path.parent.mkdir(parents=True, exist_ok=True)
    json_path.write_bytes(report.as_json(run, at=at, command=command, facts=facts, plan=asdict(plan)))
    console.print(f"All rounds: {json_path}")
    if check and report.failed(run.findings()):
        raise typer.Exit(1)


def main() -> None:
    typer.run(bench)


if __name__ == "__main__":
    main()

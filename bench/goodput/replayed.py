"""`python -m bench.goodput.replayed`: how near a replay comes to what really happened.

A workload runs over HTTP through Twolane, which writes its decision log; the log is replayed with the very settings it
came from, its paces fitted from itself, and each figure of the replay is held against that of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.table import Table

from bench import report
from bench.goodput.routers import by_class, twolane_router, unlabelled
from bench.goodput.stage import Fleet, run
from bench.mixes.catalogue import MIXES
from router.replay.figures import Column, Judge
from router.replay.recognise import load, merged
from router.replay.run import Candidate, Replay, Tried
from router.settings.load import parse


def logged_and_replayed(log: Path, settings: Mapping[str, Any]) -> tuple[Column, Tried]:
    """The figures of a log, and of its replay with these settings."""
    source = load(log)
    wanted = {key: value for key, value in settings.items() if key != "decisions"}
    candidate = Candidate(
        name="same", file=Path("same.yaml"), settings=parse(yaml.safe_dump(wanted, sort_keys=False), "same.yaml", {})
    )
    replay = Replay([source], merged([source]), lambda: None)
    fleet, judge = replay.fleet(candidate), Judge(candidate.promises())
    logged = replay.as_logged(judge, candidate, fleet)
    assert logged is not None
    return logged, Tried(candidate=candidate, fleet=fleet, column=replay.try_out(candidate, fleet, judge))


def compared(logged: Column, replayed: Column) -> Iterator[tuple[str, float | None, float | None]]:
    """Figures that matter, by name: of the log, and of the replay."""
    yield "mean of classes inside SLO, %", _percent(logged.mean_share), _percent(replayed.mean_share)
    yield "output tokens/s", logged.total.tokens_per_s, replayed.total.tokens_per_s
    for call_class, ours in logged.classes.items():
        theirs = replayed.classes[call_class]
        yield f"{call_class} inside SLO, %", _percent(ours.share), _percent(theirs.share)
        for what in ("ttft_s", "tpot_s", "complete_s"):
            for share in ("p50", "p95"):
                yield f"{call_class} {what} {share}", getattr(ours, what)[share], getattr(theirs, what)[share]
    for name, figures in logged.backends.items():
        there = replayed.backends.get(name)
        yield f"calls at {name}", float(figures.calls), float(there.calls) if there is not None else 0.0


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def main(
    mix: Annotated[str, typer.Option(help=f"Workload: {', '.join(MIXES)}.")] = "flood",
    seed: Annotated[int, typer.Option()] = 1,
    load_factor: Annotated[float, typer.Option("--load", help="Multiplies the rate of arrivals.")] = 1.0,
    seconds: Annotated[float, typer.Option(help="Of arrivals.")] = 40.0,
    labels: Annotated[bool, typer.Option("--labels", help="Clients say what their calls are.")] = False,
    keep: Annotated[Path | None, typer.Option(help="Where the log is left; default: nowhere.")] = None,
) -> None:
    """Say how far a replay is from what its log tells."""
    workload = MIXES[mix](seed, load=load_factor, seconds=seconds)
    with TemporaryDirectory(prefix="twolane-replayed-") as name:
        log = keep or Path(name) / "decisions.jsonl"
        settings: dict[str, Any] = {}
        router = twolane_router("twolane", _logging(log, settings), by_class if labels else unlabelled)
        ran = run(router, workload, Fleet(rack=("--prompt-details",)))
        logged, tried = logged_and_replayed(log, settings)
    console = Console()
    if not console.is_terminal:
        console.width = report.NARROWEST
    for backend, modelled in tried.fleet.items():
        console.print(f"{backend}: {modelled.how}: {modelled.spec.pace}")
    console.print(f"{len(ran.outcomes)} calls sent")
    console.print(_table(logged, tried.column))


def _logging(log: Path, settings: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    def adapt(wanted: dict[str, Any]) -> None:
        wanted["decisions"] = {"file": str(log)}
        settings.update(wanted)

    return adapt


def _table(logged: Column, replayed: Column) -> Table:
    table = Table("", title="a log and its replay")
    for name in ("log", "replay", "off by"):
        table.add_column(name, justify="right")
    for name, ours, theirs in compared(logged, replayed):
        if ours is None or theirs is None:
            continue
        off = f"{theirs - ours:+.1f}" if "%" in name else f"{(theirs - ours) / ours:+.0%}" if ours else "-"
        table.add_row(name, f"{ours:.3f}", f"{theirs:.3f}", off)
    return table


if __name__ == "__main__":
    typer.run(main)

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


def replayed(log: Path, settings: Mapping[str, Any]) -> Tried:
    """What a replay of the log with these settings gives."""
    replay, candidate = _loaded(log, settings)
    fleet = replay.fleet(candidate)
    return Tried(candidate=candidate, fleet=fleet, column=replay.try_out(candidate, fleet, Judge(candidate.promises())))


def logged(log: Path, settings: Mapping[str, Any]) -> Column:
    """The figures of the log itself."""
    replay, candidate = _loaded(log, settings)
    found = replay.as_logged(Judge(candidate.promises()), candidate, replay.fleet(candidate))
    assert found is not None
    return found


def _loaded(log: Path, settings: Mapping[str, Any]) -> tuple[Replay, Candidate]:
    source = load(log)
    wanted = {key: value for key, value in settings.items() if key != "decisions"}
    parsed = parse(yaml.safe_dump(wanted, sort_keys=False), "same.yaml", {})
    return Replay([source], merged([source]), lambda: None), Candidate(
        name="same", file=Path("same.yaml"), settings=parsed
    )


def compared(really: Column, replay: Column) -> Iterator[tuple[str, float | None, float | None]]:
    """Figures that matter, by name: as they were, and of the replay."""
    yield "mean of classes inside SLO, %", _percent(really.mean_share), _percent(replay.mean_share)
    yield "output tokens/s", really.total.tokens_per_s, replay.total.tokens_per_s
    for call_class, ours in really.classes.items():
        theirs = replay.classes[call_class]
        yield f"{call_class} inside SLO, %", _percent(ours.share), _percent(theirs.share)
        for what in ("ttft_s", "tpot_s", "complete_s"):
            for share in ("p50", "p95"):
                yield f"{call_class} {what} {share}", getattr(ours, what)[share], getattr(theirs, what)[share]
    for name, figures in really.backends.items():
        there = replay.backends.get(name)
        yield f"calls at {name}", float(figures.calls), float(there.calls) if there is not None else 0.0


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def main(
    mix: Annotated[str, typer.Option(help=f"Workload: {', '.join(MIXES)}.")] = "flood",
    seed: Annotated[int, typer.Option()] = 1,
    load_factor: Annotated[float, typer.Option("--load", help="Multiplies the rate of arrivals.")] = 1.0,
    seconds: Annotated[float, typer.Option(help="Of arrivals.")] = 40.0,
    labels: Annotated[bool, typer.Option("--labels", help="Clients say what their calls are.")] = False,
    policy: Annotated[str, typer.Option(help="That the log comes from.")] = "workload_aware",
    under: Annotated[
        str, typer.Option(help="Replay it under this policy, which is run as well; default: its own.")
    ] = "",
) -> None:
    """Say how far a replay is from what really happens."""
    workload = MIXES[mix](seed, load=load_factor, seconds=seconds)
    label = by_class if labels else unlabelled
    with TemporaryDirectory(prefix="twolane-replayed-") as folder:
        logs, settings = {}, {}
        for name in dict.fromkeys((policy, under or policy)):
            logs[name], settings[name] = Path(folder) / f"{name}.jsonl", dict[str, Any]()
            router = twolane_router(name, _logging(logs[name], name, settings[name]), label)
            run(router, workload, Fleet(rack=("--prompt-details",)))
        tried = replayed(logs[policy], settings[under or policy])
        really = logged(logs[under or policy], settings[under or policy])
    console = Console()
    if not console.is_terminal:
        console.width = report.NARROWEST
    for backend, modelled in tried.fleet.items():
        console.print(f"{backend}: {modelled.how}: {modelled.spec.pace}")
    console.print(f"{len(workload.calls)} calls sent; the log is of {policy}, the replay under {under or policy}")
    console.print(_table(really, tried.column))


def _logging(log: Path, policy: str, settings: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    def adapt(wanted: dict[str, Any]) -> None:
        wanted["policy"] = policy
        wanted["decisions"] = {"file": str(log)}
        settings.update(wanted)

    return adapt


def _table(really: Column, replayed: Column) -> Table:
    table = Table("", title="what happened, and the replay")
    for name in ("really", "replay", "off by"):
        table.add_column(name, justify="right")
    for name, ours, theirs in compared(really, replayed):
        if ours is None or theirs is None:
            continue
        off = f"{theirs - ours:+.1f}" if "%" in name else f"{(theirs - ours) / ours:+.0%}" if ours else "-"
        table.add_row(name, f"{ours:.3f}", f"{theirs:.3f}", off)
    return table


if __name__ == "__main__":
    typer.run(main)

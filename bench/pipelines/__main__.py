"""`python -m bench.pipelines`: how soon tasks of several calls end, under each policy, in virtual time.

Every row is the same work: tasks whose calls wait for each other, among chats and lumps of a job. `tasks/min` are those
that ended inside what they were promised (see `bench.pipelines.tasks`), per minute of arrivals; `mean s` is over all
tasks, where one that was given up counts with twice its promise; `chat %` are the chats that kept theirs. With tasks
off nobody looks for them, which shows what they cost the chats and the job beside them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from bench import report
from bench.goodput.routers import OURS, Own
from bench.goodput.send import Outcome
from bench.pipelines.tasks import MIXES, Mix, mix
from bench.pipelines.virtual import Ran, Result, simulate
from bench.results import percentile
from bench.servers.process import ROOT
from classifiers.api import CallClass

DEFAULT_JSON = ROOT / ".cache" / "bench" / "pipelines.json"
_PEERS = ("round_robin", "least_loaded", "static_lanes +labels", "prefix_affinity")


def tags_alone(settings: dict[str, Any]) -> None:
    """Nobody looks for tasks, so untagged calls are what each of them looks like."""
    settings["pipelines"] = {"recognise": False}


def variants() -> list[tuple[str, Own, bool]]:
    """Name, settings, and whether programs tag their calls."""
    named = {own.name: own for own in OURS}
    found = [(f"twolane {word}", named["twolane"], word == "tagged") for word in ("untagged", "tagged")]
    off = Own(name="twolane, tasks off", adapt=tags_alone)
    return [*found, (off.name, off, False), *((name, named[name], False) for name in _PEERS)]


def figures(results: Sequence[tuple[Mix, Result]]) -> dict[str, Any]:
    """Over several seeds of one mix."""
    ran = [each for _, result in results for each in result.ran]
    minutes = sum(made.seconds for made, _ in results) / 60
    beside = [outcome for _, result in results for outcome in result.beside]
    finals = [each.final_s for each in ran if each.final_s is not None]
    return {
        "tasks": len(ran),
        "in_time_per_minute": sum(each.in_time for each in ran) / minutes,
        "in_time": sum(each.in_time for each in ran) / len(ran),
        "mean_s": sum(map(took_s, ran)) / len(ran),
        "p95_s": percentile([took_s(each) for each in ran], 0.95),
        "given_up": sum(each.end_s is None for each in ran),
        "final_ttft_p95_s": percentile(finals, 0.95) if finals else None,
        "reused": _reused(ran),
        **{label.value: _kept(beside, label) for label in (CallClass.TTFT, CallClass.THROUGHPUT)},
    }


def _reused(ran: Sequence[Ran]) -> float | None:
    """Share of prompts that came from caches; None: nobody counted, as over HTTP."""
    prompt_tokens = sum(each.prompt_tokens for each in ran)
    return sum(each.cached_tokens for each in ran) / prompt_tokens if prompt_tokens else None


def took_s(ran: Ran) -> float:
    return ran.end_s if ran.end_s is not None else 2 * ran.task.promise_s


def _kept(outcomes: Sequence[Outcome], label: CallClass) -> float:
    of_label = [outcome for outcome in outcomes if outcome.call.label is label]
    return sum(outcome.kept for outcome in of_label) / max(1, len(of_label))


def pipelines(
    only: Annotated[str, typer.Option("--mix", help=f"One of {', '.join(MIXES)}; default: all.")] = "",
    seeds: Annotated[int, typer.Option(help="Of each mix.")] = 2,
    first_seed: Annotated[int, typer.Option(help="The seeds are those from this one on.")] = 1,
    load: Annotated[float, typer.Option(help="Multiplies all rates.")] = 1.0,
    seconds: Annotated[float, typer.Option(help="Of arrivals.")] = 60.0,
    json_path: Annotated[Path, typer.Option("--json", metavar="PATH", help="Where the figures go.")] = DEFAULT_JSON,
) -> None:
    """Measure tasks in virtual time."""
    if only and only not in MIXES:
        raise typer.BadParameter(f"no mix is called {only} (known: {', '.join(MIXES)})")
    console, progress = Console(), Console(stderr=True)
    if not console.is_terminal:
        console.width = report.NARROWEST
    found: dict[str, Any] = {}
    for name in [only] if only else MIXES:
        table = table_of(f"{name}, {seeds} seeds of {seconds:g} s, load {load:g}")
        for variant, own, tagged in variants():
            with progress.status(f"{name}: {variant}"):
                mixes = [mix(name, first_seed + number, load=load, seconds=seconds) for number in range(seeds)]
                row = figures([(made, simulate(own, made, tagged=tagged)) for made in mixes])
            found.setdefault(name, {})[variant] = row
            table.add_row(variant, *cells(row))
        console.print(table)
    document = {"command": ["python", "-m", "bench.pipelines", *sys.argv[1:]], "mixes": found}
    json_path.parent.mkdir(parents=True, exist_ok=True)
    json_path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    console.print(f"All figures: {json_path}")


def table_of(title: str) -> Table:
    table = Table(title=title)
    table.add_column("router")
    for name in ("tasks/min\nin time", "in time\n%", "mean s", "p95 s", "given\nup", "final\nTTFT p95", "reused\n%"):
        table.add_column(name, justify="right")
    for name in ("chat\n%", "batch\n%"):
        table.add_column(name, justify="right")
    return table


def cells(row: dict[str, Any]) -> Sequence[str]:
    final_s = row["final_ttft_p95_s"]
    return (
        f"{row['in_time_per_minute']:.1f}",
        f"{100 * row['in_time']:.0f}",
        f"{row['mean_s']:.2f}",
        f"{row['p95_s']:.1f}",
        f"{row['given_up']}",
        "-" if final_s is None else f"{final_s:.2f}",
        "-" if row["reused"] is None else f"{100 * row['reused']:.0f}",
        f"{100 * row['ttft']:.0f}",
        f"{100 * row['throughput']:.0f}",
    )


if __name__ == "__main__":
    typer.run(pipelines)

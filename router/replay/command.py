"""`twolane replay`: a log or a trace under several settings, side by side."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from classifiers.api import SYNONYMS, CallClass
from router.replay import chart, fit, parallel
from router.replay.figures import Column, Judge
from router.replay.fleets import Modelled
from router.replay.recognise import files_of, load, merged
from router.replay.recorded import NotReplayable, Source
from router.replay.run import Candidate, Replay, Replayed, Tried
from router.replay.show import show
from router.settings.load import load as load_settings
from router.settings.problems import Problem, SettingsError

NARROWEST = 120
"""Columns of output that goes to a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """As in `merged`."""

    speed_up: float
    limit: int | None
    rate: float
    seed: int
    jobs: int
    """Simulations at once; 0: as many as there are cores."""


err = Console(stderr=True, highlight=False)


def _say(text: str) -> None:
    err.print(text, markup=False, soft_wrap=True)


def replay(
    inputs: Annotated[
        list[Path], typer.Argument(metavar="LOG_OR_TRACE...", help="Decision log, or traces; several begin together.")
    ],
    config: Annotated[list[Path], typer.Option("--config", "-c", help="Settings to try; several are compared.")],
    speed_up: Annotated[float, typer.Option(help="Press the times between calls together by this factor.")] = 1.0,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many calls.")] = None,
    rate: Annotated[float, typer.Option(help="Calls per second of traces that have no times.")] = 1.0,
    call_class: Annotated[
        str | None, typer.Option("--class", help="Class of the calls of traces: ttft, mixed or throughput.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of whatever is left to chance.")] = 0,
    jobs: Annotated[int, typer.Option(min=0, help="Settings tried at once; 0: one for each core.")] = 0,
    chart_file: Annotated[Path | None, typer.Option("--chart", help="Also a picture: FILE.png or FILE.svg.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also all figures as JSON; - for stdout.")] = None,
) -> None:
    """Say what each settings file would have given on recorded calls, without sending any."""
    try:
        as_class = _class_named(call_class)
        if speed_up <= 0 or rate <= 0:
            raise NotReplayable("--speed-up and --rate: expected a number above 0")
        if chart_file is not None:
            chart.check(chart_file)
        if json_file is not None and str(json_file) != "-":
            _check_place(json_file)
        candidates = _candidates(config)
        options = _Options(speed_up=speed_up, limit=limit, rate=rate, seed=seed, jobs=jobs)
        replayed = _replayed(inputs, candidates, as_class, options)
    except SettingsError as error:
        for problem in error.problems:
            _say(str(problem))
        raise typer.Exit(2) from None
    except NotReplayable as error:
        _say(str(error))
        raise typer.Exit(2) from None
    except parallel.Broken as error:
        _say(f"{error}; with --jobs 1 it needs less memory")
        raise typer.Exit(1) from None
    except OSError as error:
        _say(f"{error.filename}: cannot be read: {error.strerror}")
        raise typer.Exit(2) from None
    _tell(replayed, json_file, chart_file)


def _check_place(file: Path) -> None:
    """Before a replay that takes minutes. Raises `NotReplayable`."""
    if file.is_dir() or not os.access(file.parent, os.W_OK | os.X_OK):
        raise NotReplayable(f"--json {file}: nothing can be written there; give the path of a file in another folder")


def _class_named(text: str | None) -> CallClass | None:
    if text is None:
        return None
    try:
        return SYNONYMS[text.strip().lower()]
    except KeyError:
        raise NotReplayable(f"--class {text}: expected ttft, mixed or throughput") from None


def _candidates(files: Sequence[Path]) -> list[Candidate]:
    """Named as their files are, as far up as it takes to tell them apart. Raises `SettingsError`."""
    stems = Counter(file.stem for file in files)
    found: list[Candidate] = []
    problems: list[Problem] = []
    for file in files:
        name = file.stem if stems[file.stem] == 1 else str(file)
        try:
            found.append(Candidate(name=name, file=file, settings=load_settings(file).settings))
        except SettingsError as error:
            problems += error.problems
    if problems:
        raise SettingsError(problems)
    return found


def _replayed(
    inputs: Sequence[Path], candidates: Sequence[Candidate], as_class: CallClass | None, options: _Options
) -> Replayed:
    with _progress() as bar:
        sources = [_load(path, bar, as_class) for path in inputs]
        calls = merged(sources, speed_up=options.speed_up, limit=options.limit, rate=options.rate, seed=options.seed)
        fitting = bar.add_task("fitting paces", total=None, visible=False)
        replay = Replay(sources, calls, lambda: bar.advance(fitting))
        if replay.logged:
            bar.update(fitting, visible=True, total=fit.trials() * len(replay.logged))
        fleets = [replay.fleet(candidate) for candidate in candidates]
        bar.update(fitting, visible=False)
        first = candidates[0]
        judge = Judge(first.promises())
        columns = _tried_out(replay, list(zip(candidates, fleets, strict=True)), judge, options, bar, len(calls))
        return Replayed(
            sources=sources,
            calls=len(calls),
            options={name: value for name, value in asdict(options).items() if name != "jobs"},
            judged_by=first,
            logged=replay.as_logged(judge, first, fleets[0]),
            tried=[
                Tried(candidate=candidate, fleet=fleet, column=column)
                for candidate, fleet, column in zip(candidates, fleets, columns, strict=True)
            ],
            notes=_notes(sources, candidates, options),
        )


def _tried_out(
    replay: Replay,
    fleets: Sequence[tuple[Candidate, Mapping[str, Modelled]]],
    judge: Judge,
    options: _Options,
    bar: Progress,
    total: int,
) -> list[Column]:
    """Each candidate with its fleet; a bar for each."""
    tasks = [bar.add_task(candidate.name, total=total) for candidate, _ in fleets]
    gc.freeze()  # a million calls that stay need not be looked through again and again

    def work(candidate: Candidate, fleet: Mapping[str, Modelled], arrived: Callable[[int], None]) -> Column:
        return replay.try_out(candidate, fleet, judge, seed=options.seed, arrived=arrived)

    works = [partial(work, candidate, fleet) for candidate, fleet in fleets]
    jobs = options.jobs or parallel.cores()
    return parallel.run(works, jobs, lambda number, count: bar.update(tasks[number], completed=count))


def _progress() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _load(path: Path, bar: Progress, as_class: CallClass | None) -> Source:
    task = bar.add_task(f"reading {path.name}", total=sum(file.stat().st_size for file in files_of(path)))
    source = load(path, lambda count: bar.advance(task, count), as_class=as_class)
    bar.update(task, visible=False)
    return source


def _notes(sources: Sequence[Source], candidates: Sequence[Candidate], options: _Options) -> list[str]:
    """What a reader should know before the figures are believed."""
    notes = [f"{source.path.name}: {note}" for source in sources for note in source.notes]
    if untimed := [source.path.name for source in sources if not source.timed]:
        notes.append(f"{', '.join(untimed)}: no times, so calls arrive at random, {options.rate:g} per second (--rate)")
    first = candidates[0].promises()
    if any(candidate.promises() != first for candidate in candidates[1:]):
        notes.append(f"settings differ in what they promise; all are held against {candidates[0].file}")
    if any(source.block_tokens for source in sources) and not all(source.block_tokens for source in sources):
        notes.append("inputs know shared prompts in pieces of different sizes; the largest is taken for all")
    return notes


def _tell(replayed: Replayed, json_file: Path | None, chart_file: Path | None) -> None:
    for source in replayed.sources:
        lost = "".join(f"; {count} lines passed over: {why}" for why, count in source.passed_over.most_common())
        _say(f"{source.path}: {source.kind}, {len(source.calls)} calls{lost}")
    for each in replayed.tried:
        for name, backend in each.fleet.items():
            _say(f"{each.candidate.name}: {name}: {backend.how}")
    for note in replayed.notes:
        _say(f"note: {note}")
    try:
        if json_file is None or str(json_file) != "-":
            console = Console()
            if not console.is_terminal:
                console.width = NARROWEST
            show(replayed, console)
        if json_file is not None:
            _write(json_file, replayed)
        if chart_file is not None:
            chart.draw(replayed, chart_file)
            _say(f"wrote {chart_file}")
    except OSError as error:
        _say(f"{error.filename}: cannot be written: {error.strerror}")
        raise typer.Exit(1) from None


def _write(file: Path, replayed: Replayed) -> None:
    data = orjson.dumps(replayed.document(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if str(file) == "-":
        typer.echo(data, nl=False)
        return
    file.write_bytes(data)
    _say(f"wrote {file}")

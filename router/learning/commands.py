"""The commands that learn: `twolane train` makes a model from decision logs, `twolane eval` says how good one is.

What needs scikit-learn is imported when it is needed: serving never does.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from classifiers.learned import Learned
from classifiers.modelfile import MAX_FILE_BYTES, ModelError, written
from router import models
from router.learning.lines import Log, read
from router.observe.logfiles import with_those_set_aside

Logs = Annotated[
    list[Path], typer.Option("--from", metavar="LOG", help="Decision log; parts that were set aside are found.")
]

_INSTALL = (
    "training needs scikit-learn, which serving does not: pip install 'twolane[train]' "
    "(from a copy of the repository: pip install '.[train]')"
)


def _fail(text: str, code: int = 2) -> typer.Exit:
    Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)
    return typer.Exit(code)


def train(
    logs: Logs,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model to write, for `classify: {model: PATH}`.")],
    kind: Annotated[str, typer.Option(help="linear, or trees: better with thousands of calls.")] = "linear",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the model if it exists.")] = False,
) -> None:
    """Learn a model from your own traffic, as the decision log has it."""
    if out.exists() and not force:
        raise _fail(f"{out} exists already and is left alone; use another --out, or --force")
    if kind not in ("linear", "trees"):
        raise _fail("--kind: expected linear or trees")
    if importlib.util.find_spec("sklearn") is None:
        raise _fail(_INSTALL)
    _train(logs, out, "trees" if kind == "trees" else "linear")


def _train(logs: Sequence[Path], out: Path, kind: Literal["linear", "trees"]) -> None:
    from classifiers.training import TrainingError
    from router.learning.making import Prior
    from router.learning.train import learned_of
    from router.learning.train import train as trained_from

    model = _builtin()
    prior = None if model is None else Prior(model=model, document=orjson.loads(models.BUILTIN_FILE.read_bytes()))
    with _progress() as bar:
        log = _read(logs, bar)
        task = bar.add_task("", total=None)
        try:
            made = trained_from(log, kind, prior, lambda step: bar.update(task, description=step))
            learned_of(made.document)
        except (TrainingError, ModelError) as error:
            raise _fail(f"not trained: {error}", 1) from None
    _write(out, made.document)
    _tell(out, made)


def _tell(out: Path, made: Any) -> None:
    from router.learning.report import Report, macro

    report = Report(Console())
    report.log(made.log, made.used, made.clients, made.signs)
    own, before = made.measured, made.before
    report.confusion("The new model on clients it had not seen", own.labels, own.probabilities)
    report.calibration(own.labels, own.probabilities)
    compared = {"new, clients unseen": (own.labels, own.probabilities)}
    if before is not None:
        compared = {"builtin": (before.labels, before.probabilities), **compared}
        if macro(own.labels, own.probabilities) <= macro(before.labels, before.probabilities):
            made.notes.append("The new model is not better than the builtin one on these calls; keep that, log on.")
    compared |= {name: (each.labels, each.probabilities) for name, each in made.later.items() if each.labels}
    report.side_by_side(compared)
    report.notes(made.notes)
    report.way(made.document)
    typer.echo(f"wrote {out}; let it judge in the shadow first: classify: {{shadow: {out}}}")


def evaluate(
    model: Annotated[Path, typer.Argument(help="Model file; builtin for the one that comes with the router.")],
    logs: Annotated[
        list[Path] | None, typer.Option("--from", metavar="LOG", help="Decision log with tagged calls to try it on.")
    ] = None,
) -> None:
    """Say what a model is, and how well it judges the tagged calls of a decision log."""
    from router.learning.report import Report

    path = models.BUILTIN_FILE if str(model) == "builtin" else model
    learned, document = _model(path)
    report = Report(Console())
    report.model(learned, document)
    if logs:
        _evaluate(report, learned, logs)


def _evaluate(report: Any, learned: Learned, logs: Sequence[Path]) -> None:
    from router.learning.carrying import judged
    from router.learning.examples import examples_of, tagged_clients
    from router.learning.labels import counted

    with _progress() as bar:
        log = _read(logs, bar)
    examples = examples_of(log)
    own = judged(learned, examples)
    report.log(log, len(examples), tagged_clients(examples), counted(example.label for example in examples))
    if not own.labels:
        raise _fail("no call in the log was tagged by a header or a rule, so there is nothing to measure by", 1)
    report.confusion("Tagged calls", own.labels, own.probabilities)
    report.calibration(own.labels, own.probabilities)
    compared = {"this": (own.labels, own.probabilities)}
    notes = ["Where the model was trained on these very calls, it looks better than it is on others."]
    try:
        builtin = models.builtin()
    except ModelError as error:
        builtin = None
        notes.append(f"The model that comes with the router cannot be used: {error}")
    if builtin is not None and builtin is not learned:
        other = judged(builtin, examples)
        compared["builtin"] = (other.labels, other.probabilities)
    report.side_by_side(compared)
    report.notes(notes)


def _model(path: Path) -> tuple[Learned, dict[str, Any]]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise _fail(f"{path}: is larger than any model")
        return models.parsed(content), orjson.loads(content)
    except OSError as error:
        raise _fail(f"{path}: cannot be read: {error.strerror}") from None
    except ModelError as error:
        raise _fail(f"{path}: {error}") from None


def _builtin() -> Learned | None:
    try:
        return models.builtin()
    except ModelError as error:
        raise _fail(f"the model that comes with the router cannot be used: {error}") from None


def _read(logs: Sequence[Path], bar: Progress) -> Log:
    files = with_those_set_aside(logs)
    try:
        task = bar.add_task("reading", total=sum(path.stat().st_size for path in files))
        return read(files, models.VECTOR, lambda count: bar.advance(task, count))
    except OSError as error:
        raise _fail(f"{error.filename}: cannot be read: {error.strerror}") from None


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _write(out: Path, document: dict[str, Any]) -> None:
    """All of it or nothing: a router may be watching the file."""
    draft = out.with_name(f".{out.name}.draft")
    try:
        draft.write_text(written(document), encoding="utf-8")
        os.replace(draft, out)
    except OSError as error:
        raise _fail(f"{out}: cannot be written: {error.strerror}") from None

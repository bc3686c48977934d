"""A replay as a table: a column for each settings file, the log itself beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from rich.console import Console
from rich.table import Table

from classifiers.api import CallClass
from router.replay.figures import Column, Figures, Percentiles
from router.replay.run import Replayed

LOGGED: Final = "as logged"
_WHAT: Final = {
    CallClass.TTFT: ("ttft_s", "tpot_s"),
    CallClass.MIXED: ("complete_s",),
    CallClass.THROUGHPUT: ("complete_s",),
}
"""Times that matter to a class, and so are shown; all are in the JSON."""
_NAMES: Final = {"ttft_s": "first token, s", "tpot_s": "per token, ms", "complete_s": "whole answer, s"}


def columns(replayed: Replayed) -> list[tuple[str, Column]]:
    found = [(LOGGED, replayed.logged)] if replayed.logged is not None else []
    return [*found, *((each.candidate.name, each.column) for each in replayed.tried)]


def show(replayed: Replayed, console: Console) -> None:
    told = columns(replayed)
    table = Table(title=f"{replayed.calls} calls, promises of {replayed.judged_by.file}", title_justify="left")
    table.add_column("")
    for name, _ in told:
        table.add_column(name, justify="right", overflow="fold")
    add = _rows(table, [column for _, column in told])
    add("mean of classes inside their SLO", lambda each: _percent(each.mean_share))
    add("output tokens/s", lambda each: f"{each.total.tokens_per_s:.0f}")
    add("  of calls inside their SLO", lambda each: f"{each.total.kept_tokens_per_s:.0f}")
    add("shed (429, 503)", lambda each: str(each.total.shed))
    if any(column.total.left for _, column in told):
        add("left by their client", lambda each: str(each.total.left))
    if any(column.total.failed for _, column in told):
        add("failed", lambda each: str(each.total.failed))
    for call_class in CallClass:
        if any(call_class in column.classes for _, column in told):
            table.add_section()
            _class_rows(add, call_class)
    names = sorted({name for _, column in told for name in column.backends})
    table.add_section()
    for name in names:
        add(f"{name}: calls", partial(_calls_at, name))
    console.print(table)


_Add = Callable[[str, Callable[[Column], str]], None]


def _rows(table: Table, told: Sequence[Column]) -> _Add:
    def add(name: str, cell: Callable[[Column], str]) -> None:
        table.add_row(name, *(cell(column) for column in told))

    return add


def _class_rows(add: _Add, call_class: CallClass) -> None:
    def of(cell: Callable[[Figures], str]) -> Callable[[Column], str]:
        return lambda column: cell(column.classes[call_class]) if call_class in column.classes else "-"

    add(f"{call_class}: inside SLO", of(lambda each: _percent(each.share)))
    add("  calls inside SLO/s", of(lambda each: f"{each.goodput_per_s:.2f}" if each.judged else "-"))
    for what in _WHAT[call_class]:
        add(f"  {_NAMES[what]}: p50 / p95 / p99", of(partial(_times, what)))
    add("  wait in line, s: p50 / p95 / most", of(_waits))
    add("  spilled to another lane", of(lambda each: str(each.spilled)))
    add("  shed", of(lambda each: str(each.shed)))


def _calls_at(backend: str, column: Column) -> str:
    return str(column.backends[backend].calls) if backend in column.backends else "0"


def _times(what: str, figures: Figures) -> str:
    values: Percentiles = getattr(figures, what)
    factor = 1e3 if what == "tpot_s" else 1.0
    return " / ".join(_number(None if value is None else factor * value) for value in values.values())


def _waits(figures: Figures) -> str:
    values = (figures.waited_s["p50"], figures.waited_s["p95"], figures.longest_wait_s)
    return " / ".join(map(_number, values))


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"

"""How good a model is, on a terminal: confusion, precision and recall, calibration, side by side with another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from classifiers.api import CallClass
from classifiers.learned import Learned, Probabilities
from classifiers.measures import (
    BINS,
    accuracy,
    confusion,
    expected_calibration_error,
    likeliest,
    macro_accuracy,
    precision_and_recall,
)
from classifiers.modelfile import CLASSES
from router.learning.lines import Log

_SIGNS = 12
"""Rows of the table of labels; a log has few more kinds."""


class Report:
    """Tables on a console; plain text where it is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def log(self, log: Log, used: int, clients: int, signs: Mapping[tuple[str, CallClass], int]) -> None:
        """What was read, and where the labels come from."""
        self._say(f"{len(log.lines)} calls in the log, {used} used, tagged calls of {clients} clients")
        for reason, count in log.passed_over.most_common():
            self._say(f"  {count} lines passed over: {reason}")
        table = _table("What calls were", "label from", "class", "calls")
        for (sign, call_class), count in list(signs.items())[:_SIGNS]:
            table.add_row(sign, call_class, str(count))
        self._console.print(table)

    def confusion(self, title: str, labels: Sequence[str], rows: Sequence[Probabilities]) -> None:
        """Rows are what calls were, columns what the model took them for."""
        judged = confusion(labels, [likeliest(row) for row in rows])
        table = _table(title, "was", *(f"taken for {each}" for each in CLASSES), "precision", "recall")
        for truth in CLASSES:
            precision, recall = precision_and_recall(judged, truth)
            counts = (f"{judged[truth][other]:.0f}" for other in CLASSES)
            table.add_row(truth, *counts, f"{precision:.3f}", f"{recall:.3f}")
        self._console.print(table)

    def calibration(self, labels: Sequence[str], rows: Sequence[Probabilities]) -> None:
        """Whether a model that is 80 % sure is right in 80 % of the calls."""
        table = _table("Calibration", "confidence", "calls", "mean", "right")
        for place in range(BINS):
            inside = [
                (label, row)
                for label, row in zip(labels, rows, strict=True)
                if min(BINS - 1, int(max(row) * BINS)) == place
            ]
            if inside:
                mean = sum(max(row) for _, row in inside) / len(inside)
                right = sum(likeliest(row) == label for label, row in inside) / len(inside)
                span = f"{place / BINS:.1f} to {(place + 1) / BINS:.1f}"
                table.add_row(span, str(len(inside)), f"{mean:.3f}", f"{right:.3f}")
        self._console.print(table)

    def side_by_side(self, measured: Mapping[str, tuple[Sequence[str], Sequence[Probabilities]]]) -> None:
        """One line for each model, on the same calls."""
        table = _table("Tagged calls", "model", "calls", "macro accuracy", "accuracy", "calibration error")
        for name, (labels, rows) in measured.items():
            judged = confusion(labels, [likeliest(row) for row in rows])
            error = expected_calibration_error(labels, rows)
            table.add_row(
                name, str(len(labels)), f"{macro_accuracy(judged):.3f}", f"{accuracy(judged):.3f}", f"{error:.3f}"
            )
        self._console.print(table)

    def model(self, model: Learned, document: Mapping[str, Any]) -> None:
        """What a file says of itself."""
        self._say(f"model {model.version}")
        for name in ("request", "arrival"):
            stage = document.get(name)
            if stage:
                used = len(stage["features"])
                temperature = stage["calibration"]["temperature"]
                self._say(f"  {name}: {stage['kind']}, {used} features, temperature {temperature:g}")
        for key, value in sorted(model.trained.items()):
            self._say(f"  {key}: {value}")

    def way(self, document: Mapping[str, Any]) -> None:
        """How it was fitted, of the ways that were tried."""
        self._say(f"of the ways that were tried, taken: {document['trained']['way']}")

    def notes(self, notes: Sequence[str]) -> None:
        for note in notes:
            self._say(f"note: {note}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _table(title: str, first: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column(first)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def macro(labels: Sequence[str], rows: Sequence[Probabilities]) -> float:
    return macro_accuracy(confusion(labels, [likeliest(row) for row in rows]))

"""How good probabilities are: confusion, macro accuracy, calibration. Needs nothing that only training needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from classifiers.api import CallClass
from classifiers.modelfile import CLASSES

BINS = 10

Row = Sequence[float]
"""Probabilities of one call, in the order of `CLASSES`."""
Confusion = Mapping[CallClass, Mapping[CallClass, float]]
"""Weight of the calls by true class, then by judged class."""


def likeliest(row: Row) -> CallClass:
    """The first of equals."""
    return CLASSES[max(range(len(CLASSES)), key=row.__getitem__)]


def confusion(labels: Sequence[str], judged: Sequence[str], weights: Sequence[float] | None = None) -> Confusion:
    """Raises `ValueError` where the lengths differ or a label is no class."""
    counts = {truth: dict.fromkeys(CLASSES, 0.0) for truth in CLASSES}
    for label, verdict, weight in zip(labels, judged, _weights(labels, weights), strict=True):
        counts[CallClass(label)][CallClass(verdict)] += weight
    return counts


def macro_accuracy(table: Confusion) -> float:
    """Mean over the classes that occur of the share that was judged right; 0 where none occurs."""
    shares = [row[truth] / total for truth, row in table.items() if (total := sum(row.values())) > 0]
    return sum(shares) / len(shares) if shares else 0.0


def accuracy(table: Confusion) -> float:
    total = sum(sum(row.values()) for row in table.values())
    return sum(row[truth] for truth, row in table.items()) / total if total > 0 else 0.0


def precision_and_recall(table: Confusion, call_class: CallClass) -> tuple[float, float]:
    """0 where nothing was judged so, or nothing is so."""
    hits = table[call_class][call_class]
    judged = sum(row[call_class] for row in table.values())
    actual = sum(table[call_class].values())
    return hits / judged if judged else 0.0, hits / actual if actual else 0.0


def expected_calibration_error(
    labels: Sequence[str], rows: Sequence[Row], weights: Sequence[float] | None = None, bins: int = BINS
) -> float:
    """Mean distance between confidence and accuracy over bins of equal width of the confidence, weighted by their size.

    Guo et al., On Calibration of Modern Neural Networks (2017), equation 3.
    """
    totals, confident, right = [0.0] * bins, [0.0] * bins, [0.0] * bins
    for label, row, weight in zip(labels, rows, _weights(labels, weights), strict=True):
        confidence = max(row)
        place = min(bins - 1, int(confidence * bins))
        totals[place] += weight
        confident[place] += weight * confidence
        right[place] += weight * (likeliest(row) == label)
    distance = sum(abs(said - done) for said, done in zip(confident, right, strict=True))
    return distance / sum(totals) if sum(totals) else 0.0


def _weights(labels: Sequence[str], weights: Sequence[float] | None) -> Sequence[float]:
    return [1.0] * len(labels) if weights is None else weights

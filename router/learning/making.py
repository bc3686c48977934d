"""What the ways to make a model have in common: what they are given, what they give, how tags measure them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from classifiers.learned import Learned, Probabilities
from classifiers.measures import accuracy, confusion, expected_calibration_error, likeliest, macro_accuracy
from classifiers.training import Rows
from router import models
from router.learning.examples import Example, Measured
from router.learning.rows import PRIOR_CALLS, Weighed


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What a model is made of."""

    examples: Sequence[Example]
    known: Sequence[Example]
    """Those of clients that were known; empty where they are too few for a stage of their own."""
    clients: int
    """With tagged calls."""
    folds: int
    """In how many parts the groups are split to be held out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """The model before, and the document that it was read from."""

    model: Learned
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Made:
    document: dict[str, Any]
    measured: Measured
    """Tagged calls, each judged by a model that saw no call of its client."""

    @property
    def macro_accuracy(self) -> float:
        measured = self.measured
        return macro_accuracy(confusion(measured.labels, [likeliest(row) for row in measured.probabilities]))


def tagged(examples: Iterable[Example]) -> list[Example]:
    return [each for each in examples if each.label is not None and each.label.strong]


def measured(data: Data, request: Sequence[Probabilities], arrival: Sequence[Probabilities] | None) -> Measured:
    """`request`: of all tagged calls; `arrival`: of those whose client was known, which are judged by that."""
    examples, found = tagged(data.examples), list(request)
    if arrival is not None:
        rest = iter(arrival)
        found = [next(rest) if each.history else row for each, row in zip(examples, found, strict=True)]
    labels = [str(each.label.call_class) for each in examples if each.label is not None]
    return Measured(labels=labels, probabilities=found)


def figures(labels: Sequence[str], rows: Sequence[Probabilities]) -> dict[str, float]:
    """Of tagged calls, for the document."""
    table = confusion(labels, [likeliest(row) for row in rows])
    return {
        "accuracy": round(accuracy(table), 4),
        "macro_accuracy": round(macro_accuracy(table), 4),
        "expected_calibration_error": round(expected_calibration_error(labels, rows), 4),
    }


def summary(data: Data, weighed: Weighed, way: str) -> dict[str, object]:
    """What a document says of its training."""
    weights = {"tags": weighed.tag_weight, "guesses": weighed.guess_weight}
    if weighed.prior_weight:
        weights |= {"opinions": weighed.prior_weight, "opinions_at_most": PRIOR_CALLS}
    return {
        "calls": len(data.examples),
        "clients": data.clients,
        "tags": len(weighed.tags),
        "vector": models.VECTOR,
        "way": way,
        "weights": {name: round(weight, 1) for name, weight in weights.items()},
    }


def version_of(rows: Rows) -> str:
    """The same for the same rows."""
    digest = sha256()
    for label, weight, vector in zip(rows.labels, rows.weights, rows.vectors, strict=True):
        digest.update(f"{label} {weight:.9g} {sum(vector):.9g}\n".encode())
    return f"own-{digest.hexdigest()[:8]}"

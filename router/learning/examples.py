"""Logged calls as a model sees them, with what they probably were; and how a model judges those that were tagged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from classifiers.learned import Learned, Probabilities
from router import models
from router.learning.labels import Label, labels
from router.learning.lines import Log

MOST_CALLS: Final = 20_000
"""The newest are taken: what clients did a year ago says little of what they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One logged call."""

    vector: Sequence[float]
    client: str
    history: bool
    """Its client was known when it came."""
    label: Label | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How a model judged tagged calls."""

    labels: Sequence[str]
    probabilities: Sequence[Probabilities]


def examples_of(log: Log, most: int = MOST_CALLS) -> list[Example]:
    """The newest calls of the log with what they probably were. What is known of calls whose text nobody looked at
    helps to tell what those around them were."""
    found: list[Label | None] = labels(log.lines)
    seen = [
        (line, line.features, label) for line, label in zip(log.lines, found, strict=True) if line.features is not None
    ]
    return [
        Example(
            vector=models.from_numbers(features),
            client=line.client,
            history=(line.arrival or {}).get("calls", 0.0) > 0,
            label=label,
        )
        for line, features, label in seen[-most:]
    ]


def tagged_clients(examples: Sequence[Example]) -> int:
    """How many clients have tagged calls."""
    return len({example.client for example in examples if example.label is not None and example.label.strong})


def judged(model: Learned, examples: Sequence[Example]) -> Measured:
    """A model on the tagged calls of a log."""
    tagged = [(example, example.label) for example in examples if example.label is not None and example.label.strong]
    return Measured(
        labels=[str(label.call_class) for _, label in tagged],
        probabilities=[model.judge(example.vector, example.history) for example, _ in tagged],
    )

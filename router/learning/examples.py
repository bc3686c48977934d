"""Logged calls as a model sees them, with what they probably were; and how a model judges those that were tagged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from classifiers.learned import Probabilities
from router import models
from router.learning.labels import Label, labels
from router.learning.lines import Line, Log

MOST_CALLS: Final = 20_000
"""The newest are taken: what clients did a year ago says little of what they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One logged call."""

    vector: Sequence[float]
    client: str
    history: bool
    """Its client was known when it came."""
    stream: bool
    program: str
    """Hashes of its system text and tools; empty: the log has none."""
    life: int
    """How often its client had been new until then: what was known of it before is forgotten."""
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
        (line, line.features, life, label)
        for line, life, label in zip(log.lines, _lives(log), found, strict=True)
        if line.features is not None
    ]
    return [
        Example(
            vector=models.from_numbers(features),
            client=line.client,
            history=_knew_client(line),
            stream=line.stream,
            program=line.program,
            life=life,
            label=label,
        )
        for line, features, life, label in seen[-most:]
    ]


def _knew_client(line: Line) -> bool:
    return (line.arrival or {}).get("calls", 0.0) > 0


def _lives(log: Log) -> list[int]:
    lives: dict[str, int] = {}
    found = []
    for line in log.lines:
        if line.arrival is not None and not _knew_client(line):
            lives[line.client] = lives.get(line.client, 0) + 1
        found.append(lives.get(line.client, 0))
    return found


def tagged_clients(examples: Sequence[Example]) -> int:
    """How many clients have tagged calls."""
    return len({example.client for example in examples if example.label is not None and example.label.strong})

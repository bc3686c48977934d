"""Labelled calls with the length of the answer that their source recorded.

The lengths are characters, of models of many kinds, people, and the short gold answers of reading benchmarks: noisy,
and the only truth there is. They become tokens at the rate of the call's own newest message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.judgement.data import read_row, records
from classifiers.api import Features

_PLAIN_RATE: Final = 0.24
"""Tokens per character of English prose."""
_RATES: Final = (0.2, 0.4)
"""Those of ASCII text lie between these."""
_WIDE_RATE: Final = 0.5
"""Above it, a text is not of Latin letters."""
_FEWEST_CHARS: Final = 80
"""Shorter messages tell nothing of the answer's rate, unless they are of another script."""

BUCKETS: Final = (16, 64, 256, 1024)
"""Upper borders, in tokens."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One call, and how long its answer was."""

    features: Features
    source: str
    tokens: int
    """At least 1, and not more than the call's limit."""


def read_answers(where: Path) -> list[Answer]:
    found = []
    for record in records(where):
        chars = record["reference_output_chars"]
        if chars:
            row = read_row(record)
            tokens = max(1, round(chars * _tokens_per_char(row.features)))
            limit = row.features.max_tokens
            found.append(Answer(row.features, row.source, min(tokens, limit) if limit else tokens))
    return found


def _tokens_per_char(features: Features) -> float:
    chars = features.shape.text.chars if features.shape is not None else 0
    rate = features.last_tokens / max(1, chars)
    if rate > _WIDE_RATE:
        return min(1.0, rate)
    return min(max(rate, _RATES[0]), _RATES[1]) if chars >= _FEWEST_CHARS else _PLAIN_RATE


def bucket(tokens: float) -> int:
    return sum([tokens > border for border in BUCKETS])


def weights(sources: Sequence[str]) -> list[float]:
    """A source of four times the rows counts twice as much. Their mean is 1."""
    counts = {source: sources.count(source) for source in set(sources)}
    raw = [counts[source] ** -0.5 for source in sources]
    mean = sum(raw) / len(raw)
    return [weight / mean for weight in raw]

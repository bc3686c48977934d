"""What the text of a call looks like, as numbers: read once, at the borders of the prompt, and never kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Numbers about the text of one call and the fields around it. Holds no text."""

    fields: int = 0
    """Top-level fields of the body."""


def shape_of(body: Mapping[str, Any], *, system: Sequence[str], earlier: Sequence[str], last: Sequence[str]) -> Shape:
    """`body` is the parsed request; the texts are in the order of the conversation, by their place in it."""
    return Shape(fields=len(body))

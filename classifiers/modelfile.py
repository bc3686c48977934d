"""A model's document as text and back.

A document that is read comes from outside: every value is checked, and an error says where and what to do. Reading does
not recurse and every list has a limit, so that a hostile file costs no more than an honest one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from classifiers.api import CallClass

CLASSES: Final = (CallClass.TTFT, CallClass.MIXED, CallClass.THROUGHPUT)
"""The order in which probabilities are given."""

MAX_FILE_BYTES = 16 * 1024 * 1024
"""Whoever reads the file must stop here; the shipped model has a hundredth of it."""
MAX_FEATURES = 512
MAX_WORDS_CHARS = 120
MAX_NUMBER = 1e12

TRAIN_AGAIN = "train the model again with this version"


class ModelError(ValueError):
    """A document that is no model. `key` is the dotted path of what is wrong, such as `request.features[3].name`."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key
        self.message = message


@dataclass(frozen=True, slots=True)
class Node:
    """One value of the document and its path; every method raises `ModelError` where the value is another."""

    value: object
    path: str

    def get(self, key: str) -> Node:
        if not isinstance(self.value, Mapping):
            raise self.wrong("expected an object")
        path = f"{self.path}.{key}" if self.path else key
        if key not in self.value:
            raise ModelError(path, f"it is missing; {TRAIN_AGAIN}")
        return Node(self.value[key], path)

    def find(self, key: str) -> Node | None:
        """None where the key is missing or null."""
        if isinstance(self.value, Mapping) and self.value.get(key) is None:
            return None
        return self.get(key)

    def items(self, most: int, least: int = 0) -> Iterator[Node]:
        if not isinstance(self.value, list):
            raise self.wrong("expected an array")
        if not least <= len(self.value) <= most:
            raise self.wrong(f"expected {least} to {most} entries, got {len(self.value)}")
        return (Node(item, f"{self.path}[{index}]") for index, item in enumerate(self.value))

    def number(self, limit: float = MAX_NUMBER) -> float:
        """A finite number of at most `limit` in size."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong("expected a number")
        if not -limit <= value <= limit:  # NaN is not within any limits
            raise self.wrong(f"expected a number between {-limit:g} and {limit:g}")
        return float(value)

    def positive(self, limit: float = MAX_NUMBER) -> float:
        value = self.number(limit)
        if value <= 0:
            raise self.wrong("expected a number above 0")
        return value

    def integers(self, length: int, low: int, high: int) -> tuple[int, ...]:
        """Exactly `length` whole numbers of `low` to `high`."""
        return tuple(item.integer(low, high) for item in self.items(length, length))

    def integer(self, low: int, high: int) -> int:
        if type(self.value) is not int or not low <= self.value <= high:
            raise self.wrong(f"expected a whole number from {low} to {high}")
        return self.value

    def numbers(self, length: int, limit: float = MAX_NUMBER) -> tuple[float, ...]:
        return tuple(item.number(limit) for item in self.items(length, length))

    def text(self) -> str:
        value = self.value
        if not isinstance(value, str) or not 0 < len(value) <= MAX_WORDS_CHARS or not value.isprintable():
            raise self.wrong(f"expected text of 1 to {MAX_WORDS_CHARS} printable characters on one line")
        return value

    def one_of(self, *choices: str) -> str:
        if not isinstance(self.value, str) or self.value not in choices:
            raise self.wrong(f"expected {' or '.join(choices)}")
        return self.value

    def each_class(self) -> tuple[Node, Node, Node]:
        """Of an object with an entry for each class."""
        first, second, third = CLASSES
        return self.get(first), self.get(second), self.get(third)

    def wrong(self, message: str) -> ModelError:
        return ModelError(self.path or "the document", message)


def softmax(scores: tuple[float, float, float], temperature: float) -> tuple[float, float, float]:
    """Probabilities that add up to 1; a higher temperature makes them more alike."""
    first, second, third = scores
    most = max(scores)
    one, two, three = (
        math.exp((first - most) / temperature),
        math.exp((second - most) / temperature),
        math.exp((third - most) / temperature),
    )
    total = one + two + three
    return one / total, two / total, three / total


def written(document: Mapping[str, Any]) -> str:
    """The document as JSON: sorted, with a line for each feature and each tree."""
    return f"{_json(document, '')}\n"


def _json(value: Any, indent: str) -> str:
    inner = f"{indent} "
    if isinstance(value, Mapping) and any(isinstance(item, (Mapping, list)) for item in value.values()):
        entries = [f"{inner}{json.dumps(key)}: {_json(value[key], inner)}" for key in sorted(value)]
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        return "[\n" + ",\n".join(f"{inner}{_line(item)}" for item in value) + f"\n{indent}]"
    return _line(value)


def _line(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)

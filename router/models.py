"""Calls as the learned models see them, and models as they are read from files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Final

import orjson

import classifiers
from classifiers.api import Features
from classifiers.learned import Learned
from classifiers.modelfile import ModelError
from classifiers.vector import LEANS, LOGARITHMS, NAMES, ONLY_WITH_ARRIVAL, TRUST, WORDS
from classifiers.vector import vector as vector_of

BUILTIN_FILE: Final = Path(classifiers.__file__ or "").parent / "models" / "builtin.json"

VECTOR: Final = blake2b(",".join(NAMES).encode(), digest_size=4).hexdigest()
"""Changes with the features: what was logged of others cannot be learned from."""


def named_numbers(features: Features) -> dict[str, float]:
    """What a model is told of a call, by name; zeros are left out, whole numbers are written as such."""
    return {
        name: int(value) if value == int(value) else round(value, 6)
        for name, value in zip(NAMES, vector_of(features), strict=True)
        if value
    }


def from_numbers(numbers: Mapping[str, float]) -> list[float]:
    """The vector of a call that was logged."""
    return [numbers.get(name, 0.0) for name in NAMES]


@lru_cache(maxsize=4)
def parsed(content: bytes) -> Learned:
    """The model in a file; it is asked for when settings are checked and again when they are taken over.

    Raises `ModelError`.
    """
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ModelError("the file", f"is not JSON ({error})") from None
    return Learned.parse(document, NAMES)


def builtin() -> Learned | None:
    """The model that comes with the router; None: this version has none. Raises `ModelError`."""
    return parsed(BUILTIN_FILE.read_bytes()) if BUILTIN_FILE.exists() else None


__all__ = [
    "BUILTIN_FILE",
    "LEANS",
    "LOGARITHMS",
    "NAMES",
    "ONLY_WITH_ARRIVAL",
    "TRUST",
    "VECTOR",
    "WORDS",
    "builtin",
    "from_numbers",
    "named_numbers",
    "parsed",
    "vector_of",
]

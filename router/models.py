"""Calls as the learned models see them, and models as they are read from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import compress
from pathlib import Path
from typing import Final, NamedTuple, Self

import orjson

import classifiers
from classifiers.api import Features
from classifiers.carry import LogOdds
from classifiers.learned import Judgement, Learned
from classifiers.modelfile import ModelError
from classifiers.vector import LEANS, LOGARITHMS, NAMES, ONLY_WITH_ARRIVAL, TRUST, WORDS
from classifiers.vector import vector as vector_of

BUILTIN_FILE: Final = Path(classifiers.__file__ or "").parent / "models" / "builtin.json"

VECTOR: Final = blake2b(",".join(NAMES).encode(), digest_size=4).hexdigest()
"""Changes with the features: what was logged of others cannot be learned from."""


def named_numbers(features: Features) -> dict[str, float]:
    """What a model is told of a call, by name; zeros are left out, a yes is written as 1."""
    return named(vector_of(features))


def named(vector: Sequence[float]) -> dict[str, float]:
    """The same of a call whose vector is known. Only what is not zero is looked at: of 140 numbers some thirty."""
    return {
        name: round(value, 6) if type(value) is float else +value
        for name, value in compress(zip(NAMES, vector, strict=True), vector)
    }


def from_numbers(numbers: Mapping[str, float]) -> list[float]:
    """The vector of a call that was logged."""
    return [numbers.get(name, 0.0) for name in NAMES]


class Seen(NamedTuple):
    """One call, as a model was told of it."""

    numbers: Sequence[float]
    judgement: Judgement | None
    """What the model of the chain made of it; None: it was not asked."""


class LastSeen:
    """Keeps what a model saw in the call that was judged last, so that who logs it does not work it out a second time.

    One call, since judging is done in one go.
    """

    def __init__(self) -> None:
        self._features: Features | None = None
        self._numbers: Sequence[float] = ()
        self._judgement: Judgement | None = None

    def vector_of(self, features: Features) -> Sequence[float]:
        """Stands before the function of that name."""
        self._features, self._numbers, self._judgement = features, vector_of(features), None
        return self._numbers

    def judged(self, judgement: Judgement) -> None:
        """By these numbers."""
        self._judgement = judgement

    def taken(self, features: Features) -> Seen:
        """What was seen in this call; its numbers are worked out now where no model was asked. Forgotten here."""
        if self._features is not features:
            return Seen(vector_of(features), None)
        found = Seen(self._numbers, self._judgement)
        self._features, self._numbers, self._judgement = None, (), None
        return found


@dataclass(frozen=True, slots=True)
class Watched(Learned):
    """A model whose last judgement is kept."""

    last: LastSeen

    @classmethod
    def by(cls, model: Learned, last: LastSeen) -> Self:
        return cls(model.version, model.request, model.arrival, model.trained, last)

    def look(self, vector: Sequence[float], history: bool = False, lately: LogOdds | None = None) -> Judgement:
        judgement = Learned.look(self, vector, history, lately)
        self.last.judged(judgement)
        return judgement


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
    "LastSeen",
    "Seen",
    "Watched",
    "builtin",
    "from_numbers",
    "named",
    "named_numbers",
    "parsed",
    "vector_of",
]

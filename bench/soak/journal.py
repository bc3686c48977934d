"""What backends did with each call: the other side of every answer that a client saw."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from enum import IntFlag
from typing import Any, Self

_GROWTH = 65_536


class Fate(IntFlag):
    """How a call ended at a backend; several where several backends saw it."""

    ANSWERED = 1
    """All was written that the order says, its fault included."""
    CUT = 2
    """The backend was stopped under it."""
    LEFT = 4
    """The router ended it first."""


class Journal:
    """Counts by number of the call. One byte each: a million calls cost three megabytes."""

    def __init__(self) -> None:
        self._visits = bytearray()
        self._generations = bytearray()
        self._fates = bytearray()
        self.complaints: list[str] = []
        """What no order explains: changed bodies, requests that cannot be read."""

    def visited(self, n: int) -> int:
        """A call has been read; returns how often it had been before."""
        while n >= len(self._visits):
            for counts in (self._visits, self._generations, self._fates):
                counts.extend(bytes(_GROWTH))
        before = self._visits[n]
        self._visits[n] = min(before + 1, 255)
        return before

    def generates(self, n: int) -> None:
        """Work on it begins, as far as anybody but the backend can know."""
        self._generations[n] = min(self._generations[n] + 1, 255)

    def ended(self, n: int, fate: Fate) -> None:
        self._fates[n] |= fate

    def complain(self, words: str) -> None:
        if len(self.complaints) < 100:
            self.complaints.append(words)

    def visits(self, n: int) -> int:
        return self._visits[n] if n < len(self._visits) else 0

    def generations(self, n: int) -> int:
        return self._generations[n] if n < len(self._generations) else 0

    def fate(self, n: int) -> Fate:
        return Fate(self._fates[n]) if n < len(self._fates) else Fate(0)

    def as_json(self) -> dict[str, Any]:
        counts = {"visits": self._visits, "generations": self._generations, "fates": self._fates}
        return {**{name: b64encode(data).decode() for name, data in counts.items()}, "complaints": self.complaints}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        journal = cls()
        journal._visits, journal._generations, journal._fates = (
            bytearray(b64decode(document[name])) for name in ("visits", "generations", "fates")
        )
        journal.complaints = list(document["complaints"])
        return journal

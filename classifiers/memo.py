"""What was found in texts that a program sends with call after call: its system text, its tools.

A text is known by Python's own keyed hash of 64 bits, and is not kept. That two texts of one process share a hash is as
likely as not after billions of them, and would give one call the numbers of another.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

MOST: Final = 1024
"""Programs that call at the same time are few; whatever is more is forgotten."""

Found = TypeVar("Found")


class Memo(Generic[Found]):
    """A dictionary that is emptied when it is full, since keeping count of what is old would take longer than looking
    at a text once more now and then."""

    __slots__ = ("_found", "get")

    def __init__(self) -> None:
        self._found: dict[int, Found] = {}
        self.get: Final = self._found.get
        """By the hash of a text; None: it is new."""

    def __len__(self) -> int:
        return len(self._found)

    def keep(self, key: int, found: Found) -> None:
        if len(self._found) >= MOST:
            self._found.clear()
        self._found[key] = found

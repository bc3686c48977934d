"""Counting the pieces of output in a stream, cheaply.

How it works. The first event that carries output is parsed. It tells what stands right before the text in this
server's events, such as `"content":"`. In later events that mark is searched for: if it is there and something
follows it, the event carries output, and nothing has to be parsed. The mark cannot be met by chance inside the text,
for quotes are escaped there. Where it is missing, or where a guard such as `"usage":{` says that there is more in the
event than text, the event is parsed after all and the mark learned again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from router.surfaces.api import Progress

_UNKNOWN = b"\0"
"""Stands in no JSON text."""


class MarkReader(ABC):
    """A `TokenReader` that parses only what it must; `look` is the part that knows the API."""

    __slots__ = ("_guard", "_guard_key", "_guard_value", "_length", "_mark", "progress")

    def __init__(self, guard_key: str, guard_value: str) -> None:
        """An event in which the value of `guard_key` begins with `guard_value` is always parsed."""
        self.progress = Progress()
        self._mark = _UNKNOWN
        self._length = 1
        self._guard = _UNKNOWN
        self._guard_key = guard_key
        self._guard_value = guard_value

    def event(self, name: str, data: bytes) -> bool:
        at = data.find(self._mark)
        # Searching from the end takes half the time: the guard is seldom there, and CPython's two searches differ.
        if at >= 0 and data.rfind(self._guard) < 0:
            start = at + self._length
            if data[start : start + 1] != b'"':
                self.progress.tokens += 1
                return True
        return self.look(name, data)

    @abstractmethod
    def look(self, name: str, data: bytes) -> bool:
        """Take in one event by parsing it. Never raises."""

    def carried(self, field: str, data: bytes, pieces: int = 1) -> bool:
        """Note that `data` carries output, the first of it as the string under `field`. Returns True."""
        self.progress.tokens += pieces
        for colon in (":", ": "):
            mark = f'"{field}"{colon}"'.encode()
            if mark in data:
                self._mark = mark
                self._length = len(mark)
                self._guard = f'"{self._guard_key}"{colon}{self._guard_value}'.encode()
                break
        return True


class Silent:
    """Reads the answers of APIs that have no tokens to wait for."""

    __slots__ = ("progress",)

    def __init__(self) -> None:
        self.progress = Progress()

    def event(self, name: str, data: bytes) -> bool:
        return False

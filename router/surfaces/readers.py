"""Counting the pieces of output in a stream, cheaply.

How it works. The first event that carries output is parsed. It tells what stands right before the text in this
server's events, such as `"content":"`. In later events that mark is searched for: if it is there and something
follows it, the event carries output, and nothing has to be parsed. The mark cannot be met by chance inside the text,
for quotes are escaped there. Where it is missing, or where a guard such as `"usage":{` says that there is more in the
event than text, the event is parsed after all and the mark learned again.

Many events at once are as easily told to be nothing but text: as many marks as events, the end of a line behind each,
none before an empty text, and no guard.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from router.surfaces.api import Progress

_UNKNOWN = b"\0"
"""Stands in no JSON text."""


class MarkReader(ABC):
    """A `TokenReader` that parses only what it must; `look` is the part that knows the API."""

    __slots__ = ("_empty", "_guard", "_guard_key", "_guard_value", "_mark", "progress")

    def __init__(self, guard_key: str, guard_value: str) -> None:
        """An event in which the value of `guard_key` begins with `guard_value` is always parsed."""
        self.progress = Progress()
        self._mark = self._empty = _UNKNOWN
        self._guard = _UNKNOWN
        self._guard_key = guard_key
        self._guard_value = guard_value

    def event(self, name: str, data: bytes) -> bool:
        marks = data.count(self._mark)
        # Searching from the end takes half the time: the guard is seldom there, and CPython's two searches differ.
        if marks and data.rfind(self._guard) < 0 and self._empty not in data:
            self.progress.tokens += marks
            return True
        return self.look(name, data)

    def only_output(self, events: bytes, count: int) -> bool:
        if events.count(self._mark) != count or self._empty in events or self._guard in events:
            return False
        # One event may have two marks, for two choices, and another, the end of the answer, none.
        if not all([b"\n" in behind for behind in events.split(self._mark)[1:]]):
            return False
        self.progress.tokens += count
        return True

    @abstractmethod
    def look(self, name: str, data: bytes) -> bool:
        """Take in one event by parsing it. Never raises."""

    def carried(self, field: str, data: bytes, pieces: int = 1) -> bool:
        """Note that `data` carries output, the first of it as the string under `field`. Returns True."""
        self.progress.tokens += pieces
        for colon in (":", ": "):
            mark = f'"{field}"{colon}"'.encode()
            if mark in data:
                self._mark, self._empty = mark, mark + b'"'
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

    def only_output(self, events: bytes, count: int) -> bool:
        return False

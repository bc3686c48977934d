"""At most so many names of one kind; what comes beyond them is called `other`, so that nobody can fill the memory."""

from __future__ import annotations

from typing import Final

MOST_NAMES: Final = 64
OTHER: Final = "other"


class Few:
    """Names keep their place for as long as they are used; `forget` makes room for new ones."""

    __slots__ = ("_most", "_seen_s")

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._most = most
        self._seen_s: dict[str, float] = {}

    def of(self, name: str, now_s: float) -> str:
        """The name, or `other` where there are too many."""
        if name in self._seen_s or len(self._seen_s) < self._most:
            self._seen_s[name] = now_s
            return name
        return OTHER

    def forget(self, before_s: float) -> None:
        """Those that were not used since then."""
        self._seen_s = {name: seen_s for name, seen_s in self._seen_s.items() if seen_s >= before_s}

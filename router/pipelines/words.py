"""Whether what a client says of its hops can be believed: who says `final` of everything has said nothing."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

BELIEVED: Final = 16
"""Calls of a client until it is judged."""
_MOST_FINAL: Final = 0.9
"""Of its calls; somebody reads at most the last answer of a task that has several."""
_KEPT: Final = 128
"""Calls after which the counts are halved, so that who has mended its ways is believed again."""
_CLIENTS: Final = 1_024


class Words:
    """Counts of clients that ever said `final`, the least recently seen forgotten first."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: OrderedDict[int, list[int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counts)

    def believed(self, client: int, *, final: bool) -> bool:
        """Count one call, and say whether its hop header is worth something."""
        counts = self._counts.get(client)
        if counts is None:
            if final:
                self._counts[client] = [1, 1]
                if len(self._counts) > _CLIENTS:
                    self._counts.popitem(last=False)
            return True
        self._counts.move_to_end(client)
        counts[0] += final
        counts[1] += 1
        if counts[1] >= _KEPT:
            counts[0] //= 2
            counts[1] //= 2
        return counts[1] < BELIEVED or counts[0] <= _MOST_FINAL * counts[1]

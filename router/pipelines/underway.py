"""Tasks of one kind that are not over, the longest silent first, and which of them is closed next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from router.pipelines.hop import Pipeline

_LOOKED_AT: Final = 4
"""Silent tasks with a call that still runs that are passed over for one call, so that none pays for all."""
_LOOKED_AT_WHEN_FULL: Final = 32


class UnderWay:
    """A task with a call that runs is passed over, and looked at again after all others."""

    __slots__ = ("_by_id", "_silent_s")

    def __init__(self, silent_s: float) -> None:
        """After so long without a call a task is over."""
        self._silent_s = silent_s
        self._by_id: OrderedDict[str, Pipeline] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_id)

    def all(self) -> Iterable[Pipeline]:
        return self._by_id.values()

    def add(self, pipeline: Pipeline) -> None:
        self._by_id[pipeline.id] = pipeline

    def remove(self, pipeline: Pipeline) -> None:
        del self._by_id[pipeline.id]

    def touch(self, pipeline: Pipeline) -> None:
        """Something of it came or ended just now."""
        self._by_id.move_to_end(pipeline.id)

    def silent(self, now_s: float) -> Pipeline | None:
        """One that has been silent for too long, and of which nothing runs."""
        for _ in range(min(_LOOKED_AT, len(self._by_id))):
            oldest = next(iter(self._by_id.values()))
            if now_s - oldest.last_s <= self._silent_s:
                return None
            if not oldest.open:
                return oldest
            self.touch(oldest)
        return None

    def oldest(self) -> Pipeline:
        """The one to make room: of which nothing runs, as long as one is found soon. There has to be one."""
        for _ in range(min(_LOOKED_AT_WHEN_FULL, len(self._by_id))):
            oldest = next(iter(self._by_id.values()))
            if not oldest.open:
                return oldest
            self.touch(oldest)
        return next(iter(self._by_id.values()))

"""Calls of one trace, which are one task as long as they come like the steps of one.

Who traces an agent gives each run of it a trace. Who traces a job may give all its rows the same one, and a server of
chats all its users; so a trace connects calls where time alone would not, and is no name of a task.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from classifiers.api import CallClass
from router.pipelines.hop import Hop
from router.pipelines.siblings import FAN_OUT

TRACE_S: Final = 30.0
"""Longest time from an answer to the next step of a trace."""
_CAPACITY: Final = 4_096


class _Trace:
    __slots__ = ("newest", "run")

    def __init__(self, newest: Hop) -> None:
        self.newest = newest
        self.run = 1
        """Newest calls in a row that one program sent."""


class Traces:
    """By a key of the trace, the least recently used ones forgotten first."""

    __slots__ = ("_by_key", "_capacity")

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._by_key: OrderedDict[int, _Trace] = OrderedDict()
        self._capacity = capacity

    def __len__(self) -> int:
        return len(self._by_key)

    def before(self, key: int, hop: Hop) -> Hop | None:
        """The call before it, if both are of one task. Rows of a job follow rows: `FAN_OUT` are the most that are not
        taken for one, and what looks like a row has to follow something else."""
        trace = self._by_key.get(key)
        if trace is None:
            self._by_key[key] = _Trace(hop)
            if len(self._by_key) > self._capacity:
                self._by_key.popitem(last=False)
            return None
        self._by_key.move_to_end(key)
        before, trace.newest = trace.newest, hop
        again = before.program == hop.program
        trace.run = trace.run + 1 if again else 1
        if trace.run > FAN_OUT or hop.arrived_s - _last_s(before, hop) > TRACE_S:
            return None
        if again and hop.call_class is CallClass.THROUGHPUT and before.pipeline is None:
            return None
        return before


def _last_s(before: Hop, hop: Hop) -> float:
    """When something of its task came or ended; while it is open, now."""
    if before.pipeline is not None:
        return before.pipeline.last_s
    return hop.arrived_s if before.ended_s is None else before.ended_s

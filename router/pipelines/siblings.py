"""Calls that no history connects: those sent at once by one program, and the next step of a task under another prompt.

One program that runs several tasks at a time gives no sign which step belongs to which, so a step is only connected
where a single task can be meant.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

from classifiers.api import CallClass
from router.pipelines.hop import Hop, Pipeline

BURST_S: Final = 0.5
"""Calls of one program that come closer together than this were sent at once."""
FAN_OUT: Final = 24
"""More calls that were sent at once are a job."""
STEP_S: Final = 2.0
"""Longest time from an answer to the next step, where nothing but time connects them."""
JOB_STEP_S: Final = 0.75
"""The same of a step that looks like the first row of a job."""
_CLIENTS: Final = 1_024
_KEPT_ENDS: Final = 16
_KEPT_BURSTS: Final = 8
_KEPT_PAIRS: Final = 32


class _Burst:
    """The newest calls of one program."""

    __slots__ = ("first", "last_s", "size")

    def __init__(self, first: Hop) -> None:
        self.begin(first)

    def begin(self, first: Hop) -> None:
        self.first = first
        self.last_s = first.arrived_s
        self.size = 1


class _Client:
    __slots__ = ("_pairs", "bursts", "ended", "ended_s")

    def __init__(self) -> None:
        self.ended_s = -math.inf
        """When the newest of `ended` was answered."""
        self.bursts: OrderedDict[int, _Burst] = OrderedDict()
        self.ended: deque[Hop] = deque(maxlen=_KEPT_ENDS)
        self._pairs: OrderedDict[int, None] = OrderedDict()
        """Programs of which one was seen to follow the other."""

    def waiting(self, hop: Hop, earliest_s: float) -> Sequence[Hop]:
        """Of each task that was answered since then, and from which nothing went on, its newest call by another program
        than that of `hop`."""
        found: dict[int, Hop] = {}
        for other in reversed(self.ended):
            if other.ended_s is None or other.ended_s < earliest_s:
                break
            if other.program == hop.program or other.continued:
                continue
            task: Pipeline | Hop = other.pipeline or other
            if other.pipeline is None or not other.pipeline.open:  # else the others that were sent with it still run
                found.setdefault(id(task), other)
        return list(found.values())

    def follows(self, before: int, after: int) -> None:
        self._pairs[hash((before, after))] = None
        if len(self._pairs) > _KEPT_PAIRS:
            self._pairs.popitem(last=False)

    def meant(self, hop: Hop, found: Sequence[Hop]) -> Hop | None:
        """The one of several tasks that is meant: whose program this one followed before, or that offers no tools, for
        what comes after those comes with their results. None: it could be more than one."""
        if len(found) > 1:
            known = [other for other in found if hash((other.program, hop.program)) in self._pairs]
            found = known or [other for other in found if not other.tools]
        return found[0] if len(found) == 1 else None


class Siblings:
    """Of each client the calls of the last seconds."""

    __slots__ = ("_clients",)

    def __init__(self) -> None:
        self._clients: OrderedDict[int, _Client] = OrderedDict()

    def __len__(self) -> int:
        return len(self._clients)

    def first_of_burst(self, hop: Hop) -> Hop | None:
        """The first of the calls that were sent together with this one; None: it is the first itself, or alone."""
        client = self._of(hop.client)
        burst = client.bursts.get(hop.program)
        if burst is not None and hop.arrived_s - burst.last_s <= BURST_S:
            burst.last_s = hop.arrived_s
            burst.size += 1
            return burst.first if burst.size <= FAN_OUT else None
        if burst is None:
            client.bursts[hop.program] = _Burst(hop)
            if len(client.bursts) > _KEPT_BURSTS:
                client.bursts.popitem(last=False)
        else:
            burst.begin(hop)
            client.bursts.move_to_end(hop.program)
        return None

    def step_before(self, hop: Hop) -> Hop | None:
        """The call of another program from whose answer this one may follow; None: none, or it could be several."""
        client = self._clients.get(hop.client)
        if client is None:
            return None
        earliest_s = hop.arrived_s - (JOB_STEP_S if hop.call_class is CallClass.THROUGHPUT else STEP_S)
        if client.ended_s < earliest_s:  # as for most calls
            return None
        before = client.meant(hop, client.waiting(hop, earliest_s))
        if before is not None:
            client.follows(before.program, hop.program)
        return before

    def ended(self, hop: Hop, now_s: float) -> None:
        """It was answered."""
        if hop.call_class is not CallClass.THROUGHPUT:
            client = self._of(hop.client)
            client.ended.append(hop)
            client.ended_s = now_s

    def _of(self, client: int) -> _Client:
        found = self._clients.get(client)
        if found is not None:
            self._clients.move_to_end(client)
            return found
        found = self._clients[client] = _Client()
        if len(self._clients) > _CLIENTS:
            self._clients.popitem(last=False)
        return found

"""Those who wait in the line, in order. Knows no fleet and no policy; time is an argument.

Calls of one class that could go to the same backends form a group. In it a call stands by

    latest start + lead of its client

soonest first: its latest start is when it must begin to keep its promise (earliest deadline first, which is best as
long as all can be kept), and the lead is what its client has already had, or has in line before it, beyond its share.
A call whose latest start has passed cannot be helped by hurry, and would only take the others along. It goes to the
late part of the group, the shortest work first, which saves most others (Smith's rule). Apart from all this, who has
waited for a whole `ageing` goes before everybody, the oldest first, so that nothing starves.

Everything costs O(log n): one that leaves is marked and passed over later, and what is marked never exceeds the rest.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")

_TOKENS_PER_S: Final = 5_000.0
"""What a client's lead in tokens is divided by to stand beside times: about what one server prefills."""
_MOST_CLIENTS: Final = 4_096


class Entry(Generic[K, T]):
    """One call that waits."""

    __slots__ = ("aged_s", "group", "hoped_s", "latest_s", "lead_s", "order", "start_tokens", "tokens", "who", "work_s")

    def __init__(
        self,
        who: T,
        group: Group[K, T],
        *,
        aged_s: float,
        hoped_s: float,
        latest_s: float,
        work_s: float,
        order: int,
    ) -> None:
        self.who = who
        self.group: Group[K, T] | None = group
        """None: it waits no longer."""
        self.aged_s = aged_s
        """When it has waited for a whole `ageing`."""
        self.hoped_s = hoped_s
        """When it would have to start to be done when it is hoped to be, by which it stands until then."""
        self.latest_s = latest_s
        """When it has to start to keep its promise."""
        self.work_s = work_s
        """How long it is likely to take."""
        self.order = order
        self.start_tokens = self.lead_s = 0.0
        """Where its client's counter stood when it came, and how far that was ahead of the line."""
        self.tokens = 0
        """That its client was charged for it."""


class Group(Generic[K, T]):
    """Calls of one kind. Only `Line` writes here."""

    __slots__ = ("_by_age", "_in_time", "_late", "asked_s", "count", "key", "place")

    def __init__(self, key: K, place: int) -> None:
        self.key = key
        self.place = place
        """Of its class among the classes, the most urgent first."""
        self.count = 0
        self.asked_s = float("-inf")
        """When its first ones were last offered what room there is."""
        self._in_time: list[tuple[float, int, Entry[K, T]]] = []
        self._late: list[tuple[float, int, Entry[K, T]]] = []
        self._by_age: deque[Entry[K, T]] = deque()

    def __len__(self) -> int:
        return self.count

    def add(self, entry: Entry[K, T]) -> None:
        heapq.heappush(self._in_time, (entry.hoped_s + entry.lead_s, entry.order, entry))
        self._by_age.append(entry)
        self.count += 1

    def remove(self, entry: Entry[K, T]) -> None:
        entry.group = None
        self.count -= 1
        if len(self._by_age) > 2 * self.count + 16:
            self._sweep()

    def _sweep(self) -> None:
        """Drop what is only marked; it was at least half, so it cost each that left a constant."""
        self._by_age = deque([entry for entry in self._by_age if entry.group is not None])
        for heap in (self._in_time, self._late):
            heap[:] = [item for item in heap if item[2].group is not None]
            heapq.heapify(heap)

    # --- who is first

    def oldest(self) -> Entry[K, T] | None:
        while self._by_age:
            if self._by_age[0].group is not None:
                return self._by_age[0]
            self._by_age.popleft()
        return None

    def youngest(self) -> Entry[K, T] | None:
        while self._by_age:
            if self._by_age[-1].group is not None:
                return self._by_age[-1]
            self._by_age.pop()
        return None

    def _moves(self, entry: Entry[K, T], now_s: float) -> None:
        """The time has passed by which it stood."""
        if entry.latest_s < now_s:
            heapq.heappush(self._late, (entry.work_s, entry.order, entry))
        else:
            entry.hoped_s = entry.latest_s
            heapq.heappush(self._in_time, (entry.latest_s + entry.lead_s, entry.order, entry))

    def offer(self, *, late: bool, looks: int, now_s: float, takes: Callable[[Entry[K, T]], bool]) -> None:
        """Offer room to the first ones of a part, until `looks` of them could not take it.

        `takes` tells whether one did; it is then out of the group.
        """
        heap = self._late if late else self._in_time
        passed: list[tuple[float, int, Entry[K, T]]] = []
        while heap and len(passed) < looks:
            item = heapq.heappop(heap)
            entry = item[2]
            if entry.group is None:
                continue
            if not late and entry.hoped_s < now_s:
                self._moves(entry, now_s)
            elif not takes(entry):
                passed.append(item)
        for item in passed:
            if item[2].group is not None:
                heapq.heappush(heap, item)


class Shares:
    """A virtual counter of tokens for each client, so that one with much in line does not hold up the others.

    As start-time fair queueing (Goyal, Vin and Cheng, 1996), by tokens as in "Fairness in Serving Large Language
    Models" (arXiv 2401.00588): a call starts where its client's last one ended, or where the line is if that is
    further, so nobody saves up a right for having been away.
    """

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}
        self._now_tokens = 0.0

    def __len__(self) -> int:
        return len(self._ends)

    def take(self, client: str, tokens: float) -> tuple[float, float]:
        """Charge a call that joins the line. Returns where it starts, and its lead in seconds."""
        start = max(self._now_tokens, self._ends.get(client, 0.0))
        if len(self._ends) >= _MOST_CLIENTS:
            self._ends = {name: end for name, end in self._ends.items() if end > self._now_tokens}
            if len(self._ends) >= _MOST_CLIENTS:
                self._ends.clear()
        self._ends[client] = start + tokens
        return start, (start - self._now_tokens) / _TOKENS_PER_S

    def give_back(self, client: str, tokens: float) -> None:
        """One that was charged so much has left the line."""
        if client in self._ends:
            self._ends[client] -= tokens

    def served(self, start_tokens: float) -> None:
        """One that started there has its place."""
        self._now_tokens = max(self._now_tokens, start_tokens)

"""Finds the call that another one goes on from: by its history, or by the id of a tool call.

Kept are hashes of a bounded number of calls, the least recently used forgotten first, and of each client apart from the
others. Two calls may have been the same to the letter; each of them is found once before one is found again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from classifiers.marks import Marks
from router.pipelines.hop import Hop

_CAPACITY: Final = 32_768
_LOOKED_AT: Final = 4
"""Newest tool results of a call by whose ids it is looked for."""
_ALIKE: Final = 8
"""Calls with the same history that are told apart."""


class Threads:
    """By client and border of a history.

    The keys are `client ^ border`: both are keyed hashes of 64 bits, and to hash the pair again would take as long as
    all the rest for a history of many messages.
    """

    __slots__ = ("_capacity", "_ends", "_openings")

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._ends: OrderedDict[int, list[Hop]] = OrderedDict()
        self._openings: OrderedDict[int, None] = OrderedDict()
        """Of all histories in `_ends`: of a call that begins like none of them no border need be looked for."""

    def __len__(self) -> int:
        return len(self._ends)

    def earlier(self, client: int, marks: Marks) -> tuple[Hop, int] | None:
        """The newest call whose history and answer this one repeats, and how many messages it adds; 0: its text grew.

        Where only the id of a tool call tells, because the client cut its history down, -1.
        """
        ends, borders = self._ends, marks.borders
        if len(borders) > 1:
            salt = hash((client, marks.opening))
            if salt in self._openings:
                for added, border in enumerate(borders[-2::-1], 1):
                    if (found := ends.get(salt ^ border)) is not None:
                        return _choose(found), added
        for line in marks.lines:
            if (found := ends.get(client ^ line)) is not None:
                return _choose(found), 0
        if marks.tool_calls:
            for id_ in marks.tool_calls[: -_LOOKED_AT - 1 : -1]:
                if (found := ends.get(client ^ id_)) is not None:
                    return _choose(found), -1
        return None

    def by_id(self, client: int, id_: str) -> Hop | None:
        """The call whose answer has this id."""
        found = self._ends.get(client ^ hash(id_))
        return found[-1] if found else None

    def remember(self, client: int, marks: Marks, hop: Hop) -> None:
        """Under all borders at which a later call may show that it goes on from here."""
        if marks.borders:
            # It tells of the last few messages alone, and those of two sessions may be the same: "ok", "ok".
            salt = hash((client, marks.opening))
            self._put(salt ^ marks.borders[-1], hop)
            openings = self._openings
            openings[salt] = None
            openings.move_to_end(salt)
            if len(openings) > self._capacity:
                openings.popitem(last=False)
        for end in marks.ends:
            self._put(client ^ end, hop)
        if marks.tool_calls:
            self._put(client ^ marks.tool_calls[-1], hop)

    def answered(self, client: int, id_: str, hop: Hop) -> None:
        """Its answer has this id: its own, or that of a tool that it calls."""
        self._put(client ^ hash(id_), hop)

    def _put(self, key: int, hop: Hop) -> None:
        ends = self._ends
        found = ends.get(key)
        if found is None:
            ends[key] = [hop]
            if len(ends) > self._capacity:
                ends.popitem(last=False)
            return
        ends.move_to_end(key)
        found.append(hop)
        if len(found) > _ALIKE:
            del found[0]


def _choose(found: list[Hop]) -> Hop:
    """Of calls that were the same, the one that was answered first and from which none went on yet."""
    if len(found) == 1:
        return found[0]
    for hop in found:
        if hop.ended_s is not None and not hop.continued:
            return hop
    return found[-1]

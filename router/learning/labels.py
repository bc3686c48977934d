"""What class a logged call really was: told by its caller or the operator, or guessed from what its client did after.

A tag (header or rule) is a strong label. Where there is none, what happened *after* the verdict is looked at, never
what the verdict was made from, else a model would only learn to agree with itself. Each sign that is seen votes for
one class with a strength; the class with the most is the weak label, and what it has more than the next class is its
weight:

    weight = min(0.5, votes for it - votes for the next class), no label below 0.05

so that contradicting signs cancel, and no guess counts as much as a tag. Weak labels together never weigh more than
the tags do (`router.learning.rows`). `docs/learning.md` has the reasons for each sign.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from classifiers.api import CallClass, Source
from router.learning.lines import Line

MOST_WEAK: Final = 0.5
LEAST_WEAK: Final = 0.05

AT_ONCE_S: Final = 2.0
"""Nobody reads an answer and writes the next message in this time."""
READING_S: Final = 5.0
"""From here on somebody may have done so."""
NEXT_ROW_S: Final = 1.0
"""A loop sends its next row within this time after an answer."""
ROW_SHARE: Final = 0.5
"""Of a program's calls that begin or end alike, from which on they are rows."""
PATIENT_S: Final = 30.0
"""Who waited this long for a whole answer was not sitting in front of it."""
_SAME_INSTANT_S: Final = 0.05
"""The log tells times to the millisecond, by another clock than durations."""

_TTFT, _MIXED, _THROUGHPUT = CallClass.TTFT, CallClass.MIXED, CallClass.THROUGHPUT


@dataclass(frozen=True, slots=True)
class Label:
    """`sign`: what it follows from, one word; of several votes for the class, the strongest."""

    call_class: CallClass
    weight: float
    sign: str
    strong: bool


@dataclass(slots=True)
class After:
    """What the same client did after a call; None: nothing that can be told."""

    continued_s: float | None = None
    """Until a call came that goes on from this answer."""
    by_tool: bool = False
    """That call brought results of tools."""
    by_user: bool = False
    next_row_s: float | None = None
    """Until a call of the same program with the same template came."""


@dataclass(frozen=True, slots=True)
class Sign:
    name: str
    votes_for: CallClass
    strength: float
    seen: Callable[[Line, After], bool]


def _continued_at_once(after: After) -> bool:
    return after.continued_s is not None and after.continued_s <= AT_ONCE_S


def _next_row(after: After) -> bool:
    return after.next_row_s is not None and after.next_row_s <= NEXT_ROW_S and after.continued_s is None


SIGNS: Final = (
    Sign("tool_result_at_once", _MIXED, 0.5, lambda line, after: _continued_at_once(after) and after.by_tool),
    Sign("continued_at_once", _MIXED, 0.3, lambda line, after: _continued_at_once(after) and not after.by_tool),
    Sign(
        "read_and_answered",
        _TTFT,
        0.5,
        lambda line, after: (
            line.stream and after.by_user and after.continued_s is not None and after.continued_s >= READING_S
        ),
    ),
    Sign("left_before_first_token", _TTFT, 0.3, lambda line, after: line.left == "before_first_token"),
    Sign("left_during_answer", _TTFT, 0.3, lambda line, after: line.stream and line.left == "during_answer"),
    Sign("next_row_at_once", _THROUGHPUT, 0.4, lambda line, after: _next_row(after) and not line.stream),
    Sign("next_row_streamed", _THROUGHPUT, 0.2, lambda line, after: _next_row(after) and line.stream),
    Sign(
        "waited_long",
        _THROUGHPUT,
        0.2,
        lambda line, after: not line.stream and line.outcome == "completed" and line.complete_s >= PATIENT_S,
    ),
    Sign(
        "read_at_once",
        _TTFT,
        0.1,
        lambda line, after: line.stream and line.outcome == "completed" and not line.stalls,
    ),
)


def labels(lines: Sequence[Line]) -> list[Label | None]:
    """For each line; None: nothing tells what it was."""
    return [strong_label(line) or weak_label(line, after) for line, after in zip(lines, afterwards(lines), strict=True)]


def strong_label(line: Line) -> Label | None:
    """What the caller or the operator said; weighs as much as the hint is sure."""
    if line.source not in (Source.HEADER, Source.RULE) or line.turned or line.confidence < LEAST_WEAK:
        return None
    return Label(line.call_class, line.confidence, str(line.source), strong=True)


def weak_label(line: Line, after: After) -> Label | None:
    votes: dict[CallClass, float] = dict.fromkeys(CallClass, 0.0)
    seen = [sign for sign in SIGNS if sign.seen(line, after)]
    for sign in seen:
        votes[sign.votes_for] += sign.strength
    first, second, _ = sorted(votes.values(), reverse=True)
    weight = min(MOST_WEAK, first - second)
    if weight < LEAST_WEAK:
        return None
    winner = max(votes, key=votes.__getitem__)
    loudest = max((sign for sign in seen if sign.votes_for is winner), key=lambda sign: sign.strength)
    return Label(winner, round(weight, 3), loudest.name, strong=False)


def afterwards(lines: Sequence[Line]) -> list[After]:
    """What came after each line. A call says how long before it the answer ended that it goes on from, so that answer
    is the one of its client which ended at that instant."""
    found = [After() for _ in lines]
    for places in _by_client(lines).values():
        ends = sorted((lines[place].time_s + lines[place].complete_s, place) for place in places)
        for place in places:
            arrival = lines[place].arrival or {}
            if arrival.get("continues") and (gap_s := arrival.get("since_continued_s")) is not None:
                before = _ended_at(ends, lines[place].time_s - gap_s)
                if before is not None and before != place:
                    found[before].continued_s = gap_s
                    found[before].by_tool = bool(arrival.get("appended_tool_results"))
                    found[before].by_user = bool(arrival.get("appended_user"))
            if (gap_s := arrival.get("since_program_answer_s")) is not None and _is_row(arrival):
                before = _ended_at(ends, lines[place].time_s - gap_s)
                if before is not None and before != place and found[before].next_row_s is None:
                    found[before].next_row_s = gap_s
    return found


def _is_row(arrival: Mapping[str, float]) -> bool:
    """Whether the newest message is like those of the program's calls before: the next hop of an agent is not."""
    return max(arrival.get("template_share", 0.0), arrival.get("start_share", 0.0)) >= ROW_SHARE


def _by_client(lines: Sequence[Line]) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        found.setdefault(line.client, []).append(place)
    return found


def _ended_at(ends: Sequence[tuple[float, int]], instant_s: float) -> int | None:
    """The line that ended nearest to that instant, if one did."""
    at = bisect_left(ends, (instant_s, -1))
    near = [ends[place] for place in (at - 1, at) if 0 <= place < len(ends)]
    best = min(near, key=lambda end: abs(end[0] - instant_s), default=None)
    return best[1] if best is not None and abs(best[0] - instant_s) <= _SAME_INSTANT_S else None


def counted(found: Iterable[Label | None]) -> Mapping[tuple[str, CallClass], int]:
    """Labels by sign and class, the most frequent first."""
    counts: dict[tuple[str, CallClass], int] = {}
    for label in found:
        if label is not None:
            counts[label.sign, label.call_class] = counts.get((label.sign, label.call_class), 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))

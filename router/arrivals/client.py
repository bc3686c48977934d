"""One client: what it did lately, in a size that does not grow."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import Final, NamedTuple

from classifiers.api import Features, Verdict
from classifiers.arrival import Arrival
from classifiers.marks import Marks
from router.arrivals.history import Histories, Served
from router.arrivals.kin import Kin, Kins, LastMinute, Program, Template, Typical
from router.arrivals.recall import Recall, likeness_of

KEPT_TIMES: Final = 64
KEPT_STREAMS: Final = 16
KEPT_SYSTEMS: Final = 8
KEPT_PROGRAMS: Final = 8
KEPT_TEMPLATES: Final = 16
"""Beginnings, and as many endings."""
KEPT_OPENINGS: Final = 32

READ, LEFT, LEFT_EARLY = range(3)
"""What became of a stream."""


_NOT_LOOKED_UP: Final = Arrival()


class Called(NamedTuple):
    """What is known of a call when it has been taken in, and what has to be told of its end."""

    arrival: Arrival
    """Not looked up where there is a verdict."""
    verdict: Verdict | None
    recall: Recall
    likeness: int
    kins: tuple[Kin, ...]
    served: Served


class Client:
    """Counts and hashes of the calls of one client. Times are seconds of any clock that goes forward."""

    __slots__ = (
        "answer_gap",
        "answered_s",
        "calls",
        "heads",
        "histories",
        "minute",
        "open",
        "openings",
        "output",
        "programs",
        "seen_s",
        "streams",
        "systems",
        "tails",
        "times",
        "tools",
    )

    def __init__(self, kept_histories: int, now_s: float) -> None:
        self.calls = 0
        self.open = 0
        self.seen_s = now_s
        """When it came or got an answer last."""
        self.answered_s: float | None = None
        self.times: list[float] = []
        self.minute = LastMinute()
        self.streams: deque[int] = deque(maxlen=KEPT_STREAMS)
        self.output = Typical()
        self.answer_gap = Typical()
        self.systems = Kins(Kin, KEPT_SYSTEMS)
        self.tools = Kins(Kin, KEPT_SYSTEMS)
        self.programs = Kins(Program, KEPT_PROGRAMS)
        self.heads = Kins(Template, KEPT_TEMPLATES)
        self.tails = Kins(Template, KEPT_TEMPLATES)
        self.openings = Kins(Kin, KEPT_OPENINGS)
        self.histories = Histories(kept_histories)

    def called(self, features: Features, marks: Marks, now_s: float, judge: object | None) -> Called:
        """Take a call in: what was known before it, or what `judge` said of calls like it."""
        family = Family(self, marks)
        served = Served(features)
        histories = self.histories
        again = histories.again(marks)
        found = histories.continued(marks)
        if found is not None:
            served.go_on_from(found[0], now_s)
        if again is not None:
            served.times = again.times + 1
        verdict, likeness = None, 0
        if judge is not None:
            likeness = likeness_of(features, marks)
            verdict = family.template.recall.verdict(likeness, judge, now_s)
        arrival = self._view(features, marks, family, served, found, now_s) if verdict is None else _NOT_LOOKED_UP
        histories.remember(marks, served)
        if self.answered_s is not None:
            self.answer_gap.take(now_s - self.answered_s)
        paused_s = _since(found[0].ended_s, now_s) if found is not None else None
        family.program.took(features, marks, now_s, continues=found is not None, paused_s=paused_s)
        for kin in family.all:
            kin.arrived(now_s)
        self.calls += 1
        self.open += 1
        if len(self.times) == KEPT_TIMES:
            del self.times[0]
        self.times.append(now_s)
        self.minute.add(now_s)
        return Called(arrival, verdict, family.template.recall, likeness, family.all, served)

    def _view(
        self,
        features: Features,
        marks: Marks,
        family: Family,
        served: Served,
        found: tuple[Served, int] | None,
        now_s: float,
    ) -> Arrival:
        if not self.calls:
            return Arrival()
        template, program = family.template, family.program
        template_share, start_share = program.shares(marks)
        streams = self.streams
        earlier, added = found if found is not None else (None, 0)
        roles = marks.roles[-added:] if added else ""
        return Arrival(
            calls=self.calls,
            calls_1s=self._calls(1.0, now_s),
            calls_10s=self._calls(10.0, now_s),
            calls_60s=self._calls(60.0, now_s),
            same_system_60s=family.system.count(now_s),
            same_tools_60s=family.tools.count(now_s),
            same_template_60s=template.count(now_s),
            same_opening_60s=family.opening.count(now_s),
            parallel=self.open,
            parallel_program=program.open,
            parallel_template=template.open,
            since_arrival_s=now_s - self.times[-1],
            since_answer_s=_since(self.answered_s, now_s),
            usual_answer_gap_s=self.answer_gap.value,
            program_calls=program.seen,
            template_calls=template.seen,
            template_share=template_share,
            start_share=start_share,
            since_program_s=_since(program.last_s, now_s),
            since_program_answer_s=_since(program.ended_s, now_s),
            usual_gap_s=program.gap.value,
            gap_spread=program.gap.spread,
            usual_program_answer_gap_s=program.answer_gap.value,
            usual_pause_s=program.pause.value,
            continued_share=program.continued_share,
            repeats=served.times - 1,
            continues=earlier is not None,
            hops=served.hops,
            since_continued_s=_since(earlier.ended_s, now_s) if earlier is not None else None,
            pause_s=served.pause_s,
            longest_pause_s=served.longest_pause_s,
            grown_tokens=max(0, features.prompt_tokens - earlier.prompt_tokens) if earlier is not None else 0,
            appended_tool_results=roles.count("t"),
            appended_user=roles.count("u"),
            appended_assistant=roles.count("a"),
            appended_chars=_appended_chars(marks, added),
            streamed_hops=served.streamed_hops,
            tools_dropped=earlier is not None and earlier.tools and not features.tools,
            program_streams=program.streamed_share,
            streams=len(streams),
            read_last=streams[-1] == READ if streams else None,
            left_early=bool(streams) and streams[-1] == LEFT_EARLY,
            left_share=1.0 - streams.count(READ) / len(streams) if streams else 0.0,
            output_tokens=_first(template.output.value, program.output.value, self.output.value),
            size_change=program.size.change(features.prompt_tokens),
            size_spread=program.size.spread,
        )

    def _calls(self, window_s: float, now_s: float) -> int:
        times = self.times
        count = len(times) - bisect_left(times, now_s - window_s)
        if count < KEPT_TIMES:
            return count
        # More than are kept: as often as those, and not more than the last minute had.
        extrapolated = int(count * window_s / max(1e-3, now_s - times[0]))
        return max(count, min(extrapolated, self.minute.count(now_s)))

    def answered(
        self, kins: tuple[Kin, ...], served: Served, stream: int | None, output_tokens: int | None, now_s: float
    ) -> None:
        """The end of a call: an answer in full or in part, or none. `stream` is READ, LEFT, LEFT_EARLY; None: it was
        not streamed, or ended for another reason."""
        self.open -= 1
        self.seen_s = self.answered_s = now_s
        served.ended_s = now_s
        for kin in kins:
            kin.ended(output_tokens, now_s)
        if output_tokens is not None:
            self.output.take(output_tokens)
        if stream is not None:
            self.streams.append(stream)


class Family:
    """What is known of the calls that have something in common with one call."""

    __slots__ = ("all", "opening", "program", "system", "template", "tools")

    def __init__(self, client: Client, marks: Marks) -> None:
        self.system = client.systems.of(marks.system)
        self.program = client.programs.of(hash((marks.system, marks.tools)))
        self.tools = client.tools.of(marks.tools) if marks.tools else Kin()
        self.opening = client.openings.of(marks.opening) if marks.opening else Kin()
        head, tail = client.heads.of(marks.head), client.tails.of(marks.tail)
        self.template = head if head.seen >= tail.seen else tail
        self.all: tuple[Kin, ...] = (self.system, self.program, self.tools, self.opening, head, tail)


def _first(*values: float | None) -> float | None:
    """The first that is known."""
    return next((value for value in values if value is not None), None)


def _since(then_s: float | None, now_s: float) -> float | None:
    return None if then_s is None else now_s - then_s


def _appended_chars(marks: Marks, added: int) -> int:
    if not added:
        return 0
    newest = zip(marks.roles[-added:], marks.sizes[-added:], strict=True)
    return sum([chars for role, chars in newest if role != "a"])

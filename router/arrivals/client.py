"""One client: what it did lately, in a size that does not grow."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import Final, NamedTuple

from classifiers.api import Features, Verdict
from classifiers.arrival import Arrival
from classifiers.carry import LogOdds, taken_in
from classifiers.marks import Marks
from router.arrivals.history import Histories, Served
from router.arrivals.kin import MINUTE_S, Kin, Kins, LastMinute, Program, Template, Typical, log2_of
from router.arrivals.recall import Recall, likeness_of

KEPT_TIMES: Final = 64
KEPT_STREAMS: Final = 16
KEPT_SYSTEMS: Final = 8
KEPT_PROGRAMS: Final = 8
KEPT_TEMPLATES: Final = 16
"""Beginnings, and as many endings."""
KEPT_OPENINGS: Final = 32
KEPT_RECALLS: Final = 32

READ, LEFT, LEFT_EARLY = range(3)
"""What became of a stream."""


_NOT_LOOKED_UP: Final = Arrival()


class Called(NamedTuple):
    """What is known of a call when it has been taken in, and what has to be told of its end."""

    arrival: Arrival
    """Where there is a verdict, not looked up or no more than a glance."""
    verdict: Verdict | None
    recall: Recall | None
    """Of calls like this one; None: nobody judges."""
    kins: tuple[Kin, ...]
    program: Program
    served: Served


class Client:
    """Counts and hashes of the calls of one client. Times are seconds of any clock that goes forward."""

    __slots__ = (
        "answered_s",
        "calls",
        "heads",
        "histories",
        "minute",
        "open",
        "openings",
        "output",
        "programs",
        "recalls",
        "said",
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
        self.systems = Kins(Kin, KEPT_SYSTEMS)
        self.tools = Kins(Kin, KEPT_SYSTEMS)
        self.programs = Kins(Program, KEPT_PROGRAMS)
        self.heads = Kins(Template, KEPT_TEMPLATES)
        self.tails = Kins(Template, KEPT_TEMPLATES)
        self.openings = Kins(Kin, KEPT_OPENINGS)
        self.recalls = Kins(Recall, KEPT_RECALLS)
        self.said: list[LogOdds | None] = [None, None]
        """As of a `Program`."""
        self.histories = Histories(kept_histories)

    def called(
        self, features: Features, marks: Marks, now_s: float, judge: object | None, *, glance: bool = False
    ) -> Called:
        """Take a call in: what was known before it, or what `judge` said of calls like it, with a `glance` or none."""
        family = Family(self, marks)
        served = Served(features)
        histories = self.histories
        again = histories.again(marks)
        found = histories.continued(marks)
        if found is not None:
            served.go_on_from(found[0], now_s)
        if again is not None:
            served.times = again.times + 1
        recall = verdict = None
        if judge is not None:
            recall = self.recalls.of(likeness_of(features, marks, family.template_mark))
            verdict = recall.verdict(judge, now_s)
        if verdict is None:
            arrival = self._view(features, marks, family, served, found, now_s)
        elif glance:
            arrival = self._glance(features, marks, family, served, found, now_s)
        else:
            arrival = _NOT_LOOKED_UP
        histories.remember(marks, served)
        paused_s = _since(found[0].ended_s, now_s) if found is not None else None
        family.program.took(features, marks, now_s, continues=found is not None, paused_s=paused_s)
        minute = now_s // MINUTE_S
        for kin in family.all:
            kin.arrived(now_s, minute)
        self.calls += 1
        self.open += 1
        if len(self.times) == KEPT_TIMES:
            del self.times[0]
        self.times.append(now_s)
        self.minute.add(minute)
        return Called(arrival, verdict, recall, family.all, family.program, served)

    def _view(
        self,
        features: Features,
        marks: Marks,
        family: Family,
        served: Served,
        found: tuple[Served, int] | None,
        now_s: float,
    ) -> Arrival:
        # Assigned one by one, since that takes half the time of naming them all in one call.
        arrival = Arrival()
        if not self.calls:
            return arrival
        minute, left = now_s // MINUTE_S, 1.0 - now_s % MINUTE_S / MINUTE_S
        arrival.calls = self.calls
        arrival.calls_1s, arrival.calls_10s, arrival.calls_60s = self._calls(now_s, minute, left)
        arrival.same_system_60s = family.system.count(minute, left)
        if family.tools is not None:
            arrival.same_tools_60s = family.tools.count(minute, left)
        if family.opening is not None:
            arrival.same_opening_60s = family.opening.count(minute, left)
        arrival.said = family.program.said[features.stream] or self.said[features.stream]
        arrival.parallel = self.open
        arrival.since_arrival_s = now_s - self.times[-1]
        arrival.since_answer_s = _since(self.answered_s, now_s)
        arrival.repeats = served.times - 1
        template, program = family.template, family.program
        arrival.same_template_60s = template.count(minute, left)
        arrival.parallel_template = template.open
        arrival.template_calls = template.seen
        arrival.output_tokens = _first(template.output, program.output, self.output)
        if program.seen:
            _see_program(arrival, program, features, marks, now_s)
        if found is not None:
            _see_history(arrival, served, *found, features, marks, now_s)
        if self.streams:
            self._see_streams(arrival)
        return arrival

    def _glance(
        self,
        features: Features,
        marks: Marks,
        family: Family,
        served: Served,
        found: tuple[Served, int] | None,
        now_s: float,
    ) -> Arrival:
        """From which answer it goes on, or how long after one it came: all that a label is guessed from later."""
        arrival, program = Arrival(), family.program
        arrival.calls = self.calls
        if program.seen:
            arrival.template_share, arrival.start_share = program.shares(marks)
            arrival.since_program_answer_s = _since(program.ended_s, now_s)
        if found is not None:
            _see_history(arrival, served, *found, features, marks, now_s)
        return arrival

    def _see_streams(self, arrival: Arrival) -> None:
        streams = self.streams
        count = len(streams)
        arrival.streams = count
        arrival.read_last = streams[-1] == READ
        arrival.left_early = streams[-1] == LEFT_EARLY
        arrival.left_share = 1.0 - streams.count(READ) / count

    def _calls(self, now_s: float, minute: float, left: float) -> tuple[int, int, int]:
        """In the last second, ten seconds, and sixty."""
        times = self.times
        count = len(times)
        in_60s = bisect_left(times, now_s - 60.0)
        in_10s = bisect_left(times, now_s - 10.0, in_60s)
        in_1s = bisect_left(times, now_s - 1.0, in_10s)
        if in_60s or count < KEPT_TIMES:
            return count - in_1s, count - in_10s, count - in_60s
        # More than are kept: as often as those, and not more than the last minute had.
        most, each_s = self.minute.count(minute, left), max(1e-3, now_s - times[0])
        return (
            count - in_1s if in_1s else max(count, min(int(count * 1.0 / each_s), most)),
            count - in_10s if in_10s else max(count, min(int(count * 10.0 / each_s), most)),
            max(count, min(int(count * 60.0 / each_s), most)),
        )

    def judged(self, program: Program, stream: bool, alone: LogOdds) -> None:
        """What a model said of a call by itself."""
        program.said[stream] = taken_in(program.said[stream], alone)
        self.said[stream] = taken_in(self.said[stream], alone)

    def answered(
        self, kins: tuple[Kin, ...], served: Served, stream: int | None, output_tokens: int | None, now_s: float
    ) -> None:
        """The end of a call: an answer in full or in part, or none. `stream` is READ, LEFT, LEFT_EARLY; None: it was
        not streamed, or ended for another reason."""
        self.open -= 1
        self.seen_s = self.answered_s = now_s
        served.ended_s = now_s
        log2_tokens = None if output_tokens is None else log2_of(output_tokens)
        for kin in kins:
            kin.ended(log2_tokens, now_s)
        if log2_tokens is not None:
            self.output.take_log2(log2_tokens)
        if stream is not None:
            self.streams.append(stream)


class Family:
    """What is known of the calls that have something in common with one call."""

    __slots__ = ("all", "opening", "program", "system", "template", "template_mark", "tools")

    def __init__(self, client: Client, marks: Marks) -> None:
        self.system = client.systems.of(marks.system)
        self.program = client.programs.of(hash((marks.system, marks.tools)))
        head, tail = client.heads.of(marks.head), client.tails.of(marks.tail)
        by_head = head.seen >= tail.seen
        self.template = head if by_head else tail
        self.template_mark = marks.head if by_head else marks.tail
        self.all: tuple[Kin, ...] = (self.system, self.program, head, tail)
        self.tools: Kin | None = None
        self.opening: Kin | None = None
        if marks.opening:
            self.opening = client.openings.of(marks.opening)
            self.all += (self.opening,)
        if marks.tools:
            self.tools = client.tools.of(marks.tools)
            self.all += (self.tools,)


def _see_program(arrival: Arrival, program: Program, features: Features, marks: Marks, now_s: float) -> None:
    arrival.parallel_program = program.open
    arrival.program_calls = program.seen
    arrival.template_share, arrival.start_share = program.shares(marks)
    arrival.since_program_answer_s = _since(program.ended_s, now_s)
    arrival.usual_gap_s, arrival.gap_spread = program.gap.value, program.gap.spread
    arrival.usual_program_answer_gap_s = program.answer_gap.value
    arrival.usual_pause_s = program.pause.value
    arrival.continued_share = program.continued_share
    arrival.program_streams = program.streamed_share
    arrival.size_change = program.size.change(features.prompt_tokens)
    arrival.size_spread = program.size.spread


def _see_history(
    arrival: Arrival, served: Served, earlier: Served, added: int, features: Features, marks: Marks, now_s: float
) -> None:
    """`added`: messages since the call that this one goes on from."""
    arrival.continues = True
    arrival.hops = served.hops
    arrival.streamed_hops = served.streamed_hops
    arrival.since_continued_s = _since(earlier.ended_s, now_s)
    arrival.pause_s, arrival.longest_pause_s = served.pause_s, served.longest_pause_s
    arrival.grown_tokens = max(0, features.prompt_tokens - earlier.prompt_tokens)
    arrival.tools_dropped = earlier.tools and not features.tools
    if added:
        roles = marks.roles[-added:]
        arrival.appended_tool_results = roles.count("t")
        arrival.appended_user = roles.count("u")
        arrival.appended_assistant = roles.count("a")
        newest = zip(roles, marks.sizes[-added:], strict=True)
        arrival.appended_chars = sum([chars for role, chars in newest if role != "a"])


def _first(*known: Typical) -> float | None:
    """What is usual by the first that knows."""
    for each in known:
        if (value := each.value) is not None:
            return value
    return None


def _since(then_s: float | None, now_s: float) -> float | None:
    return None if then_s is None else now_s - then_s

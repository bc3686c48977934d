"""What the client of a call did before, as entries of the vector (see `classifiers.vector`).

A job sends row after row from one template, as fast as it is answered or many at once. A person reads an answer before
the next question. An agent goes on from what was just answered, at once, with the result of a tool. A value that is
not known yet is 0 and has a flag beside it that says so.
"""

from __future__ import annotations

from typing import Final

from classifiers.arrival import Arrival

Entry = tuple[str, str, str, float]
"""Name, words, lean, trust."""

_AT_ONCE_S: Final = 1.0
"""A program goes on sooner than this; nobody reads and types as fast."""
_READING_S: Final = 4.0
_LONGEST_S: Final = 600.0

ENTRIES: Final[tuple[Entry, ...]] = (
    ("calls_10s", "calls of this client in the last 10 s", "-*+", 1),
    ("calls_60s", "calls of this client in the last minute", "-*+", 1),
    ("program_calls", "calls of this program", "-*+", 1),
    ("template_calls", "calls from this template", "--+", 1),
    ("template_60s", "calls from this template in the last minute", "--+", 1),
    ("template_share", "share of the program's calls that are from this template", "--+", 1),
    ("start_share", "share of the program's calls that begin or end alike", "-*+", 1),
    ("conversation_60s", "calls of this conversation in the last minute", "*+-", 1),
    ("parallel", "calls of this client open now", "--+", 1),
    ("parallel_program", "of these, of this program", "--+", 1),
    ("parallel_template", "of these, from this template", "--+", 1),
    ("continues", "it goes on from an answer", "++-", 1.5),
    ("hops", "answers in its history", "*+-", 1),
    ("continued_share", "share of the program's calls that go on from an answer", "++-", 1.5),
    ("goes_on_at_once", "it goes on within a second", "-+-", 2),
    ("goes_on_later", "it goes on after seconds, as a reader does", "+--", 2),
    ("pause_s", "seconds between an answer and what goes on from it", "+--", 1),
    ("usual_pause_s", "what such pauses are for the program", "+--", 1),
    ("next_at_once", "a call of the program within a second of an answer", "-++", 1.5),
    ("next_later", "calls of the program come seconds after an answer", "+--", 1.5),
    ("repeats", "times this very call came before", "--+", 1),
    ("grown_tokens", "tokens that the conversation grew by", "-+*", 1),
    ("appended_results", "results of tools since the last answer", "-+-", 2),
    ("appended_user", "messages of the user since the last answer", "+*-", 1),
    ("appended_chars", "characters since the last answer", "-+*", 1),
    ("streamed_hops", "streams in its history", "+*-", 1),
    ("tools_dropped", "tools were offered before, and are not now", "*+-", 1),
    ("program_streams", "share of the program's calls that stream", "+*-", 1),
    ("streams_some", "the program streams some calls and not others", "*+-", 1),
    ("left_early", "a stream was left before its first token", "+--", 1),
    ("left_share", "share of streams that were left", "+--", 1.5),
    ("size_spread", "how much the prompts of the program vary", "++-", 1),
    ("grows", "the prompt is larger than is usual for the program", "*+-", 1),
)

LOGARITHMS: Final = frozenset(
    {
        "calls_10s",
        "calls_60s",
        "program_calls",
        "template_calls",
        "template_60s",
        "conversation_60s",
        "parallel",
        "parallel_program",
        "parallel_template",
        "hops",
        "pause_s",
        "usual_pause_s",
        "repeats",
        "grown_tokens",
        "appended_chars",
        "appended_results",
        "streamed_hops",
    }
)

NOBODY: Final = (0.0,) * len(ENTRIES)
"""Where nothing is known of the client."""


def behaviour(arrival: Arrival | None) -> tuple[float, ...]:
    """The entries, in the order of `ENTRIES`."""
    if arrival is None or not arrival.calls:
        return NOBODY
    pause_s, gap_s = arrival.since_continued_s, arrival.since_program_answer_s
    return (
        arrival.calls_10s,
        arrival.calls_60s,
        arrival.program_calls,
        arrival.template_calls,
        arrival.same_template_60s,
        arrival.template_share,
        arrival.start_share,
        arrival.same_opening_60s,
        arrival.parallel,
        arrival.parallel_program,
        arrival.parallel_template,
        arrival.continues,
        arrival.hops,
        arrival.continued_share,
        pause_s is not None and pause_s < _AT_ONCE_S,
        pause_s is not None and pause_s >= _READING_S,
        _seconds(arrival.pause_s),
        _seconds(arrival.usual_pause_s),
        gap_s is not None and gap_s < _AT_ONCE_S and not arrival.continues,
        arrival.usual_program_answer_gap_s is not None and arrival.usual_program_answer_gap_s >= _READING_S,
        arrival.repeats,
        arrival.grown_tokens,
        arrival.appended_tool_results,
        arrival.appended_user > 0,
        arrival.appended_chars,
        arrival.streamed_hops,
        arrival.tools_dropped,
        arrival.program_streams,
        0.1 < arrival.program_streams < 0.9,
        arrival.left_early,
        arrival.left_share,
        arrival.size_spread,
        max(0.0, min(arrival.size_change, 8.0)),
    )


def _seconds(value_s: float | None) -> float:
    return 0.0 if value_s is None else min(value_s, _LONGEST_S)

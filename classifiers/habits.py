"""What a client did before as entries of a vector: bounded, each with a meaning of its own that a sum can use.

`Arrival` holds seconds and counts, of which half say nothing without the other half (a gap of 0 s is next to nothing,
no gap is nothing known). Here each entry is a yes, a share, or a logarithm of an amount that is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log2
from typing import Final

from classifiers.api import Features
from classifiers.arrival import Arrival

_LONGEST_S: Final = 3600.0


def _log(value: float) -> float:
    return log2(1.0 + value)


def _time(seconds: float | None) -> float:
    """0 for an hour and where nothing is known, 12 for no time at all: the closer, the more."""
    return 0.0 if seconds is None else max(0.0, log2(_LONGEST_S / max(seconds, 0.9)))


def _under(seconds: float | None, limit_s: float) -> bool:
    return seconds is not None and seconds < limit_s


def _over(seconds: float | None, limit_s: float) -> bool:
    return seconds is not None and seconds >= limit_s


WORDS: Final[Mapping[str, str]] = {
    "client_known": "the client has called before",
    "client_calls": "calls of the client in the last minute",
    "client_burst": "calls of the client in the last second",
    "program_known": "the program has called before",
    "program_calls": "calls of the same program",
    "template_share": "the program's last calls begin or end alike",
    "template_start_share": "the program's last calls begin or end with the same words",
    "template_none": "the program's last calls have nothing in common with this one",
    "template_many": "calls with the same template",
    "opening_again": "the conversation's beginning was sent in the last minute",
    "parallel": "calls of the client that are open",
    "parallel_program": "calls of the same program that are open",
    "parallel_template": "calls with the same template that are open",
    "alone": "nothing else of the client is open",
    "loop_closed": "it came right after an answer to the same program",
    "loop_soon": "it came within seconds of an answer to the same program",
    "loop_client": "it came right after an answer to the client",
    "gap": "how soon it came after the program's last call",
    "gap_usual": "how soon the program's calls follow each other",
    "gap_even": "the program calls like clockwork",
    "answer_gap_short": "the program usually calls right after an answer",
    "answer_gap_long": "the program usually waits after an answer",
    "continues": "it goes on from a call that was served",
    "continues_fast": "it went on within 3 s of the answer",
    "continues_slow": "it went on 15 s or more after the answer",
    "continues_tools": "tool results were added since the answer",
    "continues_user": "one message of a user was added since the answer",
    "continues_short": "a short message of a user was added since the answer",
    "continues_text": "its one text has grown",
    "hops": "calls so far in its history",
    "history_fast": "its history went on within seconds each time",
    "history_slow": "somebody took time in its history",
    "pauses_fast": "conversations with the program go on within seconds",
    "pauses_slow": "conversations with the program have pauses",
    "continued_share": "the program's calls go on from earlier ones",
    "repeated": "the same call was sent before",
    "left_early": "the last stream was left before its first token",
    "left_share": "streams of the client that were left",
    "read_streams": "the client reads its streams to the end",
    "output_short": "answers of this kind were short",
    "output_tokens": "tokens of earlier answers of this kind",
    "size_change": "the prompt has another size than usual",
    "size_even": "prompts of the program have one size",
    "stream_new": "it streams, other calls in its history did not",
    "stream_sometimes": "it streams, other calls of the program do not",
    "stream_not_now": "it does not stream, other calls of the program do",
    "tools_dropped": "it offers no tools, the call before it did",
}
NAMES: Final = tuple(WORDS)
NOBODY: Final = (0.0,) * len(NAMES)


def entries(features: Features) -> tuple[float, ...]:
    """In the order of `NAMES`; all 0 for the first call of a client and where nobody keeps count."""
    arrival = features.arrival
    if arrival is None or not arrival.calls:
        return NOBODY
    return (*_rate(arrival), *_loop(arrival), *_history(arrival), *_answers(features, arrival))


def _rate(arrival: Arrival) -> tuple[float, ...]:
    seen = arrival.program_calls > 0
    return (
        1.0,
        _log(arrival.calls_60s),
        _log(arrival.calls_1s),
        seen,
        _log(arrival.program_calls),
        arrival.template_share,
        arrival.start_share,
        seen and not arrival.start_share,
        _log(arrival.template_calls),
        arrival.same_opening_60s > 0,
        _log(arrival.parallel),
        _log(arrival.parallel_program),
        _log(arrival.parallel_template),
        arrival.parallel == 0,
    )


def _loop(arrival: Arrival) -> tuple[float, ...]:
    return (
        _under(arrival.since_program_answer_s, 0.5),
        _under(arrival.since_program_answer_s, 4.0),
        _under(arrival.since_answer_s, 0.5),
        _time(arrival.since_program_s),
        _time(arrival.usual_gap_s),
        arrival.program_calls > 3 and arrival.gap_spread < 0.25,
        _under(arrival.usual_program_answer_gap_s, 2.0),
        _over(arrival.usual_program_answer_gap_s, 10.0),
    )


def _history(arrival: Arrival) -> tuple[float, ...]:
    spoken = arrival.appended_user == 1 and not arrival.appended_tool_results
    return (
        arrival.continues,
        _under(arrival.since_continued_s, 3.0),
        _over(arrival.since_continued_s, 15.0),
        arrival.appended_tool_results > 0,
        spoken,
        spoken and arrival.appended_chars < 300,
        arrival.continues and not (spoken or arrival.appended_tool_results),
        _log(arrival.hops),
        _under(arrival.longest_pause_s, 5.0),
        _over(arrival.longest_pause_s, 15.0),
        _under(arrival.usual_pause_s, 3.0),
        _over(arrival.usual_pause_s, 10.0),
        arrival.continued_share,
        arrival.repeats > 0,
    )


def _answers(features: Features, arrival: Arrival) -> tuple[float, ...]:
    tokens = arrival.output_tokens
    return (
        arrival.left_early,
        arrival.left_share,
        arrival.streams > 0 and not arrival.left_share,
        tokens is not None and tokens < 24,
        0.0 if tokens is None else _log(tokens),
        abs(arrival.size_change),
        arrival.program_calls > 3 and arrival.size_spread < 0.25,
        features.stream and arrival.streamed_hops < arrival.hops,
        features.stream and arrival.program_calls > 0 and arrival.program_streams < 1.0,
        not features.stream and arrival.program_streams > 0.0,
        arrival.tools_dropped,
    )

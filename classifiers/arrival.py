"""What was known of a client when its call arrived, as plain values. The router keeps the history; this is its view."""

from __future__ import annotations

from dataclasses import dataclass

from classifiers.carry import LogOdds


@dataclass(slots=True, kw_only=True)
class Arrival:
    """The calls of one client before this one. Holds no text and nothing that names the client.

    Made for each call, and not changed once it has been made; frozen, making it would take three times as long.

    `Arrival()` says that nothing is known: the first call of a client. Counts leave this call out. A program is what
    calls with the same system text and the same tools seem to come from. A template is how its newest messages begin or
    end, whichever of the two was seen more often.
    """

    calls: int = 0
    """Of this client, as long as it is remembered."""
    calls_1s: int = 0
    calls_10s: int = 0
    calls_60s: int = 0
    """Exact up to 64 calls in the time, beyond that close."""
    same_system_60s: int = 0
    """Of the calls of the last minute, those with the same system text; without one, those without one."""
    same_tools_60s: int = 0
    """Those with the same tools; 0 for a call without tools."""
    same_template_60s: int = 0
    same_opening_60s: int = 0
    """Those of the same conversation: system text, tools and first message of the user."""
    parallel: int = 0
    """Calls of this client that are open now, in line or on a backend."""
    parallel_program: int = 0
    """Of these, those of the same program."""
    parallel_template: int = 0
    since_arrival_s: float | None = None
    """Since the client's last call came; None: there was none."""
    since_answer_s: float | None = None
    """Since the client's last answer ended, whichever call it was for; None: none has."""

    program_calls: int = 0
    """Of this program, as long as it is remembered."""
    template_calls: int = 0
    template_share: float = 0.0
    """Of the last 16 calls of the program, those whose newest message begins or ends with the same 64 characters."""
    start_share: float = 0.0
    """The same of 16 characters: a template may be that short."""
    since_program_answer_s: float | None = None
    """Since a call of the program was answered: next to nothing where a loop sends row after row."""
    usual_gap_s: float | None = None
    """From one call of the program to the next."""
    gap_spread: float = 0.0
    """By what power of two such gaps vary; 0: a clock sends them, or too few are known."""
    usual_program_answer_gap_s: float | None = None
    usual_pause_s: float | None = None
    """From an answer to the call that goes on from it, in any conversation with the program."""
    continued_share: float = 0.0
    """Of its last 16 calls, those that went on from an earlier one."""

    repeats: int = 0
    """Times that this very call, its whole history, was sent before: samples, or tries."""
    continues: bool = False
    """It begins with a history that was served, and adds to it."""
    hops: int = 0
    """Calls that were served in that history."""
    since_continued_s: float | None = None
    """Since the answer ended that this call goes on from; None where it continues none, or the answer still runs."""
    pause_s: float | None = None
    """What such gaps were in this history so far, this one included: their geometric mean."""
    longest_pause_s: float | None = None
    grown_tokens: int = 0
    """What the call has more than the one it continues, the answer included."""
    appended_tool_results: int = 0
    """Messages since then, by who speaks."""
    appended_user: int = 0
    appended_assistant: int = 0
    appended_chars: int = 0
    """Characters of these messages but for the assistant's."""

    streamed_hops: int = 0
    """Calls of that history that asked for a stream: a program may stream only what somebody reads."""
    tools_dropped: bool = False
    """The call it continues offered tools, and this one does not: the end of a tool loop."""

    program_streams: float = 0.0
    """Of the last 16 calls of the program, those that asked for a stream: 0..1."""
    streams: int = 0
    """Streams of this client that have ended, of the last 16."""
    read_last: bool | None = None
    """Whether the last of them was read to its end; None: there was none."""
    left_early: bool = False
    """The last of them was left before its first token."""
    left_share: float = 0.0
    """Of these streams, those that were left before their end: 0..1."""
    output_tokens: float | None = None
    """Typical for this template, else for the program, else for the client; None: no output was counted yet."""
    size_change: float = 0.0
    """Base-2 logarithm of the prompt's tokens over what is usual for the program; 0 where it is new."""
    size_spread: float = 0.0
    """By what power of two the prompts of the program vary."""
    said: LogOdds | None = None
    """What the model said lately of calls of the program that stream, or do not, as this one; where it is new, of such
    calls of the client. None: nothing yet."""

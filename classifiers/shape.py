"""What a call looks like, as numbers: read once, at the borders of its text, and never kept.

What is counted has a reason that a person would accept: who asks (a person, an agent, a job), what for (talk, the next
action, a label, the rest of a line), and in which form the answer is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from classifiers.marks import joined
from classifiers.memo import Memo
from classifiers.text import EMPTY, Text, text_of
from classifiers.turns import ONE_SIDED, Turns, turns_of
from classifiers.words import GROUP, NONE, TASKS, count, first_word

_BORDER_CHARS: Final = 400
"""Instructions stand at the borders of a text, within about this much."""
_STOPS: Final = 8
_STOP_CHARS: Final = 256
"""Of each: no answer that anybody waits for ends with more."""
_YOU: Final = (
    "you ",
    "you'",
    "your ",
    "act as",
    "imagine",
    "pretend",
    "du bist",
    "tu es",
    "eres ",
    "sei ",
    "你是",
    "ты ",
)
"""How the description of a character begins."""


@dataclass(slots=True, unsafe_hash=True)
class Envelope:
    """The fields around the text. Like the other parts: made for each call, and never changed."""

    temperature: float = -1.0
    """-1: the caller leaves it to the server."""
    seed: bool = False
    stop_line: bool = False
    """The answer ends with the line or the paragraph."""
    stop_label: bool = False
    """It ends where the next turn of a template would begin: `Q:`."""
    stop_agent: bool = False
    """It ends where the result of an action belongs."""
    stop_code: bool = False
    stop_token: bool = False
    """It ends at special tokens of a model."""
    logprobs: bool = False
    forced_tool: bool = False
    """The one tool to call is named: the answer is a record."""
    tool_choice: bool = False
    usage_asked: bool = False
    suffix: bool = False
    """Text stands after the place where the answer goes."""


_BARE: Final = Envelope()
_AGENT, _CODING = GROUP["agent"], GROUP["coding"]


@dataclass(slots=True)
class Shape:
    """Numbers about the text of one call and the fields around it. Holds no text."""

    envelope: Envelope = _BARE
    text: Text = EMPTY
    turns: Turns = ONE_SIDED
    system_chars: int = 0
    system_you: bool = False
    """The system text says who the assistant is."""
    system_task: bool = False
    """It begins with an order."""
    system_words: Sequence[int] = NONE
    """Words of each group at both ends of the system text (see `classifiers.words`)."""
    text_words: Sequence[int] = NONE
    """At both ends of the newest message."""


class _System(NamedTuple):
    """What the borders of a system text tell."""

    you: bool = False
    task: bool = False
    words: Sequence[int] = NONE


_SILENT: Final = _System()
_MET: Final[Memo[_System]] = Memo()
"""By the borders: a program sends the same system text with each call, and its words are what takes time."""


def shape_of(body: Mapping[str, Any], *, system: Sequence[str], last: Sequence[str]) -> Shape:
    """`body` is the parsed request; the texts are in the order of the conversation, by their place in it."""
    system_text, text = joined(system), joined(last)
    said = _system_of(_borders(system_text)) if system_text else _SILENT
    return Shape(
        _envelope(body),
        text_of(text),
        turns_of(body.get("messages")),
        len(system_text),
        said.you,
        said.task,
        said.words,
        count(_borders(text)) if text else NONE,
    )


def _system_of(borders: str) -> _System:
    key = hash(borders)
    found = _MET.get(key)
    if found is None:
        you = borders[:40].lower().lstrip("# \n").startswith(_YOU)
        _MET.keep(key, found := _System(you, first_word(borders) in TASKS, count(borders)))
    return found


def _borders(text: str) -> str:
    return text if len(text) <= 2 * _BORDER_CHARS else f"{text[:_BORDER_CHARS]}\n{text[-_BORDER_CHARS:]}"


_FIELDS: Final = frozenset(
    {"logprobs", "seed", "stop", "stream_options", "suffix", "temperature", "tool_choice"}  # read by `_envelope`
)


def fields_of(body: Mapping[str, Any]) -> int:
    """A hash that tells apart what differs in an `Envelope`, and takes less time than making one; 0: it is bare."""
    if _FIELDS.isdisjoint(body):
        return 0
    field = body.get
    temperature, choice = field("temperature"), field("tool_choice")
    return hash(
        (
            temperature if isinstance(temperature, (int, float)) else None,
            field("seed") is not None,
            tuple(_stops(field("stop"))),
            bool(field("logprobs")),
            choice if choice is None or isinstance(choice, str) else True,
            bool(field("stream_options")),
            isinstance(field("suffix"), str),
        )
    )


def _envelope(body: Mapping[str, Any]) -> Envelope:
    if _FIELDS.isdisjoint(body):
        return _BARE
    field = body.get
    temperature, choice, stop = field("temperature"), field("tool_choice"), field("stop")
    envelope = Envelope(
        float(max(-1.0, min(temperature, 10.0))) if isinstance(temperature, (int, float)) else -1.0,
        field("seed") is not None,
        logprobs=bool(field("logprobs")),
        forced_tool=choice is not None and (isinstance(choice, dict) or choice in ("required", "any")),
        tool_choice=choice is not None,
        usage_asked=bool(field("stream_options")),
        suffix=isinstance(field("suffix"), str),
    )
    if stop is not None:
        _take_stops(envelope, _stops(stop))
    return envelope


def _take_stops(envelope: Envelope, stops: list[str]) -> None:
    joined = "\n\n".join(stops)
    words = count(joined)
    envelope.stop_line = any([not stop.strip() for stop in stops])
    envelope.stop_label = any([stop.rstrip().endswith(":") for stop in stops])
    envelope.stop_agent = words[_AGENT] > 0
    envelope.stop_code = words[_CODING] > 0 or "```" in joined or "\ndef" in joined
    envelope.stop_token = "<" in joined or "[" in joined


def _stops(stop: object) -> list[str]:
    if isinstance(stop, str):
        return [stop[:_STOP_CHARS]]
    return [each[:_STOP_CHARS] for each in stop[:_STOPS] if isinstance(each, str)] if isinstance(stop, list) else []

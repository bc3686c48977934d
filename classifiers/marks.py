"""By what related calls are recognised: hashes of what they share. Text never leaves this module.

Two kinds of hashes. Those that may be logged (`system`, `tools`, `head`) are keyed BLAKE2b, the same in every process.
The others (borders, places at which a history may have ended when it was served, ids of tool calls, and how a message
ends) are many per call and looked up in this process only: Python's own keyed hash serves for them. Nothing but
equality is ever asked of either, so a replay gives the same answers in every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from classifiers.keys import key_of_system, without_numbers

KEPT_MESSAGES: Final = 24
"""Newest messages of a call that are looked at: a client appends few at a time."""
KEPT_TOOL_CALLS: Final = 16

_LONG_CHARS: Final = 64
_SHORT_CHARS: Final = 16
_SYSTEM_CHARS: Final = 256
_WINDOW_CHARS: Final = 96
"""Characters before a border that are hashed with its position."""
_GROWING_CHARS: Final = 256
"""A shorter text is not taken for a scratchpad that grows."""
_LINES: Final = 8
_CUES: Final = 6
_CUE_CHARS: Final = 32
_CUE_START_CHARS: Final = 6
_CUE_ENDS: Final = (":", ">", "]", "$", "#")

_KEY: Final = b"twolane"

Message = tuple[str, Sequence[str]]
"""One of the newest messages of a call: a letter for who said it (`s`ystem, `u`ser, `a`ssistant, `t`ool result), and
its texts."""


@dataclass(slots=True, kw_only=True)
class Marks:
    """Hashes of parts of one call; 0 where that part is missing. Made for each call, and never changed."""

    system: int = 0
    """Of how the system text begins, numbers left out: a date in it does not make it another one."""
    tools: int = 0
    fields: int = 0
    """Of the fields around the text that the model looks at."""
    head: int = 0
    """Of the first 64 characters of the newest message, numbers left out: an instruction before the data."""
    tail: int = 0
    """The same of its last 64 characters: an instruction behind the data."""
    start: int = 0
    """The same of its first 16 characters: a template with little text around the data."""
    end: int = 0
    opening: int = 0
    """Of system text (numbers left out), tools and the first message of the user: what each turn of a conversation
    repeats."""
    roles: str = ""
    """Of the newest messages, oldest first, a letter each (see `Message`)."""
    sizes: tuple[int, ...] = ()
    """Characters of these messages."""
    borders: tuple[int, ...] = ()
    """After each of these messages, oldest first; the last one stands for the whole call."""
    lines: tuple[int, ...] = ()
    """Borders inside one text that may have grown since it was served: ends of lines, newest first."""
    ends: tuple[int, ...] = ()
    """The borders at which a later, longer text would show that it began with this one."""
    tool_calls: tuple[int, ...] = ()
    """Of the ids of tool calls that the call echoes, newest last."""


def marks_of(
    *,
    system: Sequence[str],
    tools: str,
    last: Sequence[str],
    opening_key: str,
    opening: Sequence[str],
    messages: Sequence[Message],
    tool_calls: Sequence[str],
    fields: int = 0,
) -> Marks:
    """`tools` as JSON, `last` the texts of the newest message or of a bare prompt, `opening_key` a hash of system text,
    tools and `opening`, which are the first words of the user.

    `messages` are the newest ones, at most one more than `KEPT_MESSAGES`; none for a bare prompt.
    """
    text = joined(last)
    # Cut twice: what is left has the same length whether a number had one digit or ten.
    head = without_numbers(text[: 2 * _LONG_CHARS])[:_LONG_CHARS]
    tail = without_numbers(text[-2 * _LONG_CHARS :])[-_LONG_CHARS:]
    roles = "".join([role for role, _ in messages])
    # A prompt without messages, or a chat in which nobody has answered yet: its history, if any, is in one text.
    growing = len(text) >= _GROWING_CHARS and "a" not in roles and "t" not in roles
    ends = _end_borders(text) if growing else ()
    sizes, borders = _of_messages(messages) if messages else ((), ())
    return Marks(
        system=_hash(without_numbers(_beginning(system)[:_SYSTEM_CHARS])) if system else 0,
        tools=_hash(f"{len(tools)}{tools[:_SYSTEM_CHARS]}{tools[-_SYSTEM_CHARS:]}") if tools else 0,
        fields=fields,
        head=_hash(head),
        tail=hash(tail),
        start=hash(head[:_SHORT_CHARS]),
        end=hash(tail[-_SHORT_CHARS:]),
        opening=hash((opening_key, joined(opening))) if opening_key else 0,
        roles=roles[-KEPT_MESSAGES:],
        sizes=sizes,
        borders=borders,
        lines=_line_borders(text, ends) if growing else (),
        ends=ends,
        tool_calls=tuple(map(hash, tool_calls[-KEPT_TOOL_CALLS:])) if tool_calls else (),
    )


def joined(texts: Sequence[str]) -> str:
    """The texts of one message as one: parts are the same as the lines of a text."""
    return texts[0] if len(texts) == 1 else "\n".join(texts)


def _beginning(texts: Sequence[str]) -> str:
    """At least the characters by which a system text is known, if there are as many."""
    return texts[0] if len(texts[0]) >= _SYSTEM_CHARS else joined(texts)


def _hash(text: str) -> int:
    """63 bits, never 0 for a text that is there; 0 for none."""
    if not text:
        return 0
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=_KEY).digest()) >> 1 or 1


def _of_messages(messages: Sequence[Message]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Their sizes and borders.

    A border covers a message and the two before it, not its place: clients drop the oldest when a history gets long.
    It covers all of their text, since two tasks of one template may differ in the middle alone.
    """
    before, at = 0, 0
    sizes: list[int] = []
    borders: list[int] = []
    for role, texts in messages:
        text = texts[0] if len(texts) == 1 else joined(texts)
        border = hash((role, text if role != "s" else key_of_system(text)))
        sizes.append(len(text))
        borders.append(hash((before, at, border)))
        before, at = at, border
    return tuple(sizes[-KEPT_MESSAGES:]), tuple(borders[-KEPT_MESSAGES:])


def _line_borders(text: str, ends: tuple[int, ...]) -> tuple[int, ...]:
    """Ends of the last lines, and before that those of lines which are followed by the cue with which the text ends;
    but for `ends`.

    A scratchpad ends with the same cue (`Thought 3:`) each time it is sent, however long a result was written since.
    """
    position = _stripped(text, len(text))
    newline = text.rfind("\n", 0, position)
    if newline < 0:
        return ()
    cue = text[newline : newline + _CUE_START_CHARS]
    borders: list[int] = []
    for place in range(_LINES + _CUES):
        position = newline
        if newline and text[newline - 1].isspace():
            position = _stripped(text, newline)
        borders.append(hash((position, text[position - _WINDOW_CHARS if position > _WINDOW_CHARS else 0 : position])))
        newline = text.rfind("\n" if place < _LINES - 1 else cue, 0, position)
        if newline < 0:
            break
    return tuple([border for border in borders if border not in ends])


def _end_borders(text: str) -> tuple[int, ...]:
    """Its own end, and the end of the line before where the last line is a cue alone, which text will be added to."""
    end = _stripped(text, len(text))
    newline = text.rfind("\n", max(0, end - _CUE_CHARS), end)
    if newline < 0 or not text.endswith(_CUE_ENDS, 0, end):
        return (_border(text, end),)
    return (_border(text, end), _border(text, _stripped(text, newline)))


def _stripped(text: str, end: int) -> int:
    """Where the text up to `end` ends without white space; looks at 64 characters at most."""
    if end and not text[end - 1].isspace():
        return end
    return end - 64 + len(text[end - 64 : end].rstrip()) if end > 64 else len(text[:end].rstrip())


def _border(text: str, position: int) -> int:
    return hash((position, text[max(0, position - _WINDOW_CHARS) : position]))

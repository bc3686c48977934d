"""By what related calls are recognised: hashes of what they share. Text never leaves this module.

Two kinds of hashes. Those of parts that many calls repeat (`system`, `tools`, `head`, `tail`) are keyed BLAKE2b, the
same in every process. The others (borders, places at which a history may have ended when it was served, ids of tool
calls, and short starts and ends) are many per call and looked up in this process only: Python's own keyed hash serves
for them. Nothing but equality is ever asked of either, so a replay gives the same answers in every process.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

KEPT_MESSAGES: Final = 24
"""Newest messages of a call that are looked at: a client appends few at a time."""
KEPT_TOOL_CALLS: Final = 16

_LONG_CHARS: Final = 64
_SHORT_CHARS: Final = 16
_SYSTEM_CHARS: Final = 256
_END_CHARS: Final = 48
_WINDOW_CHARS: Final = 96
"""Characters before a border that are hashed with its position."""
_GROWING_CHARS: Final = 256
"""A shorter text is not taken for a scratchpad that grows."""
_LINES: Final = 8
_CUES: Final = 6
_CUE_CHARS: Final = 32
_CUE_START_CHARS: Final = 6
_CUE_ENDS: Final = (":", ">", "]", "$", "#")

_DIGITS = re.compile("[0-9]+")
_KEY: Final = b"twolane"


class Message(NamedTuple):
    """One of the newest messages of a call."""

    role: str
    """One letter: `s`ystem, `u`ser, `a`ssistant, `t`ool result."""
    chars: int
    border: int
    """Hash of its role, its length and both ends of its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Hashes of parts of one call; 0 where that part is missing."""

    system: int = 0
    """Of how the system text begins, numbers left out: a date in it does not make it another one."""
    tools: int = 0
    head: int = 0
    """Of the first 64 characters of the newest message, numbers left out: an instruction before the data."""
    tail: int = 0
    """The same of its last 64 characters: an instruction behind the data."""
    start: int = 0
    """The same of its first 16 characters: a template with little text around the data."""
    end: int = 0
    opening: int = 0
    """Of system text, tools and the first message of the user: what each turn of a conversation repeats."""
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


def message_of(role: str, texts: Sequence[str]) -> Message:
    """`texts` are those of one message; a text that came as one part counts like one that came whole."""
    if len(texts) == 1:
        text = texts[0]
        chars = len(text)
        return Message(role, chars, hash((role, chars, text[:_END_CHARS], text[-_END_CHARS:])))
    chars = sum(map(len, texts))
    few = (*texts[:2], *texts[-2:])
    return Message(role, chars, hash((role, chars, *[part for text in few for part in (text[:16], text[-16:])])))


def marks_of(
    *,
    system: Sequence[str],
    tools: str,
    last: Sequence[str],
    opening_key: str,
    messages: Sequence[Message],
    tool_calls: Sequence[str],
    key: bytes = _KEY,
) -> Marks:
    """`tools` as JSON, `last` the texts of the newest message or of a bare prompt, `opening_key` in hexadecimal digits.

    `messages` are the newest ones, at most one more than `KEPT_MESSAGES`; none for a bare prompt.
    """
    first, final = (last[0], last[-1]) if last else ("", "")
    # Cut twice: what is left has the same length whether a number had one digit or ten.
    head = _DIGITS.sub("0", first[: 2 * _LONG_CHARS])[:_LONG_CHARS]
    tail = _DIGITS.sub("0", final[-2 * _LONG_CHARS :])[-_LONG_CHARS:]
    growing = _may_grow(final, messages)
    ends = _end_borders(final) if growing else ()
    return Marks(
        system=_hash(_DIGITS.sub("0", system[0][:_SYSTEM_CHARS]), key) if system else 0,
        tools=_hash(f"{len(tools)}{tools[:_SYSTEM_CHARS]}{tools[-_SYSTEM_CHARS:]}", key) if tools else 0,
        head=_hash(head, key),
        tail=_hash(tail, key),
        start=hash(head[:_SHORT_CHARS]),
        end=hash(tail[-_SHORT_CHARS:]),
        opening=int(opening_key[:15], 16) if opening_key else 0,
        roles="".join([role for role, _, _ in messages[-KEPT_MESSAGES:]]),
        sizes=tuple([chars for _, chars, _ in messages[-KEPT_MESSAGES:]]),
        borders=_borders(messages),
        lines=tuple([line for line in _line_borders(final) if line not in ends]) if growing else (),
        ends=ends,
        tool_calls=tuple([hash(id_) for id_ in tool_calls[-KEPT_TOOL_CALLS:]]),
    )


def _hash(text: str, key: bytes) -> int:
    """63 bits, never 0 for a text that is there; 0 for none."""
    if not text:
        return 0
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()) >> 1 or 1


def _borders(messages: Sequence[Message]) -> tuple[int, ...]:
    """Each covers a message and the two before it, not its place: clients drop the oldest when a history gets long."""
    if not messages:
        return ()
    before, at = 0, 0
    borders: list[int] = []
    for _, _, border in messages:
        borders.append(hash((before, at, border)))
        before, at = at, border
    return tuple(borders[-KEPT_MESSAGES:])


def _may_grow(text: str, messages: Sequence[Message]) -> bool:
    """A prompt without messages, or a chat in which nobody has answered yet: its history, if any, is in one text."""
    return len(text) >= _GROWING_CHARS and all(message.role in "su" for message in messages)


def _line_borders(text: str) -> tuple[int, ...]:
    """Ends of the last lines, and before that those of lines which are followed by the cue with which the text ends.

    A scratchpad ends with the same cue (`Thought 3:`) each time it is sent, however long a result was written since.
    """
    position = _stripped(text, len(text))
    cue = ""
    borders: list[int] = []
    for _ in range(_LINES):
        newline = text.rfind("\n", 0, position)
        if newline < 0:
            return tuple(borders)
        cue = cue or text[newline : newline + _CUE_START_CHARS]
        position = _stripped(text, newline)
        borders.append(_border(text, position))
    for _ in range(_CUES):
        newline = text.rfind(cue, 0, position)
        if newline < 0:
            break
        position = _stripped(text, newline)
        borders.append(_border(text, position))
    return tuple(borders)


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

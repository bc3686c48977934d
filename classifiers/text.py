"""The newest text of a call, measured at its borders: kinds of characters, lines, and how it opens and ends.

Everything here looks at a bounded number of characters, and only with string operations that run in C. What it finds is
made for each call and never changed; frozen, making it would take three times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from classifiers.words import GROUP, TASKS, count, first_word, words_of

WINDOW_CHARS: Final = 800
"""How much of each end of a text is looked at."""
_LINES: Final = 10
"""Lines at each end that are looked at one by one."""
_LABEL_CHARS: Final = 28
"""Longest name before a colon at the beginning of a line: of a field, a speaker, a step."""
_AFTER_NUMBER: Final = frozenset({". ", ") "})
"""What stands behind the number of a line, or the letter of a choice."""
_BLOCK_CHARS: Final = 600
"""Longest paragraph at a border that is taken for an instruction beside a document."""
_QUESTIONS: Final = words_of("question")
_WISHES: Final = words_of("wish")
_WORK: Final = words_of("label") | words_of("rewrite")
_FIM: Final = ("<fim", "<|fim", "<｜fim", "fim_prefix", "fim_suffix", "fim_middle")
"""Of the tokens that fill in the middle, what no other text has: `fim` is also a word, and a part of `wifimanager`."""
_INFILL: Final = ("<infill", "<|infill", "[infill]")
_AGENT, _EXAM, _RECORD = GROUP["agent"], GROUP["exam"], GROUP["record"]


def _kinds() -> bytes:
    """Maps a byte of UTF-8 to its kind: `0` digit, `;` brackets and the marks of code, `_` all others."""
    table = bytearray(b"_" * 256)
    for byte in b"0123456789":
        table[byte] = ord("0")
    for byte in b"{}[]()<>=;_\\/|#@$%^&*+~`":
        table[byte] = ord(";")
    return bytes(table)


_KINDS: Final = _kinds()
_CONTINUATION: Final = bytes(range(0x80, 0xC0))


@dataclass(slots=True, unsafe_hash=True)
class Marks:
    """Shares of the characters, 0..1."""

    digits: float = 0.0
    code: float = 0.0
    """Brackets and the marks that code is full of."""


_UNMARKED: Final = Marks()


def shares_in(text: str) -> tuple[float, float]:
    """Of digits, and of marks of code; `text` is short already, and empty text has neither."""
    if text.isascii():
        kinds = text.encode("ascii").translate(_KINDS)
    else:
        kinds = text.encode("utf-8", "replace").translate(_KINDS, _CONTINUATION)
    size = len(kinds) or 1
    return kinds.count(b"0") / size, kinds.count(b";") / size


def marks_in(text: str) -> Marks:
    """The same, by name."""
    return Marks(*shares_in(text))


@dataclass(slots=True, unsafe_hash=True)
class Lines:
    """How many of the lines at both ends begin in some way."""

    lines: int = 0
    indented: int = 0
    bullets: int = 0
    numbered: int = 0
    lettered: int = 0
    """`(A)`, `B.`: choices of a question."""
    labelled: int = 0
    """`Name:`, a field, a speaker or a step."""
    labels: int = 0
    """Different ones."""
    repeated: int = 0
    """Times of the label that comes most often."""
    agent_labels: int = 0
    """Words of the labels that speak of steps of an agent, of exams, of records."""
    exam_labels: int = 0
    record_labels: int = 0
    shouted: int = 0
    """Labels in capitals."""


_NO_LINES: Final = Lines()


@dataclass(slots=True, unsafe_hash=True)
class Text:
    """The newest text."""

    chars: int = 0
    marks: Marks = _UNMARKED
    lines: Lines = _NO_LINES
    delimiters: int = 0
    infill: bool = False
    opens_question: bool = False
    opens_wish: bool = False
    opens_task: bool = False
    opens_small: bool = False
    """With a small letter, as people write in haste, and as a text begins that was cut."""
    opens_mark: bool = False
    """With no letter: a bracket, a digit, a heading."""
    ends_question: bool = False
    ends_colon: bool = False
    ends_label: bool = False
    """The last line is short and ends with a colon or a full stop: the answer is to go on from a name or a number."""
    ends_line: bool = False
    """With a line end."""
    ends_word: bool = False
    ends_bracket: bool = False
    """Closed."""
    opening_chars: int = 0
    """Of the first paragraph; 0: there is but one, or it is long."""
    opening_task: bool = False
    opening_stop: bool = False
    """The first paragraph ends with a full stop or a colon."""
    closing_chars: int = 0
    """Of the last paragraph, or the last line; 0: there is no other."""
    closing_task: bool = False
    closing_question: bool = False


EMPTY: Final = Text()


def text_of(text: str) -> Text:
    """What `text` looks like; takes the same time for a page as for a megabyte."""
    size = len(text)
    if not size:
        return EMPTY
    head, tail = text[:WINDOW_CHARS], text[-WINDOW_CHARS:]
    window = text if size <= 2 * WINDOW_CHARS else head + tail
    lines = _lines_of(_border_lines(text, head, tail), window)
    head, tail = head.lstrip(), tail.rstrip()
    first = first_word(head)
    last = tail[-1:]
    opening, closing = _opening(head), _closing(tail)
    return Text(
        size,
        marks_in(window),
        lines,
        _delimiters(window),
        _has_cursor(window),
        first in _QUESTIONS,
        first in _WISHES,
        first in _WORK,
        head[:1].islower(),
        head != "" and not head[0].isalpha(),
        last in ("?", "？"),
        last == ":",
        last != ""
        and last in ":."
        and size - text.rfind("\n", -WINDOW_CHARS) <= _LABEL_CHARS + 1
        and size > _LABEL_CHARS,
        text[-1] == "\n",
        last.isalnum(),
        last != "" and last in ">])}",
        len(opening),
        first in TASKS and opening != "",
        opening != "" and opening[-1] in ":.",
        len(closing),
        closing != "" and first_word(closing) in TASKS,
        closing[-1:] == "?",
    )


def _delimiters(window: str) -> int:
    # One character is looked for ten times as fast as three, and most texts lack it.
    found = 0
    if "-" in window:
        found += window.count("---")
    if "#" in window:
        found += window.count("###")
    if "=" in window:
        found += window.count("===")
    if '"' in window:
        found += window.count('"""')
    return found


def _has_cursor(window: str) -> bool:
    """What editors write where the cursor is; the special tokens of code models."""
    # One part of a token is looked for first, or a capital: most texts lack it.
    if "fim" in window and any([token in window for token in _FIM]):
        return True
    if "infill" in window and any([token in window for token in _INFILL]):
        return True
    if "U" in window and "CURSOR" in window:
        return True
    return "<" in window and ("<PRE>" in window or "<SUF>" in window or "<MID>" in window)


def _opening(head: str) -> str:
    """The first of several paragraphs."""
    end = head.find("\n\n", 0, _BLOCK_CHARS)
    return head[:end].rstrip() if end > 0 else ""


def _closing(tail: str) -> str:
    """The last of several paragraphs, else the last of several lines."""
    start = tail.rfind("\n\n", -_BLOCK_CHARS)
    if start < 0:
        start = tail.rfind("\n", -_BLOCK_CHARS)
    return tail[start:].lstrip() if start >= 0 else ""


def _border_lines(text: str, head: str, tail: str) -> list[str]:
    if len(text) > 2 * WINDOW_CHARS:
        return head.split("\n", _LINES)[:_LINES] + tail.rsplit("\n", _LINES)[1:]
    lines = text.split("\n")
    return lines if len(lines) <= 2 * _LINES else lines[:_LINES] + lines[-_LINES:]


def _lines_of(lines: list[str], window: str) -> Lines:
    """`window` has all of them in it."""
    first_marks = "".join([line[:1] for line in lines])
    labels: list[str] = []
    if ":" in window:
        for line in lines:
            colon = line.find(":", 1, _LABEL_CHARS)
            if colon > 0 and line[0].isalpha() and line.count(" ", 0, colon) <= 3:
                labels.append(line[:colon])
    counted = _openings(first_marks, len(lines))
    if not labels and ". " not in window and ") " not in window:
        return Lines(*counted)
    return Lines(*counted, *_choices(lines), *(_labels(labels) if labels else ()))


def _choices(lines: list[str]) -> tuple[int, int]:
    """Lines that begin with a number, and with a letter, as lists and choices do."""
    numbered = lettered = 0
    for line in lines:
        if (line[1:3] in _AFTER_NUMBER or line[2:4] in _AFTER_NUMBER) and line.find(":", 1, _LABEL_CHARS) < 0:
            first = line[0]
            numbered += first.isdigit()
            lettered += first == "(" or first.isupper()
    return numbered, lettered


def _openings(first_marks: str, lines: int) -> tuple[int, int, int]:
    if first_marks.isalpha():
        return lines, 0, 0
    return (
        lines,
        first_marks.count(" ") + first_marks.count("\t"),
        first_marks.count("-") + first_marks.count("*") + first_marks.count("•"),
    )


def _labels(labels: list[str]) -> tuple[int, ...]:
    names = [label.rstrip(" 0123456789") for label in labels]
    kinds = set(names)
    words = count(" ".join(kinds))
    return (
        len(names),
        len(kinds),
        max(map(names.count, kinds)),
        words[_AGENT],
        words[_EXAM],
        words[_RECORD],
        sum([len(name) > 2 and name.isupper() for name in kinds]),
    )

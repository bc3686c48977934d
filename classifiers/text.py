"""The newest text of a call, measured at its borders: kinds of characters, lines, and how it opens and ends.

Everything here looks at a bounded number of characters, and only with string operations that run in C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from classifiers.words import GROUP, TASKS, count, first_word, opens_with

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
_INFILL: Final = ("fim", "<PRE>", "<SUF>", "<MID>", "CURSOR", "infill")
"""What editors write where the cursor is; parts of the special tokens of code models."""


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


@dataclass(frozen=True, slots=True)
class Marks:
    """Shares of the characters, 0..1."""

    digits: float = 0.0
    code: float = 0.0
    """Brackets and the marks that code is full of."""


_UNMARKED: Final = Marks()


def marks_in(text: str) -> Marks:
    """`text` is short already; empty text has no marks."""
    kinds = text.encode("utf-8", "replace").translate(_KINDS, b"" if text.isascii() else _CONTINUATION)
    size = len(kinds) or 1
    return Marks(kinds.count(b"0") / size, kinds.count(b";") / size)


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    """The last line is a name and a colon: the answer is to go on from there."""
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
    window = text if size <= 2 * WINDOW_CHARS else text[:WINDOW_CHARS] + text[-WINDOW_CHARS:]
    head, tail = text[:WINDOW_CHARS].lstrip(), text[-WINDOW_CHARS:].rstrip()
    first = first_word(head)
    last = tail[-1:]
    opening, closing = _opening(head), _closing(tail)
    return Text(
        size,
        marks_in(window),
        _lines_of(text),
        window.count("###") + window.count("---") + window.count("===") + window.count('"""'),
        any([mark in window for mark in _INFILL]),
        opens_with(first, "question"),
        opens_with(first, "wish"),
        opens_with(first, "label") or opens_with(first, "rewrite"),
        head[:1].islower(),
        bool(head) and not head[0].isalpha(),
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


def _border_lines(text: str) -> list[str]:
    if len(text) > 2 * WINDOW_CHARS:
        return text[:WINDOW_CHARS].split("\n", _LINES)[:_LINES] + text[-WINDOW_CHARS:].rsplit("\n", _LINES)[1:]
    lines = text.split("\n")
    return lines if len(lines) <= 2 * _LINES else lines[:_LINES] + lines[-_LINES:]


def _lines_of(text: str) -> Lines:
    lines = _border_lines(text)
    labels: list[str] = []
    numbered = lettered = 0
    for line in lines:
        colon = line.find(":", 1, _LABEL_CHARS)
        if colon > 0:
            labels.append(line[:colon])
        elif line[1:3] in _AFTER_NUMBER or line[2:4] in _AFTER_NUMBER:
            first = line[0]
            numbered += first.isdigit()
            lettered += first == "(" or first.isupper()
    first_marks = "".join([line[:1] for line in lines])
    return Lines(
        len(lines),
        first_marks.count(" ") + first_marks.count("\t"),
        first_marks.count("-") + first_marks.count("*") + first_marks.count("•"),
        numbered,
        lettered,
        *_labels([label for label in labels if label[0].isalpha() and label.count(" ") <= 3]),
    )


def _labels(labels: list[str]) -> tuple[int, ...]:
    if not labels:
        return ()
    names = [label.rstrip(" 0123456789") for label in labels]
    kinds = set(names)
    words = count(" ".join(kinds))
    return (
        len(names),
        len(kinds),
        max(map(names.count, kinds)),
        words[GROUP["agent"]],
        words[GROUP["exam"]],
        words[GROUP["record"]],
        sum([len(name) > 2 and name.isupper() for name in kinds]),
    )

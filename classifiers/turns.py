"""The turns of a conversation: who speaks, and whether they speak like people or like a program and its tools.

In a chat, answers are prose and a person asks; in the history of an agent, answers are commands and calls, and what
stands in the place of the user are their results. Only the newest turns are looked at, and only how they begin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from classifiers.text import shares_in

_NEWEST: Final = 6
"""Messages before the newest that are looked at."""
_ROLES: Final = 12
"""Newest messages whose roles are counted."""
_HEAD_CHARS: Final = 240
_TEXT_CHARS: Final = 64 * _HEAD_CHARS
_ALIKE_CHARS: Final = 8
"""Turns that begin with the same characters as another come from a template."""


@dataclass(slots=True, unsafe_hash=True)
class Turns:
    """The newest turns of a conversation in which an assistant has spoken; else nothing but zeros. Never changed."""

    answers: int = 0
    """Of the assistant, among the newest messages."""
    prose: float = 0.0
    """Share of these that are whole sentences, or long."""
    code: float = 0.0
    """Share of brackets and marks of code in them."""
    calls: int = 0
    """Answers that call tools."""
    silent: int = 0
    """Answers without text."""
    answers_alike: float = 0.0
    asked_chars: float = 0.0
    """Mean length of the user's turns after the first."""
    asked_marks: float = 0.0
    """Share of digits and marks of code in them."""
    asked_questions: float = 0.0
    """Share that ends with a question mark."""
    asked_alike: float = 0.0


ONE_SIDED: Final = Turns()


def turns_of(messages: object) -> Turns:
    """`messages` as they came; what is no list of objects with roles has no turns."""
    if not isinstance(messages, list) or len(messages) < 2:
        return ONE_SIDED
    answers = [m["role"] for m in messages[-_ROLES:] if isinstance(m, dict) and "role" in m].count("assistant")
    if not answers:
        return ONE_SIDED
    said: list[str] = []
    asked: list[str] = []
    calls = silent = 0
    newest = messages[-_NEWEST - 1 :]
    for message in newest:
        role = message.get("role") if isinstance(message, dict) else None
        if role != "assistant" and role != "user":
            continue
        content = message.get("content")
        text = content[:_TEXT_CHARS].strip() if isinstance(content, str) else _text_of_parts(content)
        if role == "user":
            asked.append(text)
            continue
        if message.get("tool_calls") or message.get("function_call"):
            calls += 1
        if text:
            said.append(text)
        else:
            silent += 1
    if len(newest) == len(messages):
        del asked[:1]
    return _measured(answers, calls, silent, said, asked)


def _measured(answers: int, calls: int, silent: int, said: list[str], asked: list[str]) -> Turns:
    prose = code = answers_alike = asked_chars = asked_marks = asked_questions = asked_alike = 0.0
    if said:
        heads = [text[:_HEAD_CHARS] for text in said]
        prose = sum([len(head) == _HEAD_CHARS or head[-1] in ".!?。！？" for head in heads]) / len(heads)
        code = shares_in("\n".join(heads))[1]
        answers_alike = _alike(heads)
    if asked:
        questions = [text[:_HEAD_CHARS] for text in asked]
        digits, marks = shares_in("\n".join(questions))
        asked_chars = sum(map(len, asked)) / len(asked)
        asked_marks = marks + digits
        asked_questions = sum([text[-1:] in ("?", "？") for text in questions]) / len(questions)
        asked_alike = _alike(questions)
    return Turns(
        answers, prose, code, calls, silent, answers_alike, asked_chars, asked_marks, asked_questions, asked_alike
    )


def _alike(texts: list[str]) -> float:
    """Share of the texts that begin like another one before them."""
    count = len(texts)
    return (count - len({text[:_ALIKE_CHARS] for text in texts})) / count if count > 1 else 0.0


def _text_of_parts(content: object) -> str:
    """The text of the first parts of a message that has parts."""
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content[:4] if isinstance(part, dict)]
    return "\n".join([part for part in parts if isinstance(part, str)])[:_TEXT_CHARS].strip()

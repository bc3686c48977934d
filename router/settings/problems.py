"""What is wrong in a settings file, where, and what to do about it.

A message never repeats a value of the file: the line and the key say where it is, and it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Keys and list positions from the top of the file to one value."""

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def dotted(path: Path) -> str:
    """`backends[0].url`; a key that could be misread is put in quotes: `models."qwen3:4b".desk`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            key = step if _PLAIN_KEY.fullmatch(step) else f'"{_one_line(step)}"'
            text += f".{key}" if text else key
    return text


def _one_line(text: str) -> str:
    """Text that cannot break a line or a terminal, and is not endless."""
    shown = text if len(text) <= 60 else f"{text[:60]}..."
    return "".join(char if char.isprintable() else "?" for char in shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing to mend. Lines and columns count from 1; line 0 is the file as a whole."""

    source: str
    line: int = 0
    column: int = 0
    key_path: str = ""
    message: str

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        return ": ".join(part for part in (place, self.key_path, self.message) if part)


class SettingsError(Exception):
    """Settings that cannot be used. As text: one line per problem, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))
        super().__init__("\n".join(map(str, self.problems)))


class KeyErrors(ValueError):
    """Raised by a validator whose complaints concern keys below its own value; `found` has path and message of each."""

    def __init__(self, found: Iterable[tuple[Path, str]]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(f"{dotted(path)}: {message}" for path, message in self.found))

"""By what the turns of one conversation are known where the caller does not say that they belong together.

Each turn repeats the ones before it, so what a conversation begins with stays: system text, tools, first message of the
user. An engine that has read them has them in its cache. Only a hash leaves this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from classifiers.marks import joined

_END_CHARS: Final = 256
"""Of a long text, both ends and the length tell it from others: hashing all of it would take longer than deciding."""

_KEY_DIGITS: Final = 24

LONG_PROMPT_CHARS: Final = 1024
"""A prompt without messages that grows from turn to turn is known by how it begins, if that is this much."""


def opening_key(model: str, system: Sequence[str], tools: str, opening: Sequence[str]) -> str:
    """A short hash; empty where nothing was said yet. The same for texts that came whole and as parts."""
    if not any(opening):
        return ""
    text = f"{_short(model)}\0{_short(joined(system))}\0{_short(tools)}\0{_short(joined(opening))}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_DIGITS]


def _short(text: str) -> str:
    if len(text) <= 2 * _END_CHARS:
        return text
    return f"{len(text)}\1{text[:_END_CHARS]}{text[-_END_CHARS:]}"

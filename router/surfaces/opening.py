"""By what the turns of one conversation are known where the caller does not say that they belong together.

Each turn repeats the ones before it, so what a conversation begins with stays: system text, tools, first message of the
user. An engine that has read them has them in its cache. Only a hash leaves this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from classifiers.keys import key_of, key_of_system, key_of_tools
from classifiers.marks import joined

_END_CHARS: Final = 8 * 1024
"""Of longer words of the user, length and ends are in the key, since hashing all takes longer than deciding. Histories
are told apart by Python's own hash of all of them beside it (`classifiers.marks`), which is quicker.
"""

LONG_PROMPT_CHARS: Final = 1024
"""A prompt without messages that grows from turn to turn is known by how it begins, if that is this much."""


def opening_key(model: str, system: Sequence[str], tools: str, opening: Sequence[str]) -> str:
    """A short hash; empty where nothing was said yet. The same for texts that came whole and as parts, and whatever
    numbers the system text has: those of what the user says tell one task of a template from the next.
    """
    if not any(opening):
        return ""
    said = joined(opening)
    if len(said) > 2 * _END_CHARS:
        said = f"{len(said)}\1{said[:_END_CHARS]}{said[-_END_CHARS:]}"
    return key_of(f"{model}\0{key_of_system(joined(system))}\0{key_of_tools(tools)}\0{said}")

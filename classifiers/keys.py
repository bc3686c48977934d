"""By what a whole text is known again: hashes that are the same in every process, and hold nothing of it.

A program sends the same system text and the same tools with each call, so what was found for those is remembered.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from classifiers.memo import Memo

_DIGITS: Final = 24
_END_CHARS: Final = 128 * 1024
"""Of a text longer than two of these, length and ends tell it from others: hashing all takes longer than deciding."""
_ZEROS: Final = bytes(ord("0") if 0x30 <= byte <= 0x39 else byte for byte in range(256))

_SYSTEMS: Final[Memo[str]] = Memo()
_TOOLS: Final[Memo[str]] = Memo()


def key_of(text: str) -> str:
    """Hexadecimal digits."""
    if len(text) > 2 * _END_CHARS:
        text = f"{len(text)}\1{text[:_END_CHARS]}{text[-_END_CHARS:]}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def key_of_system(text: str) -> str:
    """Numbers left out: with a clock in it, a system text is the same in the next turn. Empty for none."""
    if not text:
        return ""
    found = _SYSTEMS.get(at := hash(text))
    if found is None:
        _SYSTEMS.keep(at, found := key_of(without_numbers(text)))
    return found


def key_of_tools(text: str) -> str:
    """Of tools as JSON; empty for none."""
    if not text:
        return ""
    found = _TOOLS.get(at := hash(text))
    if found is None:
        _TOOLS.keep(at, found := key_of(text))
    return found


def without_numbers(text: str) -> str:
    """Each number is a `0`."""
    data = text.encode("utf-8", "surrogatepass").translate(_ZEROS)
    if b"0" not in data:
        return text
    while b"00" in data:
        data = data.replace(b"00", b"0")
    return data.decode("utf-8", "surrogatepass")

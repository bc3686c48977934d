"""Reads single metrics out of the Prometheus text format, which engines serve by the ten thousand bytes.

A scrape asks for a handful of gauges among hundreds of lines, once a second and backend. So nothing is parsed but the
lines of the metric that was asked for, and those are found by a byte search. A line that is broken is passed over: half
of a scrape is better than none. Time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_LABEL = re.compile(rb'[ \t,]*+([A-Za-z_][A-Za-z0-9_]*+)[ \t]*+=[ \t]*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"')
_END_OF_LABELS = re.compile(rb"[ \t,]*+\}")
_ESCAPED = re.compile(rb"\\(.)")


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: the value may be NaN or infinite, as the server wrote it."""

    labels: Mapping[str, str]
    value: float


def samples(text: bytes, name: str) -> list[Sample]:
    """All samples of exactly that metric, in their order; not those whose names merely begin so. Never raises."""
    wanted = name.encode()
    found: list[Sample] = []
    at = text.find(wanted)
    while at >= 0:
        end = text.find(b"\n", at)
        if end < 0:
            end = len(text)
        before = text[text.rfind(b"\n", 0, at) + 1 : at]
        if not before.strip():
            sample = _sample(text[at + len(wanted) : end])
            if sample is not None:
                found.append(sample)
        at = text.find(wanted, end)
    return found


def _sample(rest: bytes) -> Sample | None:
    """A line without its name: labels, value and perhaps a timestamp or an exemplar, which are of no use here."""
    bare = rest.lstrip(b" \t")
    labels: dict[str, str] = {}
    if bare.startswith(b"{"):
        at = 1
        while (label := _LABEL.match(bare, at)) is not None:
            labels[label[1].decode()] = _unescaped(label[2])
            at = label.end()
        closing = _END_OF_LABELS.match(bare, at)
        if closing is None:
            return None
        bare = bare[closing.end() :]
    elif len(bare) == len(rest):
        return None
    value = _number(bare.split(None, 1)[0] if bare.strip() else b"")
    return None if value is None else Sample(labels, value)


def _number(word: bytes) -> float | None:
    if b"_" in word:  # Python reads 1_000 as a number, the format does not
        return None
    try:
        return float(word)
    except ValueError:
        return None


def _unescaped(raw: bytes) -> str:
    if b"\\" in raw:
        raw = _ESCAPED.sub(lambda match: b"\n" if match[1] == b"n" else match[1], raw)
    return raw.decode(errors="replace")

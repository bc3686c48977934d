"""Reading decision logs for learning.

What cannot be used is passed over and counted by reason: half a line that a crash left, lines of another version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson

from classifiers.api import CallClass, Source
from router.observe.decisions import READ_FORMATS
from router.observe.logfiles import OnBytes, raw_lines

_TURNED: Final = frozenset({"held_by_key", "streamed_at_last"})
"""Reasons of verdicts that are not what their source said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One call of the log, as far as learning needs it."""

    time_s: float
    """Of its arrival, since 1970."""
    client: str
    stream: bool
    call_class: CallClass
    confidence: float
    source: Source
    turned: bool
    """The class is not the one that was found: a key was not allowed it, or the router guessed that a hop is the last
    one. So it says nothing about the call."""
    outcome: str
    left: str
    stalls: int
    complete_s: float
    features: Mapping[str, float] | None
    """None: nobody looked at its text, as its verdict was that of calls like it."""
    arrival: Mapping[str, float] | None
    shadow: CallClass | None
    program: str
    """Hashes of its system text and tools; empty: the log has none."""


@dataclass(slots=True)
class Log:
    """What was read, in the order of arrival."""

    lines: list[Line] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)
    """Lines that were not taken, by reason."""


def read(paths: Iterable[Path], vector: str, on_bytes: OnBytes = lambda count: None) -> Log:
    """All lines whose features are of this version (`vector`). Raises `OSError` where a file cannot be read."""
    log = Log()
    for path in paths:
        for raw in raw_lines(path, on_bytes):
            taken = _taken(raw, vector)
            if isinstance(taken, Line):
                log.lines.append(taken)
            else:
                log.passed_over[taken] += 1
    log.lines.sort(key=lambda line: line.time_s)
    return log


def _taken(raw: bytes, vector: str) -> Line | str:
    """The line, or the reason why it is passed over."""
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return "not a whole line of JSON"
    if not isinstance(document, dict) or document.get("format") not in READ_FORMATS:
        return "not of this format"
    if document.get("vector") != vector:
        return "features of another version of the router"
    try:
        return _line(document)
    except (KeyError, TypeError, ValueError, AttributeError):
        return "fields missing or of another kind"


def _line(document: dict[str, Any]) -> Line:
    shadow, arrival, text = document["shadow"], document["arrival"], document.get("text")
    confidence = float(document["confidence"])
    if not 0.0 <= confidence <= 1.0:
        raise ValueError("confidence")
    return Line(
        time_s=datetime.fromisoformat(document["time"]).timestamp(),
        client=str(document["client"]),
        stream=document["stream"] is True,
        call_class=CallClass(document["class"]),
        confidence=confidence,
        source=Source(document["source"]),
        turned=not _TURNED.isdisjoint(document["reasons"]),
        outcome=str(document["outcome"]),
        left=str(document["left"]),
        stalls=int(document["stalls"]),
        complete_s=float(document["complete_s"]),
        features=_features(document),
        arrival=None if arrival is None else _numbers(arrival),
        shadow=None if shadow is None else CallClass(shadow["class"]),
        program=" ".join(str(text.get(name)) for name in ("system", "tools")) if text else "",
    )


def _features(document: Mapping[str, Any]) -> Mapping[str, float] | None:
    if document["features"] is None and document["format"] > 1:
        return None
    return _numbers(document["features"])


def _numbers(values: Mapping[str, object]) -> dict[str, float]:
    """Raises `TypeError` for what is no number."""
    found: dict[str, float] = {}
    for name, value in values.items():
        if not isinstance(value, int | float):
            raise TypeError(name)
        found[name] = float(value)
    return found

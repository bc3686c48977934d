"""What callers say about their calls in headers, and what tells that two calls belong together.

A header of ours decides; the standard ones and those of other routers are understood too. A value that is not known is
ignored, never refused: the call goes on, and `ignored` names it for counters and for explain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from classifiers.api import SYNONYMS, CallClass, Features, Source, Verdict
from classifiers.structured import read_dictionary
from classifiers.tags import (
    DEADLINE_HEADER,
    HOP_HEADER,
    HOPS_LEFT_HEADER,
    PIPELINE_HEADER,
    SESSION_HEADERS,
    TPOT_HEADERS,
    TTFT_HEADERS,
    is_count,
    is_some_milliseconds,
)

CLASS_HEADER: Final = "x-twolane-class"
PIPELINE_REASON: Final = "pipeline_header"
"""Of a call that names its pipeline and says no more."""

BY_OPENING: Final = "opening="
"""How the key of a conversation begins that is known by how it begins."""
_KEY_CHARS = 64
_SHOWN_CHARS = 64

_SESSION_HEADERS: Final = (PIPELINE_HEADER, *SESSION_HEADERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """A hint that was not understood."""

    header: str
    value: str
    """Shortened: it came from outside and goes into logs and answers."""
    expected: str

    def __str__(self) -> str:
        return f"{self.header}: {self.value} is ignored; expected {self.expected}"


class _UnknownValue(LookupError):
    """The header is known, its value is not."""


@dataclass(frozen=True, slots=True)
class _Hint:
    """One header: how it is read, how sure a hint it is, and its word among the reasons."""

    header: str
    read: Callable[[str], CallClass | None]
    """Gives None where the value is fine and says nothing. Raises `LookupError` for a value that is not known."""
    confidence: float
    reason: str
    expected: str


def _synonym(value: str) -> CallClass:
    return SYNONYMS[value.strip().lower()]


def _word(words: Mapping[str, CallClass | None]) -> Callable[[str], CallClass | None]:
    return lambda value: words[value.strip().lower()]


def _objective(value: str) -> CallClass | None:
    """Objectives have names of their operator's own; only ours mean something here, others are no mistake."""
    return SYNONYMS.get(value.strip().lower())


def _wants_first_token(milliseconds: str) -> CallClass:
    if is_some_milliseconds(milliseconds):
        return CallClass.TTFT
    raise _UnknownValue(milliseconds)


def _names_a_pipeline(name: str) -> CallClass:
    if name.strip():
        return CallClass.MIXED
    raise _UnknownValue(name)


def _says_no_class(is_well: Callable[[str], bool]) -> Callable[[str], CallClass | None]:
    """For a header that says other things than a class; asked for its value alone."""

    def read(value: str) -> CallClass | None:
        if is_well(value):
            return None
        raise _UnknownValue(value)

    return read


def _urgency(value: str) -> CallClass | None:
    """RFC 9218: `i` says that partial output is useful, urgency 5..7 without it that the call is background work.

    The default (`u=3`) and higher urgencies do not say what the caller waits for.
    """
    members = read_dictionary(value)
    if members is None:
        raise _UnknownValue(value)
    if members.get("i") == "?1":
        return CallClass.TTFT
    return CallClass.THROUGHPUT if members.get("u") in ("5", "6", "7") else None


_CLASSES = ", ".join(SYNONYMS)
_MILLISECONDS = "milliseconds, more than 0"

_INDIRECT: Final = (
    _Hint(
        HOP_HEADER,
        _word({"internal": CallClass.MIXED, "final": CallClass.TTFT}),
        0.95,
        "hop_header",
        "internal or final",
    ),
    *(_Hint(name, _wants_first_token, 0.9, "slo_ttft_header", _MILLISECONDS) for name in TTFT_HEADERS),
    *(_Hint(name, _says_no_class(is_some_milliseconds), 0.0, "", _MILLISECONDS) for name in TPOT_HEADERS),
    _Hint(DEADLINE_HEADER, _says_no_class(is_some_milliseconds), 0.0, "", _MILLISECONDS),
    _Hint(HOPS_LEFT_HEADER, _says_no_class(is_count), 0.0, "", "a whole number"),
    _Hint("x-llm-d-inference-objective", _objective, 0.9, "objective_header", _CLASSES),
    _Hint(
        "x-smg-priority",
        _word(
            {
                "system": CallClass.TTFT,
                "interactive": CallClass.TTFT,
                "default": None,
                "bulk": CallClass.THROUGHPUT,
            }
        ),
        0.9,
        "smg_priority_header",
        "system, interactive, default or bulk",
    ),
    # A call that names its pipeline and says no more is some hop of it.
    _Hint(PIPELINE_HEADER, _names_a_pipeline, 0.85, PIPELINE_REASON, "any name"),
    # Browsers send this one unasked, so it is the weakest.
    _Hint("priority", _urgency, 0.8, "priority_header", "u=0..7, i"),
)


@dataclass(frozen=True, slots=True)
class Hints:
    """The first voice of the chain: whatever the caller said explicitly."""

    class_headers: tuple[str, ...] = ()
    """More names for `x-twolane-class`, lower case."""
    _hints: tuple[_Hint, ...] = field(init=False, repr=False, compare=False)
    _names: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        direct = tuple(
            _Hint(name.lower(), _synonym, 1.0, "class_header", _CLASSES)
            for name in dict.fromkeys((CLASS_HEADER, *self.class_headers))
        )
        object.__setattr__(self, "_hints", direct + _INDIRECT)
        object.__setattr__(self, "_names", frozenset(hint.header for hint in self._hints))

    def classify(self, features: Features) -> Verdict | None:
        headers = features.headers
        if self._names.isdisjoint(headers):  # most calls say nothing
            return None
        for hint in self._hints:
            if hint.header in headers:
                try:
                    call_class = hint.read(headers[hint.header])
                except LookupError:
                    continue  # `ignored` tells of it
                if call_class is not None:
                    return Verdict(
                        call_class=call_class,
                        confidence=hint.confidence,
                        source=Source.HEADER,
                        reasons=(hint.reason,),
                    )
        return None

    def ignored(self, features: Features) -> tuple[Ignored, ...]:
        """The hints that were not understood; names of headers are bounded, values are not."""
        if self._names.isdisjoint(features.headers):
            return ()
        return tuple(self._ignored(features.headers))

    def notes(self, features: Features) -> tuple[str, ...]:
        return tuple(str(hint) for hint in self.ignored(features))

    def _ignored(self, headers: Mapping[str, str]) -> Iterator[Ignored]:
        for hint in self._hints:
            if hint.header in headers:
                value = headers[hint.header]
                try:
                    hint.read(value)
                except LookupError:
                    yield Ignored(header=hint.header, value=value[:_SHOWN_CHARS], expected=hint.expected)


def affinity_key(features: Features, extra_names: tuple[str, ...] = ()) -> str:
    """What the calls of one conversation or pipeline have in common; empty where nothing tells.

    `extra_names` are lower-case headers that come before the known ones; after the headers, the session that the body
    names in its `metadata`, `prompt_cache_key` and `previous_response_id` are taken, and where the caller says nothing,
    how the conversation begins. At most 64 characters: a long id is replaced by its hash.
    """
    headers = features.headers
    for name in (*extra_names, *_SESSION_HEADERS):
        if name in headers and (value := headers[name].strip()):
            return _key(name, value)
    if features.session_id:
        return _key("body", features.session_id)
    if features.prompt_cache_key:
        return _key("prompt_cache_key", features.prompt_cache_key)
    if features.previous_response_id:
        return _key("previous_response_id", features.previous_response_id)
    return f"{BY_OPENING}{features.opening_key}" if features.opening_key else ""


def _key(name: str, value: str) -> str:
    """The name is part of the key: session 7 of one client is not thread 7 of another."""
    key = f"{name}={value}"
    if len(key) <= _KEY_CHARS:
        return key
    return f"hash={blake2b(key.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"

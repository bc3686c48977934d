"""What callers say of the task that a call is part of: whose hop it is, how many come after it, when it has to end.

All of it is optional and none of it is believed beyond what it may change: an unknown value is passed over, a long id
is as good as a short one, and times count from when the router saw the first hop, so that no clock is compared with
another. Ids are never kept as they came (see `router.pipelines`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from classifiers.api import Features

PIPELINE_HEADER: Final = "x-twolane-pipeline"
HOP_HEADER: Final = "x-twolane-hop"
HOPS_LEFT_HEADER: Final = "x-twolane-hops-left"
DEADLINE_HEADER: Final = "x-twolane-deadline-ms"

SESSION_HEADERS: Final = (
    "x-session-id",
    "session-id",
    "session_id",
    "x-claude-code-session-id",
    "x-session-affinity",
    "thread-id",
    "x-smg-routing-key",
    "x-dynamo-session-id",
    "x-litellm-session-id",
    "x-litellm-trace-id",
    "x-olla-session-id",
    "x-conversation-id",
)
"""The common ones, then those of clients that were written for another router. A session outlives its tasks."""

TTFT_HEADERS: Final = ("x-twolane-slo-ttft-ms", "x-llm-d-slo-ttft-ms", "x-slo-ttft-ms")
TPOT_HEADERS: Final = ("x-twolane-slo-tpot-ms", "x-llm-d-slo-tpot-ms", "x-slo-tpot-ms")

BAGGAGE_MEMBERS: Final = ("twolane.pipeline", "pipeline.id", "gen_ai.conversation.id", "session.id")
"""Of W3C baggage, the members that name a task or a conversation."""

_FINAL_SESSION: Final = "x-dynamo-session-final"
_TOLD_BY: Final = frozenset(
    {
        PIPELINE_HEADER,
        HOP_HEADER,
        HOPS_LEFT_HEADER,
        DEADLINE_HEADER,
        *SESSION_HEADERS,
        *TTFT_HEADERS,
        *TPOT_HEADERS,
        _FINAL_SESSION,
        "baggage",
        "traceparent",
    }
)
_SESSIONS: Final = frozenset(SESSION_HEADERS)
_PROMISES: Final = frozenset((*TTFT_HEADERS, *TPOT_HEADERS))
_HOPS: Final = frozenset((HOP_HEADER, _FINAL_SESSION))
_LONGEST_DEADLINE_S: Final = 7 * 86_400.0
_LONGEST_PROMISE_S: Final = 86_400.0
_MOST_HOPS: Final = 10_000
_LONGEST_NUMBER: Final = 15
_LONGEST_BAGGAGE: Final = 8_192
"""Bytes that the standard asks for; what comes behind is not looked at."""


class Tags(NamedTuple):
    """What one call says. Empty or None: nothing."""

    task: str = ""
    """Name of the field and id of the pipeline, however long the caller made it."""
    session: str = ""
    """The same of a session, in which one task comes after the other."""
    trace: str = ""
    """The same of a trace: one task, if the caller traces whole tasks."""
    hop: str = ""
    """`internal` or `final`."""
    hops_left: int | None = None
    """After this one."""
    deadline_s: float | None = None
    """For the whole pipeline, from its first hop on."""
    ttft_s: float | None = None
    """Wanted in place of the objective of the class."""
    tpot_s: float | None = None


NO_TAGS: Final = Tags()


def tags_of(features: Features, session_names: tuple[str, ...] = ()) -> Tags:
    """`session_names`: lower-case names of more headers that carry the id of a session; they come before the others."""
    headers = features.headers
    own = session_names and not headers.keys().isdisjoint(session_names)
    there = _TOLD_BY.intersection(headers)  # the others are not asked for
    if not there and not own:
        return Tags(session=features.session_id) if features.session_id else NO_TAGS
    task = session = trace = ""
    if PIPELINE_HEADER in there:
        task = _first(headers, (PIPELINE_HEADER,))
    if not task and "baggage" in there:
        task = _of_baggage(headers["baggage"])
    if own or not there.isdisjoint(_SESSIONS):
        session = _first(headers, (*session_names, *SESSION_HEADERS))
    session = session or features.session_id
    if not task and not session and "traceparent" in there:
        trace = _of_trace(headers["traceparent"])
    promises = not there.isdisjoint(_PROMISES)
    return Tags(
        task,
        session,
        trace,
        _hop(headers) if not there.isdisjoint(_HOPS) else "",
        _count(headers[HOPS_LEFT_HEADER]) if HOPS_LEFT_HEADER in there else None,
        _seconds(headers[DEADLINE_HEADER], _LONGEST_DEADLINE_S) if DEADLINE_HEADER in there else None,
        _promise(headers, TTFT_HEADERS) if promises else None,
        _promise(headers, TPOT_HEADERS) if promises else None,
    )


def _first(headers: Mapping[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        if name in headers and (value := headers[name].strip()):
            return f"{name}={value}"
    return ""


def _hop(headers: Mapping[str, str]) -> str:
    word = headers.get(HOP_HEADER, "").strip().lower()
    if word in ("internal", "final"):
        return word
    return "final" if headers.get(_FINAL_SESSION, "").strip().lower() in ("true", "1") else ""


def _of_baggage(value: str) -> str:
    """W3C baggage: `name=value;property, name=value`. Values are compared as they came, percent signs and all."""
    if not value:
        return ""
    members: dict[str, str] = {}
    for member in value[:_LONGEST_BAGGAGE].split(","):
        name, _, rest = member.partition("=")
        members[name.strip()] = rest.partition(";")[0].strip()
    for name in BAGGAGE_MEMBERS:
        if members.get(name):
            return f"{name}={members[name]}"
    return ""


def _of_trace(value: str) -> str:
    """W3C trace context: `00-TRACE-PARENT-FLAGS`; an id of zeros is none."""
    parts = value.strip().split("-")
    if len(parts) < 4 or len(parts[1]) != 32 or not parts[1].strip("0"):
        return ""
    return f"traceparent={parts[1].lower()}"


def is_milliseconds(text: str) -> bool:
    """Whether it is a plain number, not negative."""
    value = text.strip()
    return value.isascii() and len(value) <= _LONGEST_NUMBER and value.replace(".", "", 1).isdigit()


def is_some_milliseconds(text: str) -> bool:
    """Whether it is such a number above 0: nothing is promised, or due, in no time."""
    return is_milliseconds(text) and float(text) > 0


def _seconds(text: str, longest_s: float) -> float | None:
    """Of a number of milliseconds above 0."""
    return min(float(text) / 1000.0, longest_s) if is_some_milliseconds(text) else None


def _promise(headers: Mapping[str, str], names: tuple[str, ...]) -> float | None:
    for name in names:
        if name in headers and (seconds := _seconds(headers[name], _LONGEST_PROMISE_S)) is not None:
            return seconds
    return None


def is_count(text: str) -> bool:
    """Whether it is a whole number, not negative."""
    value = text.strip()
    return value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER


def _count(text: str) -> int | None:
    return min(int(text), _MOST_HOPS) if text and is_count(text) else None

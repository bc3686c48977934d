"""What can be seen of a task: how long it took, and for what of that time somebody else had to wait. Pure.

The critical path leads back from the hop that ended last: each time to the hop whose end is nearest before the arrival
of the one before. What lies between two hops of it is the program's own time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from router.pipelines.hop import Pipeline, Span

_SAME_S = 1e-6
"""Instants that are closer together than this are the same."""


class Path(NamedTuple):
    """The critical path, in seconds."""

    hops: int = 0
    line_s: float = 0.0
    """In the router's line."""
    prefill_s: float = 0.0
    """From a backend to the first token, as far as that was seen."""
    answer_s: float = 0.0
    """The rest of the time on backends."""
    own_s: float = 0.0
    """Between the hops: tools, and the program itself."""


def critical(spans: Sequence[Span]) -> list[Span]:
    """The hops of the critical path, first to last. `spans` in any order."""
    if not spans:
        return []
    at = max(spans, key=lambda span: span.ended_s)
    path = [at]
    before = sorted(spans, key=lambda span: span.ended_s)
    while before:
        span = before.pop()
        if span.ended_s <= at.arrived_s + _SAME_S and span is not at:
            at = span
            path.append(at)
    return path[::-1]


def measured(spans: Sequence[Span]) -> Path:
    hops = critical(spans)
    line_s = prefill_s = answer_s = own_s = 0.0
    ended_s: float | None = None
    for span in hops:
        if ended_s is not None:
            own_s += max(0.0, span.arrived_s - ended_s)
        ended_s = span.ended_s
        if span.placed_s is None:
            line_s += span.ended_s - span.arrived_s
            continue
        line_s += span.placed_s - span.arrived_s
        first_s = span.placed_s if span.first_s is None else min(max(span.first_s, span.placed_s), span.ended_s)
        prefill_s += first_s - span.placed_s
        answer_s += span.ended_s - first_s
    return Path(len(hops), line_s, prefill_s, answer_s, own_s)


def result(pipeline: Pipeline, now_s: float) -> str:
    """`met` or `missed` its deadline, `open`: neither yet; `none`: it has none."""
    if pipeline.deadline_s is None:
        return "none"
    end_s = now_s if pipeline.open else pipeline.last_s
    if end_s > pipeline.deadline_s:
        return "missed"
    return "met" if pipeline.closed else "open"


def wasted_tokens(pipeline: Pipeline, now_s: float) -> int:
    """Computed for a task that missed its deadline: prompts as far as they were not in a cache, and answers."""
    if result(pipeline, now_s) != "missed":
        return 0
    return max(0, pipeline.prompt_tokens - pipeline.cached_tokens) + pipeline.output_tokens


def row(pipeline: Pipeline, now_s: float) -> dict[str, Any]:
    """One task as JSON; seconds, and no name that a caller gave."""
    path = measured(pipeline.spans)
    deadline_s = pipeline.deadline_s
    return {
        "id": pipeline.id,
        "found": "recognised" if pipeline.recognised else "named",
        "state": "over" if pipeline.closed else "running" if pipeline.open else "idle",
        "hops": pipeline.hops,
        "steps": pipeline.steps,
        "open": pipeline.open,
        "failed": pipeline.failed,
        "started_ago_s": round(now_s - pipeline.started_s, 3),
        "makespan_s": round((now_s if pipeline.open else pipeline.last_s) - pipeline.started_s, 3),
        "service_s": round(pipeline.attained_s, 3),
        "critical_path": {name: round(value, 3) for name, value in path._asdict().items()},
        "prompt_tokens": pipeline.prompt_tokens,
        "cached_tokens": pipeline.cached_tokens,
        "output_tokens": pipeline.output_tokens,
        "deadline_in_s": None if deadline_s is None else round(deadline_s - now_s, 3),
        "deadline": result(pipeline, now_s),
        "yields": pipeline.yields,
        "wasted_tokens": wasted_tokens(pipeline, now_s),
    }


def detail(pipeline: Pipeline, now_s: float) -> dict[str, Any]:
    """The same with its hops, as far as they are kept; times in seconds since the task began."""
    on_path = {id(span) for span in critical(pipeline.spans)}
    since = pipeline.started_s
    hops = [
        {
            "kind": span.kind,
            "class": span.call_class,
            "backend": span.backend,
            "arrived_s": round(span.arrived_s - since, 4),
            "placed_s": None if span.placed_s is None else round(span.placed_s - since, 4),
            "first_s": None if span.first_s is None else round(span.first_s - since, 4),
            "ended_s": round(span.ended_s - since, 4),
            "complete": span.complete,
            "final": span.final,
            "critical": id(span) in on_path,
            "prompt_tokens": span.prompt_tokens,
            "cached_tokens": span.cached_tokens,
            "output_tokens": span.output_tokens,
        }
        for span in sorted(pipeline.spans, key=lambda span: span.arrived_s)
    ]
    deadline_s = pipeline.deadline_s
    document = row(pipeline, now_s)
    document["deadline_s"] = None if deadline_s is None else round(deadline_s - since, 4)
    document["hops_shown"] = hops
    return document

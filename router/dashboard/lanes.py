"""A backend as people see it: what it is, how it is, what runs there, how fast it is."""

from __future__ import annotations

from typing import Any

from policies.api import View
from router.fleet.backend import Backend


def backend_document(backend: Backend, now_s: float) -> dict[str, Any]:
    """Everything but its key; can be written as JSON."""
    figures, foreign = backend.foreign.load, backend.foreign
    view = backend.view(now_s)
    return {
        "name": backend.name,
        "url": backend.settings.url,
        "lane": backend.lane,
        "engine": backend.engine.name if backend.known else "unknown",
        "version": backend.identity.version if backend.identity is not None else "",
        "health": backend.health.state,
        "why": backend.health.reason,
        "drained": backend.health.drained,
        "slots": backend.cap,
        "context_tokens": backend.context_tokens,
        "running": figures.running if figures is not None else None,
        "waiting": figures.waiting if figures is not None else None,
        "cache_used_0_1": figures.cache_used_0_1 if figures is not None else None,
        "own": backend.account.own,
        "own_by_class": {str(name): count for name, count in backend.account.by_class.items()},
        "foreign": round(foreign.calls(now_s), 2),
        "figures_age_s": round(foreign.age_s(now_s), 3) if figures is not None else None,
        "dispatched": backend.account.dispatched,
        "models": backend.models,
        "pace": _pace(view),
        "work": _work(view),
    }


def _pace(view: View) -> dict[str, Any]:
    """As learned from so many `answers`; 0: it is what its kind of engine makes likely. `tokens_per_s_each`: of one
    answer beside what decodes there now."""
    pace = view.pace
    step_s = pace.step_s + pace.sequence_s * max(1.0, view.work.decoding)
    return {
        "answers": pace.seen,
        "prefill_tokens_per_s": round(1.0 / pace.prefill_token_s),
        "tokens_per_s_each": round(1.0 / step_s, 1),
    }


def _work(view: View) -> dict[str, Any]:
    """Of our own calls there: how many decode, how many have no token yet, and the seconds of prefill that wait."""
    work = view.work
    return {
        "decoding": round(work.decoding, 1),
        "prefilling": work.prefilling,
        "prefill_s": round(work.prefill_tokens * view.pace.prefill_token_s, 3),
    }

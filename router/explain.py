"""What would happen to this call, and why: the same reading, classifying and deciding, with nothing sent."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import orjson

from classifiers.api import Features, Verdict
from policies.api import Ask, Decision, Dispatch, Policy, Reject, View, Wait
from policies.outlook import keeps_0_1, outlook
from router.applicant import Applicant
from router.errors import BadRequest, RouterError
from router.fleet.fleet import Candidate, Fleet
from router.fleet.prefixes import Prefixes
from router.heads import hints
from router.line import Line
from router.models import named_numbers
from router.plan import Plan
from router.surfaces import Kind, find, read_call
from router.tasks import Clock

_UNTOLD = frozenset({"headers", "shape", "unread", "unmarked", "uncut", "marks", "arrival"})
"""Parts of the features that are no words or numbers for a person."""


class Explainer:
    """Answers `explain` for the command line and the admin port."""

    def __init__(self, fleet: Fleet, line: Line, prefixes: Prefixes, clock: Clock) -> None:
        self._fleet = fleet
        self._line = line
        self._prefixes = prefixes
        self._clock = clock

    def explain(self, plan: Plan, asked: object) -> dict[str, Any]:
        """`asked` is `{"path": ..., "headers": {...}, "body": {...}}`; `method` may be given.

        Raises `BadRequest` where it has another shape, or the error that the call itself would get.
        """
        path, method, headers, body = _read(asked)
        route = find(method, path)
        features = read_call(route, body, hints(headers))
        self._fleet.token_rates.correct(features)
        verdict = plan.chain.classify(features)
        ask = Ask(
            features=features,
            verdict=verdict,
            rules=plan.rules[verdict.call_class],
            arrived_s=self._clock(),
            cached_tokens=self._prefixes.of(features, features.blocks()) if route.kind is Kind.GENERATE else {},
        )
        decision, considered = self._decide(plan.policy, ask, features.model, route.surface.name)
        return {
            "class": verdict.call_class,
            "confidence": round(verdict.confidence, 4),
            "source": verdict.source,
            "reasons": verdict.reasons,
            "voices": [
                {"source": source, "class": said.call_class if said else None, "notes": notes}
                for source, said, notes in plan.chain.explain(features)
            ],
            "shadow": _shadow(plan, features, verdict) if route.kind is Kind.GENERATE else None,
            "features": _features(features),
            "output": self._output(features) if route.kind is Kind.GENERATE else None,
            "needs_slot": route.kind is Kind.GENERATE,
            "decision": decision,
            "considered": considered,
        }

    def _decide(
        self, policy: Policy, ask: Ask, model: str | None, surface: str
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        now_s = self._clock()
        candidates = self._fleet.candidates(model, surface)
        views = {view.name: view for view in self._fleet.views(candidates, now_s)}
        considered = [_considered(candidate, views, ask, now_s) for candidate in candidates]
        considered += [
            {"backend": backend.name, "usable": False, "why": "does not serve this model or API"}
            for backend in self._fleet.backends()
            if backend not in {candidate.backend for candidate in candidates}
        ]
        if views:
            decided = policy.decide(ask, tuple(views.values()), now_s=now_s, chance=random.random())
            return _told(decided, ask), considered
        applicant = Applicant(ask=ask, model=model, surface=surface)
        return self._none(applicant, candidates), considered

    def _output(self, features: Features) -> dict[str, int] | None:
        """Tokens of the answer, as far as the call alone tells: what its client got before is not known here. No
        decision is taken by it.
        """
        lengths = self._fleet.output_lengths.predict("", features)
        return None if lengths is None else {"p50_tokens": lengths.p50_tokens, "p90_tokens": lengths.p90_tokens}

    def _none(self, applicant: Applicant, candidates: tuple[Candidate, ...]) -> dict[str, Any]:
        error = self._line.why_not(applicant, candidates)
        if error is None:
            return {"action": "wait", "backend": None, "reason": "backends_are_loading"}
        return {
            "action": "reject",
            "backend": None,
            "reason": error.code,
            "status": error.status,
            "message": str(error),
        }


def _considered(candidate: Candidate, views: Mapping[str, View], ask: Ask, now_s: float) -> dict[str, Any]:
    backend = candidate.backend
    view = views.get(backend.name)
    entry: dict[str, Any] = {"backend": backend.name, "lane": backend.lane, "usable": view is not None}
    if view is None:
        return {**entry, "why": backend.health.words}
    free = None if view.cap is None else max(0.0, view.free)
    return {
        **entry,
        "model": candidate.model,
        "own": view.own,
        "foreign": view.foreign,
        "free": free,
        "cached_tokens": ask.cached_tokens.get(backend.name, 0),
        "predicted": _predicted(ask, view, now_s),
    }


def _predicted(ask: Ask, view: View, now_s: float) -> dict[str, float]:
    """What it would see there if it was sent now: medians, and what nine in ten stay below."""
    seen = outlook(ask, view, now_s)
    times = {"ttft": seen.first, "tpot": seen.tpot, "complete": seen.whole}
    return {
        "wait_s": round(seen.wait_s, 4),
        **{f"{name}_s": round(time.seconds, 4) for name, time in times.items()},
        **{f"{name}_p90_s": round(time.seconds * time.spread, 4) for name, time in times.items()},
        "keeps_promise_0_1": round(keeps_0_1(ask, seen, now_s), 3),
    }


def _shadow(plan: Plan, features: Features, verdict: Verdict) -> dict[str, Any] | None:
    """What the shadow model says beside; None: there is none, or it has no opinion."""
    said = plan.shadow.classify(features) if plan.shadow is not None else None
    if plan.shadow is None or said is None:
        return None
    return {
        "class": said.call_class,
        "confidence": said.confidence,
        "agrees": said.call_class is verdict.call_class,
        "notes": plan.shadow.notes(features),
    }


def _features(features: Features) -> dict[str, Any]:
    """What was read, without the headers that came along; instead of the hashes and counts beside it, what the learned
    models are told of the call, by name: entries that are zero are left out.
    """
    told = {each.name: _tellable(getattr(features, each.name)) for each in fields(features) if each.name not in _UNTOLD}
    return {**told, "numbers": named_numbers(features)}


def _tellable(value: object) -> object:
    """As JSON can hold it: half a character is a question mark, and a number beyond 64 bits a word."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return str(value) if isinstance(value, int) and not -(2**63) <= value < 2**64 else value


def _told(decision: Decision, ask: Ask) -> dict[str, Any]:
    match decision:
        case Dispatch(backend, reason):
            return {"action": "dispatch", "backend": backend, "reason": reason}
        case Wait(reason):
            return {"action": "wait", "backend": None, "reason": reason, "at_most_s": ask.rules.max_wait_s}
        case Reject(reason, status, retry_after_s):
            return {
                "action": "reject",
                "backend": None,
                "reason": reason,
                "status": status,
                "retry_after_s": retry_after_s,
            }


def _read(asked: object) -> tuple[str, str, list[tuple[bytes, bytes]], bytes]:
    if not isinstance(asked, dict) or not isinstance(asked.get("path"), str):
        raise BadRequest('expected {"path": "/v1/chat/completions", "headers": {...}, "body": {...}}', param="path")
    headers = asked.get("headers") or {}
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise BadRequest("headers must be an object of strings", param="headers")
    body = asked.get("body")
    raw = b"" if body is None else _raw(body)
    method = asked.get("method") or ("GET" if body is None else "POST")
    sent = [(str(name).encode("latin-1", "replace"), value.encode("utf-8")) for name, value in headers.items()]
    return asked["path"].partition("?")[0], str(method).upper(), sent, raw


def _raw(body: object) -> bytes:
    """As a client would have sent it. Raises `BadRequest` where it is nested deeper than any server reads."""
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        # It writes a quarter of the levels that it reads.
        try:
            return json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        except (RecursionError, TypeError) as error:
            raise BadRequest(
                "body: it is nested too deep to be read; send it with fewer levels", param="body"
            ) from error


def error_document(error: RouterError) -> dict[str, Any]:
    """An error of `explain` itself."""
    return {"error": {"code": error.code, "message": error.message, "param": error.param}}

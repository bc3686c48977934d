"""Ended calls, for tests of what is shown of them."""

from __future__ import annotations

from typing import Any

from classifiers.api import CallClass, Features, Source, Verdict
from policies.api import ClassRules, Lane
from router.observe.facts import CallFacts, JudgedCall

RULES = ClassRules(lanes=(Lane.LATENCY,), max_wait_s=1.0, slo_ttft_s=0.5, slo_tpot_s=0.05)


def ended(**given: Any) -> CallFacts:
    """A streamed call on `desk` that came to its end."""
    values: dict[str, Any] = {
        "request_id": "r1",
        "surface": "openai_chat",
        "call_class": CallClass.TTFT,
        "source": Source.HEADER,
        "reason": "",
        "backend": "desk",
        "model": "m",
        "stream": True,
        "outcome": "completed",
        "status": 200,
        "decide_s": 0.0001,
        "queue_s": 0.0,
        "complete_s": 1.0,
        "ttft_s": 0.1,
        "tpot_s": 0.02,
        "prompt_tokens": 10,
        "output_tokens": 40,
    }
    return CallFacts(**{**values, **given})


def judged(*reasons: str, source: Source = Source.HEADER, rules: ClassRules = RULES) -> JudgedCall:
    verdict = Verdict(call_class=CallClass.TTFT, confidence=0.9, source=source, reasons=reasons or ("class_header",))
    return JudgedCall(
        features=Features(surface="openai_chat", headers={"authorization": "s3cret"}),
        verdict=verdict,
        rules=rules,
        placement="preferred_lane",
        client="10.0.0.7 curl",
    )

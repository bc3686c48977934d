"""What an ended call says: when its client left, whether promises were kept."""

from __future__ import annotations

from typing import Any

import pytest

from classifiers.api import CallClass, Features, Source, Verdict
from policies.api import ClassRules, Lane
from router.observe.facts import CallFacts, JudgedCall


def facts(**given: Any) -> CallFacts:
    values: dict[str, Any] = {
        "request_id": "r",
        "surface": "openai_chat",
        "call_class": "ttft",
        "source": "model",
        "reason": "model:stream",
        "backend": "desk",
        "model": "m",
        "stream": True,
        "outcome": "completed",
        "status": 200,
        "decide_s": 0.0,
        "queue_s": 0.0,
        "complete_s": 4.0,
        "ttft_s": 0.4,
        "tpot_s": 0.04,
    }
    return CallFacts(**{**values, **given})


def kept(ended: CallFacts, **promised: Any) -> bool | None:
    return JudgedCall(
        features=Features(surface="openai_chat"),
        verdict=Verdict(call_class=CallClass.TTFT, confidence=0.8, source=Source.MODEL, reasons=()),
        rules=ClassRules(lanes=(Lane.LATENCY,), max_wait_s=1.0, **promised),
        placement="",
        client="",
    ).kept(ended)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({}, ""),
        ({"outcome": "backend_error", "ttft_s": None}, ""),
        ({"outcome": "client_gone"}, "during_answer"),
        ({"outcome": "client_gone", "ttft_s": None}, "before_first_token"),
        ({"outcome": "client_gone", "ttft_s": None, "stream": False}, "before_answer"),
    ],
)
def test_when_a_client_left(given: dict[str, Any], left: str) -> None:
    assert facts(**given).left == left


@pytest.mark.parametrize(
    ("promised", "expected"),
    [
        ({}, None),
        ({"slo_ttft_s": 0.5, "slo_tpot_s": 0.05}, True),
        ({"slo_ttft_s": 0.3, "slo_tpot_s": 0.05}, False),
        ({"slo_ttft_s": 0.5, "slo_tpot_s": 0.03}, False),
        ({"slo_complete_s": 3.9}, False),
        ({"slo_complete_s": 4.0}, True),
    ],
)
def test_promises_of_a_complete_answer(promised: dict[str, float], expected: bool | None) -> None:
    assert kept(facts(), **promised) is expected


def test_a_first_token_that_nobody_asked_for_is_not_promised() -> None:
    assert kept(facts(stream=False, ttft_s=None, tpot_s=None), slo_ttft_s=0.1) is None


def test_who_leaves_before_a_promise_was_due_says_nothing_about_it() -> None:
    gone = facts(outcome="client_gone", ttft_s=None, tpot_s=None, complete_s=0.4)
    assert kept(gone, slo_ttft_s=0.5) is None
    assert kept(gone, slo_ttft_s=0.3) is False
    assert kept(gone, slo_complete_s=0.3) is False
    later = facts(outcome="client_gone", complete_s=2.0)
    assert kept(later, slo_ttft_s=0.3, slo_complete_s=6.0) is False
    assert kept(later, slo_ttft_s=0.5, slo_complete_s=6.0) is None


@pytest.mark.parametrize(
    ("outcome", "expected"), [("backend_error", False), ("rejected", False), ("backend_4xx", None), ("limited", None)]
)
def test_an_answer_that_failed_keeps_no_promise_unless_the_call_was_wrong(outcome: str, expected: bool | None) -> None:
    assert kept(facts(outcome=outcome, ttft_s=None, tpot_s=None), slo_ttft_s=0.5) is expected
    assert kept(facts(outcome=outcome, ttft_s=None, tpot_s=None)) is None

"""What the calls of a key may be, and where they may go."""

from __future__ import annotations

from typing import Any

import pytest

from classifiers.api import CallClass, Source, Verdict
from policies.api import ClassRules, Lane
from router.access.grant import Grant, nearest
from router.settings.security import ClientKey

TTFT, MIXED, THROUGHPUT = CallClass
RULES = {
    call_class: ClassRules(lanes=(Lane.THROUGHPUT, Lane.LATENCY), keep_free={Lane.LATENCY: 1}, max_wait_s=5.0)
    for call_class in CallClass
}


def grant(**given: Any) -> Grant:
    return Grant.of(ClientKey.model_validate({"name": "a", "key": "k", **given}), RULES)


def verdict(call_class: CallClass) -> Verdict:
    return Verdict(call_class=call_class, confidence=1.0, source=Source.HEADER, reasons=("asked",))


@pytest.mark.parametrize(
    ("asked", "allowed", "becomes"),
    [
        (TTFT, (TTFT, MIXED, THROUGHPUT), TTFT),
        (TTFT, (MIXED, THROUGHPUT), MIXED),
        (TTFT, (THROUGHPUT,), THROUGHPUT),
        (MIXED, (TTFT, THROUGHPUT), THROUGHPUT),
        (MIXED, (TTFT,), TTFT),
        (THROUGHPUT, (TTFT, MIXED), MIXED),
        (THROUGHPUT, (MIXED,), MIXED),
    ],
)
def test_a_class_that_is_not_allowed_becomes_the_next_less_urgent_one(
    asked: CallClass, allowed: tuple[CallClass, ...], becomes: CallClass
) -> None:
    assert nearest(asked, allowed) is becomes


def test_a_verdict_that_is_changed_says_by_what() -> None:
    held = grant(classes="batch").held(verdict(TTFT))
    assert (held.call_class, held.reasons, held.source) == (THROUGHPUT, ("asked", "held_by_key"), Source.HEADER)
    same = verdict(TTFT)
    assert grant().held(same) is same


def test_lanes_keep_the_order_of_the_class_and_all_else_of_its_rules() -> None:
    assert grant().rules == RULES
    rules = grant(lanes="latency").rules[MIXED]
    assert (rules.lanes, rules.keep_free, rules.max_wait_s) == ((Lane.LATENCY,), {Lane.LATENCY: 1}, 5.0)

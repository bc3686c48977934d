"""The operator's rules."""

from __future__ import annotations

import pytest

from classifiers.api import CallClass, Features, Source
from classifiers.conditions import ConditionError
from classifiers.rules import Rules

RULES = Rules.compiled(
    [
        ({"header": {"x-team": "nightly"}}, CallClass.THROUGHPUT),
        ({"prompt_tokens": ">6000", "stream": False}, CallClass.THROUGHPUT),
        ({"tools": True}, CallClass.MIXED),
    ]
)


def test_the_first_rule_that_matches_decides() -> None:
    verdict = RULES.classify(Features(surface="openai_chat", prompt_tokens=7000, tools=2))

    assert verdict is not None
    assert verdict.call_class is CallClass.THROUGHPUT
    assert verdict.source is Source.RULE
    assert verdict.confidence == 1.0
    assert verdict.reasons == ("rule_2", "prompt_tokens: >6000, stream: false")


def test_a_call_that_no_rule_matches_is_passed_on() -> None:
    assert RULES.classify(Features(surface="openai_chat")) is None


def test_without_rules_every_call_is_passed_on() -> None:
    assert Rules().classify(Features(surface="openai_chat")) is None
    assert Rules().notes(Features(surface="openai_chat")) == ()


def test_the_notes_say_why_a_rule_did_not_match() -> None:
    assert RULES.notes(Features(surface="openai_chat", prompt_tokens=7000, stream=True, tools=1)) == (
        "rule_1: not met: header.x-team",
        "rule_2: not met: stream: false",
        "rule_3: matches",
    )


def test_what_a_header_or_a_word_has_to_be_is_told_to_nobody() -> None:
    conditions: dict[str, object] = {
        "header": {"x-internal-token": "tok-s3cret", "x: y": "s3cret", "x-debug": False},
        "user_agent": ["s3cret*", "other"],
        "model": "s3cret",
    }
    rules = Rules.compiled([(conditions, CallClass.TTFT)])
    headers = {"x-internal-token": "tok-s3cret", "x: y": "s3cret", "user-agent": "s3cret/1"}
    verdict = rules.classify(Features(surface="openai_chat", model="s3cret", headers=headers))

    assert verdict is not None
    assert verdict.reasons == ("rule_1", "header.x-internal-token, header.x, header.x-debug, user_agent, model")
    assert rules.notes(Features(surface="openai_chat")) == ("rule_1: not met: header.x-internal-token",)


def test_a_wrong_condition_is_named_with_the_place_of_its_rule() -> None:
    with pytest.raises(ConditionError) as caught:
        Rules.compiled([({}, CallClass.TTFT), ({"header": {"x-team": None}}, CallClass.TTFT)])

    assert caught.value.key == "1.if.header.x-team"

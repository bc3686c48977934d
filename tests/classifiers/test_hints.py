"""Hints in headers, and the key of a conversation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.api import SYNONYMS, CallClass, Features, Source
from classifiers.hints import Hints, affinity_key


def call(headers: dict[str, str] | None = None, **other: Any) -> Features:
    return Features(surface="openai_chat", headers=headers or {}, **other)


def class_of(headers: dict[str, str], *class_headers: str) -> CallClass | None:
    verdict = Hints(class_headers).classify(call(headers))
    return verdict.call_class if verdict else None


@pytest.mark.parametrize(("word", "call_class"), SYNONYMS.items())
def test_the_class_header_takes_every_synonym(word: str, call_class: CallClass) -> None:
    verdict = Hints().classify(call({"x-twolane-class": f" {word.upper()} "}))

    assert verdict is not None
    assert verdict.call_class is call_class
    assert verdict.confidence == 1.0
    assert verdict.source is Source.HEADER
    assert verdict.reasons == ("class_header",)


def test_the_class_may_be_sent_under_configured_names_too() -> None:
    assert class_of({"x-lane": "batch"}, "X-Lane") is CallClass.THROUGHPUT
    assert class_of({"x-lane": "batch"}) is None


def test_the_own_name_outranks_a_configured_one_unless_its_value_is_unknown() -> None:
    assert class_of({"x-lane": "batch", "x-twolane-class": "ttft"}, "x-lane") is CallClass.TTFT
    assert class_of({"x-lane": "batch", "x-twolane-class": "??"}, "x-lane") is CallClass.THROUGHPUT


@pytest.mark.parametrize(
    ("header", "value", "call_class"),
    [
        ("x-twolane-hop", "internal", CallClass.MIXED),
        ("x-twolane-hop", "Final", CallClass.TTFT),
        ("x-twolane-pipeline", "task-7", CallClass.MIXED),
        ("x-twolane-slo-ttft-ms", "500", CallClass.TTFT),
        ("x-llm-d-slo-ttft-ms", "250.5", CallClass.TTFT),
        ("x-llm-d-inference-objective", "Batch", CallClass.THROUGHPUT),
        ("x-llm-d-inference-objective", "food-review", None),
        ("x-smg-priority", "system", CallClass.TTFT),
        ("x-smg-priority", "INTERACTIVE", CallClass.TTFT),
        ("x-smg-priority", "default", None),
        ("x-smg-priority", "bulk", CallClass.THROUGHPUT),
        ("priority", "i", CallClass.TTFT),
        ("priority", "u=1, i", CallClass.TTFT),
        ("priority", "u=7, i", CallClass.TTFT),
        ("priority", "u=5", CallClass.THROUGHPUT),
        ("priority", "u=7, i=?0", CallClass.THROUGHPUT),
        ("priority", "u=4", None),
        ("priority", "u=0", None),
        ("priority", "u=8", None),
        ("priority", "u=fast, i=yes", None),
        ("priority", "", None),
        ("x-request-id", "batch", None),
    ],
)
def test_other_headers_hint_at_a_class(header: str, value: str, call_class: CallClass | None) -> None:
    assert class_of({header: value}) is call_class
    assert Hints().ignored(call({header: value})) == ()


def test_indirect_hints_are_less_sure_than_the_class_itself() -> None:
    for headers in ({"x-twolane-hop": "final"}, {"x-smg-priority": "bulk"}, {"priority": "i"}):
        verdict = Hints().classify(call(headers))
        assert verdict is not None
        assert 0.8 <= verdict.confidence < 1


def test_our_headers_outrank_those_of_others() -> None:
    assert class_of({"priority": "u=7", "x-smg-priority": "bulk", "x-twolane-hop": "final"}) is CallClass.TTFT
    assert class_of({"x-twolane-pipeline": "task-7", "x-twolane-hop": "final"}) is CallClass.TTFT


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("x-twolane-class", "fastest"),
        ("x-twolane-hop", "last"),
        ("x-smg-priority", "urgent"),
        ("x-twolane-slo-ttft-ms", "soon"),
        ("x-llm-d-slo-ttft-ms", "-5"),
        ("x-llm-d-slo-ttft-ms", "٥"),
        ("x-twolane-slo-ttft-ms", "0"),
        ("x-slo-tpot-ms", "0.0"),
        ("x-twolane-deadline-ms", "0"),
        ("x-twolane-pipeline", "  "),
        ("x-twolane-pipeline", ""),
        ("priority", "u=5,"),
    ],
)
def test_an_unknown_value_is_ignored_and_named(header: str, value: str) -> None:
    features = call({header: value})

    (ignored,) = Hints().ignored(features)

    assert Hints().classify(features) is None
    assert (ignored.header, ignored.value) == (header, value)
    assert Hints().notes(features) == (f"{header}: {value} is ignored; expected {ignored.expected}",)


def test_a_long_unknown_value_is_shortened() -> None:
    (ignored,) = Hints().ignored(call({"x-twolane-class": "x" * 5000}))

    assert len(ignored.value) == 64


def test_a_call_without_hints_says_nothing() -> None:
    assert Hints().classify(call()) is None
    assert Hints().notes(call()) == ()


@pytest.mark.parametrize(
    "name",
    [
        "x-twolane-pipeline",
        "x-session-id",
        "session-id",
        "session_id",
        "x-claude-code-session-id",
        "x-session-affinity",
        "thread-id",
    ],
)
def test_calls_of_one_session_have_one_key(name: str) -> None:
    assert affinity_key(call({name: " s-7 ", "x-request-id": "1"})) == affinity_key(call({name: "s-7"}, turns=9)) != ""
    assert affinity_key(call({name: "s-8"})) != affinity_key(call({name: "s-7"}))


def test_the_same_id_under_two_names_is_not_one_session() -> None:
    assert affinity_key(call({"session-id": "7"})) != affinity_key(call({"thread-id": "7"}))


def test_configured_names_come_first() -> None:
    headers = {"x-room": "12", "x-session-id": "s-7"}

    assert affinity_key(call(headers), ("x-room",)) == affinity_key(call({"x-room": "12"}), ("x-room",))
    assert affinity_key(call(headers)) == affinity_key(call({"x-session-id": "s-7"}))


def test_facts_of_the_body_make_a_key_where_no_header_does() -> None:
    by_key, by_response = call(prompt_cache_key="k"), call(previous_response_id="r")

    assert affinity_key(by_key) == affinity_key(call({"x-session-id": " "}, prompt_cache_key="k")) != ""
    assert affinity_key(by_response) not in ("", affinity_key(by_key))
    assert affinity_key(call(prompt_cache_key="k", previous_response_id="r")) == affinity_key(by_key)


def test_a_call_that_says_nothing_of_a_session_has_no_key() -> None:
    assert affinity_key(call()) == ""


@given(st.text(min_size=1).filter(str.strip))
def test_a_key_is_never_long(value: str) -> None:
    assert 0 < len(affinity_key(call({"x-session-id": value}))) <= 64


def test_long_ids_that_differ_at_the_end_have_different_keys() -> None:
    assert affinity_key(call({"x-session-id": "x" * 500 + "a"})) != affinity_key(
        call({"x-session-id": "x" * 500 + "b"})
    )


def test_how_a_conversation_begins_is_its_key_where_the_caller_says_nothing() -> None:
    opening = affinity_key(call(opening_key="abc"))

    assert opening == affinity_key(call({"x-request-id": "1"}, opening_key="abc", turns=9)) != ""
    session = {"x-session-id": "7"}
    assert affinity_key(call(session, opening_key="abc")) == affinity_key(call(session))
    assert affinity_key(call(opening_key="abc", prompt_cache_key="7")) == affinity_key(call(prompt_cache_key="7"))
    by_response = call(previous_response_id="7")
    assert affinity_key(call(opening_key="abc", previous_response_id="7")) == affinity_key(by_response)

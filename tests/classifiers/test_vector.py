"""Entries of the vector for calls as the router reads them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from classifiers.api import Features
from classifiers.arrival import Arrival
from classifiers.leaning import fit_leaning
from classifiers.vector import LEANS, LOGARITHMS, NAMES, ONLY_WITH_ARRIVAL, TRUST, WORDS, vector
from tests.classifiers.reading import read


def entry(features: Features, name: str) -> float:
    return vector(features)[NAMES.index(name)]


def test_every_entry_has_a_name_words_a_lean_and_trust() -> None:
    assert len(set(NAMES)) == len(NAMES) == len(vector(Features(surface="openai_chat")))
    assert set(WORDS) == set(LEANS) == set(TRUST) == set(NAMES)
    assert LOGARITHMS.issubset(NAMES)
    assert all(set(lean) <= set("+-*") and len(lean) == 3 and lean != "***" for lean in LEANS.values())


def test_a_call_of_which_nothing_is_known_has_numbers_too() -> None:
    assert all(math.isfinite(value) for value in vector(Features(surface="rerank")))


@pytest.mark.parametrize(
    ("body", "name", "expected"),
    [
        ({"stream": True}, "stream", 1),
        ({"temperature": 0}, "temperature_zero", 1),
        ({"temperature": float("nan")}, "temperature_zero", 0),
        ({"temperature": 10**400}, "temperature_warm", 1),
        ({"temperature": "hot"}, "temperature_warm", 0),
        ({"seed": 0}, "seed", 1),
        ({"stop": ["\nObservation:"]}, "stop_agent", 1),
        ({"stop": "Q:"}, "stop_label", 1),
        ({"stop": 7}, "stop_label", 0),
        ({"stop": [7, None, "<|end|>"]}, "stop_token", 1),
        ({"tool_choice": {"type": "function", "function": {"name": "save"}}}, "forced_tool", 1),
        ({"tool_choice": "auto"}, "tool_choice", 1),
        ({"tool_choice": ["odd"]}, "forced_tool", 0),
        ({"max_tokens": 8}, "limit_label", 1),
        ({"n": 4}, "choices", 1),
        ({"tools": [{"type": "function", "function": {"name": "f"}}] * 40}, "tools_offered", 12),
    ],
)
def test_fields_around_the_text(body: dict[str, Any], name: str, expected: float) -> None:
    assert entry(read("Hello", **body), name) == expected


def test_a_short_message_of_a_person_is_talk_unless_the_system_text_is_a_task() -> None:
    assert entry(read("my card was declined"), "talk") == 1
    assert entry(read("my card was declined", system="You are the friendly voice of a bank."), "talk") == 1
    assert entry(read("my card was declined", system="Classify the ticket. Reply with one label only."), "talk") == 0


def test_a_document_is_told_by_whether_somebody_reads_along() -> None:
    text = "The committee met on Monday and agreed on the budget. " * 60
    assert (entry(read(text, stream=True), "stream_document"), entry(read(text, stream=True), "still_document")) == (
        1,
        0,
    )
    assert (entry(read(text), "stream_document"), entry(read(text), "still_document")) == (0, 1)


def test_the_size_of_an_image_is_not_text() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A1b2" * 50_000}}
    assert entry(read([{"type": "text", "text": "What is this?"}, image]), "last_chars") == 13


def test_what_a_client_did_before_is_seen_only_where_it_is_known() -> None:
    known = Arrival(calls=3, continues=True, hops=2, since_continued_s=0.2, pause_s=0.2)
    seen = Features(surface="openai_chat", arrival=known)
    assert (entry(seen, "continues"), entry(seen, "hops"), entry(seen, "goes_on_at_once")) == (1, 2, 1)
    for unknown in (None, Arrival()):
        values = vector(Features(surface="openai_chat", arrival=unknown))
        assert not any(value for name, value in zip(NAMES, values, strict=True) if name in ONLY_WITH_ARRIVAL)


def test_a_fit_keeps_to_the_leans() -> None:
    np = pytest.importorskip("numpy", reason="training needs numpy")
    values = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 0.0]] * 5)
    labels = [0, 0, 1, 2] * 5
    free, _ = fit_leaning(values, labels, np.ones(20), leans=["***", "***"], trust=[1, 1], strength=1.0)
    bound, _ = fit_leaning(values, labels, np.ones(20), leans=["-**", "***"], trust=[1, 1], strength=1.0)
    assert free[0][0] > 0.1
    assert bound[0][0] == 0
    assert bound[0][1] != 0

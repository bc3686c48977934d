"""The learned model's voice: sure, unsure, silent."""

from __future__ import annotations

from typing import Any

import pytest

from classifiers.api import CallClass, Features, Source, Verdict
from classifiers.arrival import Arrival
from classifiers.judged import Judged
from classifiers.learned import Learned
from tests.classifiers.models import NAMES, document, each, linear_stage

TTFT, MIXED, THROUGHPUT = CallClass.TTFT, CallClass.MIXED, CallClass.THROUGHPUT
UNDECIDED = {**linear_stage(), "calibration": {"temperature": 100.0}}


def vector(call: Features) -> list[float]:
    return [float(call.stream), float(call.tools > 0), float(call.prompt_tokens), float(call.turns)]


def judged(stage: dict[str, Any] | None = None, arrival: dict[str, Any] | None = None, least: float = 0.5) -> Judged:
    return Judged(Learned.parse(document(stage, arrival), NAMES), vector, least)


def call(**given: Any) -> Features:
    return Features(**{"surface": "openai_chat", "turns": 1, "prompt_tokens": 40, **given})


def verdict_of(voice: Judged, **given: Any) -> Verdict:
    verdict = voice.classify(call(**given))
    assert verdict is not None
    return verdict


@pytest.mark.parametrize(
    ("given", "call_class", "reasons"),
    [
        ({"stream": True}, TTFT, ("stream", "low_prompt_tokens")),
        ({"tools": 2}, MIXED, ("tools",)),
        ({"prompt_tokens": 9000}, THROUGHPUT, ("no_stream", "high_prompt_tokens")),
    ],
)
def test_a_sure_model_gives_its_class_and_its_strongest_words(
    given: dict[str, Any], call_class: CallClass, reasons: tuple[str, ...]
) -> None:
    verdict = verdict_of(judged(), **given)

    assert (verdict.call_class, verdict.source, verdict.reasons) == (call_class, Source.MODEL, reasons)
    assert 0.5 < verdict.confidence < 1


@pytest.mark.parametrize(
    ("given", "call_class", "words"),
    [
        ({"stream": True, "prompt_tokens": 90_000, "tools": 3}, TTFT, ("unsure", "stream")),
        ({}, MIXED, ("unsure", "no_stream")),
        ({"prompt_tokens": 4000}, MIXED, ("unsure", "no_stream")),
        ({"prompt_tokens": 4001}, THROUGHPUT, ("unsure", "no_stream", "long_prompt")),
        ({"prompt_tokens": 90_000, "turns": 8}, MIXED, ("unsure", "no_stream")),
        ({"prompt_tokens": 90_000, "tools": 8}, MIXED, ("unsure", "no_stream")),
        ({"prompts": 5}, THROUGHPUT, ("unsure", "many_prompts")),
    ],
)
def test_an_unsure_model_leaves_a_call_to_the_cautious_class_for_its_shape(
    given: dict[str, Any], call_class: CallClass, words: tuple[str, ...]
) -> None:
    verdict = verdict_of(judged(UNDECIDED), **given)

    assert verdict.call_class is call_class
    assert verdict.reasons[: len(words)] == words
    assert len(set(verdict.reasons)) == len(verdict.reasons)
    assert verdict.confidence < 0.5


def test_who_is_sure_enough_is_for_the_operator_to_say() -> None:
    confidence = verdict_of(judged(), stream=True).confidence

    assert verdict_of(judged(least=confidence - 0.01), stream=True).reasons[0] == "stream"
    assert verdict_of(judged(least=confidence + 0.01), stream=True).reasons[0] == "unsure"
    assert verdict_of(judged(UNDECIDED, least=0.0)).reasons[0] != "unsure"


@pytest.mark.parametrize(
    "surface", ["openai_embeddings", "ollama_embed", "rerank", "score", "tokenize", "llamacpp_infill", "openai_audio"]
)
def test_a_model_is_silent_on_calls_the_like_of_which_it_never_saw(surface: str) -> None:
    other = call(surface=surface)

    assert judged().classify(other) is None
    assert judged().why(other) == ()
    assert judged().notes(other) == ("no model has seen calls of this API",)


def test_what_a_client_did_before_is_used_only_where_there_is_something() -> None:
    voice = judged(arrival={**linear_stage(), "intercept": each(0.0, 9.0, 0.0)})

    assert verdict_of(voice, stream=True).call_class is TTFT
    assert verdict_of(voice, stream=True, arrival=Arrival()).call_class is TTFT
    assert verdict_of(voice, stream=True, arrival=Arrival(calls=1)).call_class is MIXED


def test_a_verdict_that_no_feature_explains_still_has_a_reason() -> None:
    flat = {**linear_stage(), "intercept": each(0.0, 0.0, 40.0)}
    assert verdict_of(judged(flat), stream=True).reasons == ("model",)


def test_notes_say_how_probable_and_why() -> None:
    assert judged().notes(call(stream=True, prompt_tokens=40)) == (
        "ttft 0.98, mixed 0.02, throughput 0.00",
        "streams: +2.0 for ttft",
        "tokens of the prompt (40): +1.1 for ttft",
    )


def test_notes_say_what_an_unsure_model_was_too_unsure_for() -> None:
    _, unsure, *_ = judged(UNDECIDED).notes(call(prompt_tokens=90_000))

    assert (
        unsure
        == "unsure: 0.35 is below min_confidence 0.5; throughput is the cautious class for no_stream, long_prompt"
    )


def test_why_gives_the_effects_as_numbers() -> None:
    (words, effect), *_ = judged().why(call(stream=True))

    assert (words, effect) == ("streams", 2.0)

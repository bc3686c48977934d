"""The built-in table of shapes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.api import CallClass, Features, Source, Verdict
from classifiers.builtin import PURPOSE, SHAPES, Builtin

TTFT, MIXED, THROUGHPUT = CallClass.TTFT, CallClass.MIXED, CallClass.THROUGHPUT


def verdict_of(**call: Any) -> Verdict | None:
    return Builtin().classify(Features(**{"surface": "openai_chat", "turns": 1, **call}))


@pytest.mark.parametrize(
    ("call", "call_class", "reasons"),
    [
        ({"service_tier": "flex", "stream": True}, THROUGHPUT, ("batch_service_tier",)),
        ({"service_tier": "batch"}, THROUGHPUT, ("batch_service_tier",)),
        ({"service_tier": "priority"}, TTFT, ("priority_service_tier",)),
        ({"service_tier": "auto", "stream": True}, TTFT, ("stream",)),
        ({"background": True, "stream": True}, THROUGHPUT, ("background",)),
        ({"surface": "llamacpp_infill"}, TTFT, ("infill",)),
        ({"surface": "openai_embeddings", "prompts": 500}, THROUGHPUT, ("embedding", "many_texts")),
        ({"surface": "ollama_embed", "prompt_tokens": 12}, MIXED, ("embedding", "query")),
        ({"surface": "openai_embeddings", "prompt_tokens": 400}, THROUGHPUT, ("embedding",)),
        ({"surface": "rerank", "prompts": 20}, MIXED, ("ranking",)),
        ({"surface": "score", "prompts": 500}, THROUGHPUT, ("ranking",)),
        ({"surface": "tokenize"}, TTFT, ("no_generation",)),
        ({"last_role": "tool", "stream": True}, MIXED, ("tool_results",)),
        ({"tool_results": 1, "last_role": "user"}, MIXED, ("tool_results",)),
        ({"tools": 3, "stream": True}, MIXED, ("tools", "stream")),
        ({"tools": 3}, MIXED, ("tools",)),
        ({"surface": "openai_completions", "prompts": 16, "stream": True}, THROUGHPUT, ("many_prompts",)),
        ({"choices": 4}, THROUGHPUT, ("many_choices",)),
        ({"response_format": "json_schema"}, THROUGHPUT, ("no_stream", "records")),
        ({"response_format": "json_object", "stream": True}, THROUGHPUT, ("stream", "records")),
        ({"stream": True}, TTFT, ("stream",)),
        ({"stream": True, "turns": 6, "prompt_tokens": 3000}, TTFT, ("stream", "conversation")),
        ({"stream": True, "turns": 1, "prompt_tokens": 3000}, MIXED, ("stream", "document")),
        ({"stream": True, "turns": 6, "prompt_tokens": 9000}, MIXED, ("stream", "long_prompt")),
        ({"turns": 6, "prompt_tokens": 9000}, MIXED, ("no_stream", "conversation")),
        ({"previous_response_id": "r"}, MIXED, ("no_stream", "conversation")),
        ({"prompt_tokens": 9000}, THROUGHPUT, ("no_stream", "long_prompt")),
        ({"max_tokens": 8}, THROUGHPUT, ("no_stream", "short_answer")),
        ({"max_tokens": 0}, THROUGHPUT, ("no_stream",)),
        ({"max_tokens": 500}, THROUGHPUT, ("no_stream",)),
        ({}, THROUGHPUT, ("no_stream",)),
    ],
)
def test_the_shape_of_a_call_tells_its_class(
    call: dict[str, Any], call_class: CallClass, reasons: tuple[str, ...]
) -> None:
    verdict = verdict_of(**call)

    assert verdict is not None
    assert (verdict.call_class, verdict.reasons, verdict.source) == (call_class, reasons, Source.BUILTIN)


def test_nothing_can_be_told_of_a_recording() -> None:
    assert verdict_of(surface="openai_audio") is None


def test_a_hop_that_may_face_a_person_is_judged_less_surely() -> None:
    streamed, whole = verdict_of(tools=1, stream=True), verdict_of(tools=1)

    assert streamed is not None
    assert whole is not None
    assert streamed.confidence < whole.confidence


def test_no_row_is_certain_and_every_reason_is_a_stable_word() -> None:
    for _, verdict in PURPOSE + SHAPES:
        if verdict is not None:
            assert 0.5 <= verdict.confidence < 1
            assert all(reason.replace("_", "").isalpha() and reason.islower() for reason in verdict.reasons)


CALLS = st.builds(
    Features,
    surface=st.sampled_from(
        ["openai_chat", "openai_embeddings", "rerank", "openai_audio", "tokenize", "llamacpp_infill", "x"]
    ),
    stream=st.booleans(),
    prompt_tokens=st.integers(0, 200_000),
    turns=st.integers(0, 50),
    prompts=st.integers(0, 2000),
    max_tokens=st.none() | st.integers(-1, 4096),
    tools=st.integers(0, 50),
    service_tier=st.sampled_from(["", "auto", "flex", "priority"]),
    background=st.booleans(),
)


@given(CALLS)
def test_a_call_is_plain_only_where_no_row_about_purposes_holds(features: Features) -> None:
    said = next((verdict for holds, verdict in PURPOSE if holds(features)), None)
    assert Builtin(shapes=False).classify(features) == said


@given(CALLS)
def test_any_call_that_is_no_recording_gets_a_verdict(features: Features) -> None:
    told = features.surface != "openai_audio" or features.background or features.service_tier in ("flex", "priority")
    assert (Builtin().classify(features) is not None) == told

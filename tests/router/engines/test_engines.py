"""What holds for all kinds together: which one recognises what, and what they all must bear."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.api import CallClass
from policies.api import Lane
from router.engines import ENGINES, IDENTITY_PATHS, recognise
from router.engines.api import Answer, Loading, Ready, Sick
from router.surfaces import SURFACES
from tests.router.engines.fixtures import (
    LLAMACPP,
    LLAMACPP_LOADING,
    LMSTUDIO,
    LMSTUDIO_SHRUG,
    OLLAMA,
    OTHER,
    SGLANG,
    VLLM,
    told,
)

SERVERS: Mapping[str, Mapping[str, Answer]] = {
    "llamacpp": LLAMACPP,
    "vllm": VLLM,
    "sglang": SGLANG,
    "ollama": OLLAMA,
    "lmstudio": LMSTUDIO,
    "openai": OTHER,
}


@pytest.mark.parametrize("kind", SERVERS)
def test_each_server_is_recognised_as_what_it_is(kind: str) -> None:
    identity = recognise(SERVERS[kind])
    assert identity is not None
    assert identity.engine == kind


@pytest.mark.parametrize("kind", SERVERS)
def test_no_more_specific_kind_takes_a_server_of_another(kind: str) -> None:
    for other, engine in ENGINES.items():
        if other == kind:
            break
        assert engine.recognise(SERVERS[kind]) is None


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {path: told(b"<html>hello</html>") for path in IDENTITY_PATHS},
        {path: told(b"Forbidden", 403) for path in IDENTITY_PATHS},
        {path: told({"status": "ok", "version": "1.2"}) for path in IDENTITY_PATHS},
        {path: told(LMSTUDIO_SHRUG) for path in IDENTITY_PATHS},
        {path: told([1, 2, None]) for path in IDENTITY_PATHS},
        {"/v1/models": told({"data": "nothing"})},
        {"/v1/models": told({"data": []})},
    ],
    ids=["silence", "web site", "forbidden", "some API", "shrug", "lists", "wrong type", "some list"],
)
def test_what_is_no_inference_server_is_not_recognised(answers: Mapping[str, Answer]) -> None:
    assert recognise(answers) is None


def test_engines_are_keyed_by_the_names_of_the_settings() -> None:
    assert list(ENGINES) == ["llamacpp", "vllm", "sglang", "ollama", "lmstudio", "openai"]
    assert all(engine.name == name for name, engine in ENGINES.items())


def test_local_servers_start_in_the_latency_lane_and_batching_servers_in_the_other() -> None:
    lanes = {name: engine.default_lane for name, engine in ENGINES.items()}
    assert {name for name, lane in lanes.items() if lane is Lane.LATENCY} == {"llamacpp", "ollama", "lmstudio"}


def test_all_kinds_serve_chat() -> None:
    assert all("openai_chat" in engine.surfaces for engine in ENGINES.values())


def test_every_surface_that_a_kind_claims_exists() -> None:
    claimed = set().union(*(engine.surfaces for engine in ENGINES.values()))
    assert claimed <= set(SURFACES)


def test_only_kinds_with_that_api_are_given_its_calls() -> None:
    def having(surface: str) -> set[str]:
        return {name for name, engine in ENGINES.items() if surface in engine.surfaces}

    assert having("llamacpp_completion") == {"llamacpp"}
    assert having("tokenize") == {"llamacpp", "vllm", "sglang"}
    assert having("score") == {"vllm", "sglang", "openai"}
    assert having("anthropic_count_tokens") == {"llamacpp", "vllm", "sglang"}
    assert having("ollama_chat") == {"ollama", "sglang"}
    assert having("ollama_embed") == {"ollama"}


def test_priority_runs_down_on_vllm_up_on_sglang_and_is_not_sent_elsewhere() -> None:
    """Field case: sent blindly, the number inverts the order."""

    def number(kind: str, call_class: CallClass) -> int:
        priority = ENGINES[kind].priority(call_class)
        assert priority is not None
        return priority

    order = (CallClass.TTFT, CallClass.MIXED, CallClass.THROUGHPUT)
    vllm = [number("vllm", call_class) for call_class in order]
    sglang = [number("sglang", call_class) for call_class in order]
    assert vllm == sorted(vllm)
    assert sglang == sorted(sglang, reverse=True)
    assert len(set(vllm)) == len(set(sglang)) == 3
    for kind in ("llamacpp", "ollama", "lmstudio", "openai"):
        assert ENGINES[kind].priority(CallClass.TTFT) is None


@pytest.mark.parametrize("kind", ENGINES)
def test_health_answers_of_all_kinds(kind: str) -> None:
    engine = ENGINES[kind]
    assert engine.ready(told(b"")) == Ready()
    assert engine.ready(told(b"slow down", 429)) == Ready()
    assert engine.ready(told(LLAMACPP_LOADING, 503)) == Loading()
    assert engine.ready(told(b"", 503)) == Sick(f"{engine.health_path} answered HTTP 503")
    refused = engine.ready(told({"error": "no"}, 401))
    assert isinstance(refused, Sick)
    assert "api_key" in refused.reason


OVERFLOWS = [
    {"error": {"code": 400, "message": "request (9000 tokens) exceeds it", "type": "exceed_context_size_error"}},
    {
        "error": {
            "code": 400,
            "message": "the request exceeds the available context size",
            "type": "invalid_request_error",
        }
    },
    {"error": {"message": "This model's maximum context length is 2560 tokens. However, ...", "code": 400}},
    {"object": "error", "message": "This model's maximum context length is 2560 tokens."},
    {"error": {"message": "The input (9000 tokens) is longer than the model's context length (2560 tokens)."}},
    {"message": "Requested token count exceeds the model's maximum context length of 2560 tokens."},
    {"error": "the input length exceeds the context length"},
    {"error": "The number of tokens to keep is greater than the context length (n_keep: 9 >= n_ctx: 4)"},
    {"type": "error", "error": {"type": "exceed_context_size_error", "message": "too long"}},
    {"error": {"message": "Too long", "type": "invalid_request_error", "code": "context_length_exceeded"}},
]


@pytest.mark.parametrize("kind", ENGINES)
def test_a_prompt_that_does_not_fit_is_told_from_a_call_that_is_wrong(kind: str) -> None:
    engine = ENGINES[kind]
    for body in OVERFLOWS:
        assert engine.context_overflow(told(body, 400)), body
    assert not engine.context_overflow(told({"error": {"message": "messages: field required"}}, 400))
    assert not engine.context_overflow(told({"error": {"message": "no such model", "code": "model_not_found"}}, 404))
    assert not engine.context_overflow(told(b"<html>413</html>", 413))
    assert not engine.context_overflow(told({"detail": [{"input": "maximum context length"}]}, 422))
    assert not engine.context_overflow(told(OVERFLOWS[0], 500))
    assert not engine.context_overflow(told({"choices": [{"text": "maximum context length"}]}, 200))


WRONG_CALLS = [
    "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    "image input is not supported by this server",
    "audio input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    "Failed to load image or audio file",
    "input (513 tokens) is too large to process. increase the physical batch size (current batch size: 512)",
    'Failed to parse messages: Unsupported content part type: "image_url"; messages = []',
    "\n------------\nWhile executing CallExpression\nError: Jinja Exception: Conversation roles must alternate",
    "Conversation roles must alternate user/assistant/user/assistant/... at row 19, column 27",
    "tools param requires --jinja flag",
    "[json.exception.type_error.302] type must be string, but is null",
]


@pytest.mark.parametrize("kind", ENGINES)
def test_a_wrong_call_is_told_from_a_broken_server_though_both_are_a_500(kind: str) -> None:
    engine = ENGINES[kind]
    for message in WRONG_CALLS:
        assert engine.blames_call(told({"error": {"code": 500, "message": message, "type": "server_error"}}, 500))
    assert engine.blames_call(told({"error": "this model is missing data required for image input"}, 500))
    for message in ("Compute error.", "CUDA error: out of memory", "EngineCore encountered an issue", ""):
        assert not engine.blames_call(told({"error": {"code": 500, "message": message}}, 500))
    assert not engine.blames_call(told({"error": {"message": WRONG_CALLS[0]}}, 502))
    assert not engine.blames_call(told(WRONG_CALLS[0].encode(), 500))


_KEYS = ["data", "models", "id", "owned_by", "meta", "n_ctx", "total_slots", "default_generation_settings", "error"]
_KEYS += ["loaded_instances", "config", "aliases", "version", "internal_states", "loads", "name"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(_KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
BODY = st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode())
PATHS = sorted({*IDENTITY_PATHS, *(path for engine in ENGINES.values() for path in engine.load_paths)})


@given(st.dictionaries(st.sampled_from(PATHS), st.tuples(st.sampled_from([200, 404, 503]), BODY), max_size=6))
def test_no_answers_make_any_kind_raise(raw: dict[str, tuple[int, bytes]]) -> None:
    answers = {path: Answer(status, body) for path, (status, body) in raw.items()}
    recognise(answers)
    for engine in ENGINES.values():
        engine.recognise(answers)
        engine.load(answers, ("m",))
        for answer in answers.values():
            engine.ready(answer)
            engine.context_overflow(answer)
            engine.blames_call(answer)

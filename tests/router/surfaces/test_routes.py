"""Paths and what they lead to."""

from __future__ import annotations

import pytest

from router.errors import MethodNotAllowed, NotFound
from router.surfaces import SURFACES, Kind, error_surface, find


@pytest.mark.parametrize(
    ("method", "path", "surface", "kind", "target"),
    [
        ("POST", "/v1/chat/completions", "openai_chat", Kind.GENERATE, "/v1/chat/completions"),
        ("POST", "/chat/completions", "openai_chat", Kind.GENERATE, "/v1/chat/completions"),
        ("POST", "/v1/completions", "openai_completions", Kind.GENERATE, "/v1/completions"),
        ("POST", "/completions", "openai_completions", Kind.GENERATE, "/v1/completions"),
        ("POST", "/v1/embeddings", "openai_embeddings", Kind.GENERATE, "/v1/embeddings"),
        ("POST", "/embeddings", "openai_embeddings", Kind.GENERATE, "/v1/embeddings"),
        ("POST", "/v1/responses", "openai_responses", Kind.GENERATE, "/v1/responses"),
        ("POST", "/v1/audio/transcriptions", "openai_audio", Kind.GENERATE, "/v1/audio/transcriptions"),
        ("POST", "/v1/audio/translations", "openai_audio", Kind.GENERATE, "/v1/audio/translations"),
        ("POST", "/v1/audio/speech", "openai_audio", Kind.GENERATE, "/v1/audio/speech"),
        ("GET", "/v1/models", "openai_models", Kind.MODELS, "/v1/models"),
        ("GET", "/models", "openai_models", Kind.MODELS, "/v1/models"),
        ("POST", "/v1/rerank", "rerank", Kind.GENERATE, "/v1/rerank"),
        ("POST", "/v2/rerank", "rerank", Kind.GENERATE, "/v1/rerank"),
        ("POST", "/rerank", "rerank", Kind.GENERATE, "/v1/rerank"),
        ("POST", "/v1/score", "score", Kind.GENERATE, "/v1/score"),
        ("POST", "/score", "score", Kind.GENERATE, "/v1/score"),
        ("POST", "/tokenize", "tokenize", Kind.UTILITY, "/tokenize"),
        ("POST", "/detokenize", "detokenize", Kind.UTILITY, "/detokenize"),
        ("POST", "/v1/messages", "anthropic_messages", Kind.GENERATE, "/v1/messages"),
        ("POST", "/v1/messages/count_tokens", "anthropic_count_tokens", Kind.UTILITY, "/v1/messages/count_tokens"),
        ("POST", "/api/chat", "ollama_chat", Kind.GENERATE, "/api/chat"),
        ("POST", "/api/generate", "ollama_generate", Kind.GENERATE, "/api/generate"),
        ("POST", "/api/embed", "ollama_embed", Kind.GENERATE, "/api/embed"),
        ("POST", "/api/embeddings", "ollama_embed", Kind.GENERATE, "/api/embeddings"),
        ("POST", "/api/show", "ollama_show", Kind.UTILITY, "/api/show"),
        ("GET", "/api/tags", "ollama_tags", Kind.MODELS, "/api/tags"),
        ("GET", "/api/ps", "ollama_ps", Kind.MODELS, "/api/ps"),
        ("GET", "/api/version", "ollama_version", Kind.MODELS, "/api/version"),
        ("POST", "/completion", "llamacpp_completion", Kind.GENERATE, "/completion"),
        ("POST", "/infill", "llamacpp_infill", Kind.GENERATE, "/infill"),
        ("POST", "/apply-template", "llamacpp_apply_template", Kind.UTILITY, "/apply-template"),
    ],
)
def test_each_documented_path_leads_to_its_api(method: str, path: str, surface: str, kind: Kind, target: str) -> None:
    route = find(method, path)
    assert (route.surface.name, route.kind, route.target, route.response_id) == (surface, kind, target, "")


@pytest.mark.parametrize(
    ("method", "rest"), [("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items")]
)
def test_a_stored_response_is_asked_for_by_its_id(method: str, rest: str) -> None:
    path = f"/v1/responses/resp_a%2Fb{rest}"
    route = find(method, path)
    assert route.kind is Kind.FOLLOW_UP
    assert (route.surface.name, route.response_id, route.target) == ("openai_responses", "resp_a/b", path)


@pytest.mark.parametrize("written", ["Qwen/Qwen3-4B", "Qwen%2FQwen3-4B"])
@pytest.mark.parametrize("prefix", ["/v1/models/", "/models/"])
def test_one_model_is_asked_about_by_a_name_with_slashes(prefix: str, written: str) -> None:
    route = find("GET", prefix + written)
    assert (route.kind, route.response_id) == (Kind.MODELS, "Qwen/Qwen3-4B")
    assert route.target == f"/v1/models/{written}"


@pytest.mark.parametrize(
    ("method", "path", "target"),
    [
        ("POST", "/v1/v1/chat/completions", "/v1/chat/completions"),
        ("POST", "//v1/chat/completions", "/v1/chat/completions"),
        ("POST", "/v1//chat/completions", "/v1/chat/completions"),
        ("POST", "/v1/chat/completions/", "/v1/chat/completions"),
        ("POST", "/v1/responses/", "/v1/responses"),
        ("POST", "/v1/v1/messages/count_tokens", "/v1/messages/count_tokens"),
        ("GET", "/v1/models/", "/v1/models"),
        ("POST", "/responses", "/v1/responses"),
        ("GET", "/responses/a", "/v1/responses/a"),
        ("POST", "/responses/a/cancel", "/v1/responses/a/cancel"),
        ("POST", "/audio/transcriptions", "/v1/audio/transcriptions"),
        ("POST", "/audio/translations", "/v1/audio/translations"),
        ("POST", "/audio/speech", "/v1/audio/speech"),
        ("POST", "/messages", "/v1/messages"),
        ("POST", "/messages/count_tokens", "/v1/messages/count_tokens"),
    ],
)
def test_a_base_url_that_is_wrong_by_a_slash_or_a_version_is_forgiven(method: str, path: str, target: str) -> None:
    assert find(method, path).target == target


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/m", "/api/tags", "/v1/responses/a"])
def test_head_leads_where_get_does(path: str) -> None:
    assert find("HEAD", path) == find("GET", path)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "//",
        "/v1/v1",
        "/v1/v1/v1/chat/completions",
        "/v2/chat/completions",
        "/v1/responses//cancel",
        "/v1/responses/a/other",
        "/v1/responses/input_tokens",
        "/v1/responses/compact",
        "/responses/input_tokens",
        "/v1/responses/a/cancel/b",
        "/api/pull",
    ],
)
def test_any_other_path_is_not_found_and_the_error_lists_what_exists(path: str) -> None:
    with pytest.raises(NotFound) as caught:
        find("POST", path)
    assert "POST /v1/chat/completions" in caught.value.message
    assert "DELETE /v1/responses/{id}" in caught.value.message


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v1/chat/completions", ("POST",)),
        ("HEAD", "/v1/chat/completions", ("POST",)),
        ("POST", "/v1/models", ("GET", "HEAD")),
        ("DELETE", "/v1/models/m", ("GET", "HEAD")),
        ("PUT", "/v1/responses/a", ("GET", "HEAD", "DELETE")),
        ("get", "/api/tags", ("GET", "HEAD")),
    ],
)
def test_another_method_is_refused_with_those_that_work(method: str, path: str, allow: tuple[str, ...]) -> None:
    with pytest.raises(MethodNotAllowed) as caught:
        find(method, path)
    assert caught.value.allow == allow


def test_a_giant_path_does_not_come_back_in_the_error() -> None:
    with pytest.raises(NotFound) as caught:
        find("X" * 5000, "/" + "a" * 100_000)
    assert len(caught.value.message) < 3000


@pytest.mark.parametrize(
    ("path", "surface"),
    [
        ("/v1/messages", "anthropic_messages"),
        ("/v1/v1/messages", "anthropic_messages"),
        ("/v1/messages/batches", "anthropic_messages"),
        ("/messages/batches", "anthropic_messages"),
        ("/api/chat", "ollama_chat"),
        ("/api/pull", "ollama_chat"),
        ("/completion", "llamacpp_completion"),
        ("/v1/responses/a", "openai_chat"),
        ("/whatever", "openai_chat"),
    ],
)
def test_errors_take_the_shape_of_the_nearest_api(path: str, surface: str) -> None:
    assert error_surface(path).name == surface


def test_every_surface_is_listed_under_its_own_name() -> None:
    assert all(name == surface.name for name, surface in SURFACES.items())
    assert len(SURFACES) == 22

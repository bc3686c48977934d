"""Answers of servers, cut down to what is read, in the shapes that the real ones have."""

from __future__ import annotations

import json
from collections.abc import Mapping

from router.engines.api import Answer

LLAMACPP_PROPS = {
    "default_generation_settings": {"params": {"temperature": 0.8}, "n_ctx": 2560},
    "total_slots": 4,
    "model_alias": "tiny",
    "model_path": "tiny-f16.gguf",
    "build_info": "b11549-0a1b2c3",
    "is_sleeping": False,
}
LLAMACPP_MODELS = {
    "models": [{"name": "tiny", "capabilities": ["completion"]}],
    "object": "list",
    "data": [
        {
            "id": "tiny",
            "aliases": ["tiny", "small"],
            "object": "model",
            "owned_by": "llamacpp",
            "meta": {"n_ctx": 2560, "n_ctx_train": 8192},
        }
    ],
}
LLAMACPP_ROUTER_PROPS = {
    "role": "router",
    "model_path": "none",
    "default_generation_settings": {"params": {}, "n_ctx": 0},
    "build_info": "b11549-0a1b2c3",
}
LLAMACPP_ROUTER_MODELS = {
    "object": "list",
    "data": [
        {"id": "gemma", "owned_by": "llamacpp", "status": {"value": "loaded"}, "meta": {"n_ctx": 4096}},
        {"id": "qwen", "owned_by": "llamacpp", "status": {"value": "unloaded"}},
    ],
}
LLAMACPP_LOADING = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
LLAMACPP_OFF = {"error": {"message": "This server does not support it.", "type": "not_supported_error", "code": 501}}
LLAMACPP_METRICS = b"""\
# HELP llamacpp:requests_processing Calls that are worked on
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 3
# HELP llamacpp:requests_deferred Calls that wait
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 2
llamacpp:n_busy_slots_per_decode 1.5
"""
LLAMACPP_SLOTS = [
    {"id": 0, "n_ctx": 2560, "is_processing": True, "params": {"temperature": 0.8}, "prompt": "my secret diary"},
    {"id": 1, "n_ctx": 2560, "is_processing": False},
    {"id": 2, "n_ctx": 2560, "is_processing": True},
]

VLLM_MODELS = {
    "object": "list",
    "data": [
        {"id": "qwen3", "object": "model", "owned_by": "vllm", "max_model_len": 32768, "parent": None},
        {"id": "my-lora", "object": "model", "owned_by": "vllm", "max_model_len": None, "parent": "qwen3"},
    ],
}
VLLM_METRICS = b"""\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="qwen3"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="qwen3"} 6.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="qwen3",reason="capacity"} 6.0
vllm:kv_cache_usage_perc{engine="0",model_name="qwen3"} 0.25
"""

SGLANG_MODELS = {"object": "list", "data": [{"id": "llama", "owned_by": "sglang", "max_model_len": 131072}]}
SGLANG_INFO = {
    "model_path": "meta/llama",
    "served_model_name": "llama",
    "tp_size": 2,
    "context_length": None,
    "max_running_requests": 128,
    "internal_states": [
        {"effective_max_running_requests_per_dp": 52},
        {"effective_max_running_requests_per_dp": 52},
    ],
    "version": "0.5.9",
}
SGLANG_METRICS = b"""\
sglang:num_running_reqs{engine_type="unified",model_name="llama",pp_rank="0",tp_rank="0"} 5.0
sglang:num_queue_reqs{engine_type="unified",model_name="llama",pp_rank="0",tp_rank="0"} 7.0
sglang:token_usage{engine_type="unified",model_name="llama",pp_rank="0",tp_rank="0"} 0.5
"""

OLLAMA_TAGS = {"models": [{"name": "qwen3:latest", "model": "qwen3:latest", "size": 1}, {"name": "gemma3:1b"}]}
OLLAMA_PS = {"models": [{"name": "qwen3:latest", "size_vram": 1, "context_length": 4096}]}

LMSTUDIO_MODELS = {"object": "list", "data": [{"id": "qwen/qwen3-4b", "owned_by": "organization_owner"}]}
LMSTUDIO_V0 = {
    "object": "list",
    "data": [
        {
            "id": "qwen/qwen3-4b",
            "type": "llm",
            "compatibility_type": "gguf",
            "state": "loaded",
            "loaded_context_length": 8192,
        },
        {
            "id": "on-disk",
            "type": "llm",
            "compatibility_type": "mlx",
            "state": "not-loaded",
            "max_context_length": 32768,
        },
    ],
}
LMSTUDIO_V1 = {
    "models": [
        {
            "type": "llm",
            "key": "qwen/qwen3-4b",
            "max_context_length": 262144,
            "loaded_instances": [{"id": "qwen/qwen3-4b", "config": {"context_length": 8192, "parallel": 4}}],
        },
        {
            "type": "embedding",
            "key": "nomic",
            "loaded_instances": [{"id": "nomic", "config": {"context_length": 2048, "parallel": 1}}],
        },
    ]
}
LMSTUDIO_SHRUG = {"error": "Unexpected endpoint or method. (GET /nowhere)"}


def told(value: object, status: int = 200) -> Answer:
    """An answer with that JSON, or with those bytes."""
    return Answer(status, value if isinstance(value, bytes) else json.dumps(value).encode())


LLAMACPP: Mapping[str, Answer] = {
    "/health": told({"status": "ok"}),
    "/props": told(LLAMACPP_PROPS),
    "/v1/models": told(LLAMACPP_MODELS),
    "/api/tags": told({"models": [{"name": "tiny"}]}),
}
VLLM: Mapping[str, Answer] = {
    "/health": told(b""),
    "/v1/models": told(VLLM_MODELS),
    "/version": told({"version": "0.32.0"}),
    "/props": told({"detail": "Not Found"}, 404),
}
SGLANG: Mapping[str, Answer] = {
    "/health": told(b""),
    "/v1/models": told(SGLANG_MODELS),
    "/server_info": told(SGLANG_INFO),
    "/": told(b'"Ollama is running"'),
}
OLLAMA: Mapping[str, Answer] = {
    "/": told(b"Ollama is running"),
    "/api/version": told({"version": "0.14.2"}),
    "/api/tags": told(OLLAMA_TAGS),
    "/api/ps": told(OLLAMA_PS),
    "/v1/models": told({"object": "list", "data": [{"id": "qwen3:latest", "owned_by": "library"}]}),
    "/health": told(b"404 page not found", 404),
}
LMSTUDIO: Mapping[str, Answer] = {
    "/health": told(LMSTUDIO_SHRUG),
    "/props": told(LMSTUDIO_SHRUG),
    "/api/version": told(LMSTUDIO_SHRUG),
    "/api/tags": told(LMSTUDIO_SHRUG),
    "/v1/models": told(LMSTUDIO_MODELS),
    "/api/v0/models": told(LMSTUDIO_V0),
    "/api/v1/models": told(LMSTUDIO_V1),
}
OTHER: Mapping[str, Answer] = {
    "/v1/models": told(
        {"object": "list", "data": [{"id": "m1", "owned_by": "me", "context_length": 16384}, {"id": "m2"}]}
    ),
    "/health": told(b"<html>Not found</html>", 404),
}

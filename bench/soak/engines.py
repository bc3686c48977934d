"""What the backends of the soak say when they are probed: enough to be taken for the engine that the settings name."""

from __future__ import annotations

import json
from collections.abc import Mapping

MODEL = "soak"
"""Every backend knows it."""
ANY = "soak-any"
"""An alias: each backend has a name of its own for it."""
ENGINES = ("llamacpp", "vllm", "ollama", "ollama")
"""Of the backends, in their order. Two offer Ollama's API, all four offer the others."""


def name_of(place: int) -> str:
    return f"b{place}"


def own_model(place: int) -> str:
    return f"{MODEL}-{place}"


def _json(document: object) -> bytes:
    return _response(json.dumps(document).encode(), "application/json")


def _response(body: bytes, kind: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


NOT_FOUND = _response(b'{"error":"not here"}', "application/json", "404 Not Found")


def _models(owner: str) -> bytes:
    return _json({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": owner}]})


_LLAMACPP = {
    b"/health": _json({"status": "ok"}),
    b"/props": _json({"default_generation_settings": {"n_ctx": 1_000_000}, "total_slots": 64}),
    b"/v1/models": _models("llamacpp"),
    b"/metrics": _response(b"llamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n", "text/plain"),
}
_VLLM = {
    b"/health": _response(b"", "text/plain"),
    b"/v1/models": _models("vllm"),
    b"/version": _json({"version": "0.32.0"}),
    b"/metrics": _response(b"vllm:num_requests_running 0.0\nvllm:num_requests_waiting 0.0\n", "text/plain"),
}
_OLLAMA = {
    b"/": _response(b"Ollama is running", "text/plain"),
    b"/api/version": _json({"version": "0.9.0"}),
    b"/api/tags": _json({"models": [{"name": f"{MODEL}:latest"}]}),
    b"/api/ps": _json({"models": []}),
}
PROBES: Mapping[str, Mapping[bytes, bytes]] = {"llamacpp": _LLAMACPP, "vllm": _VLLM, "ollama": _OLLAMA}

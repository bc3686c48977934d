"""How the four families of client APIs say that something went wrong: inside an answer, and inside a stream."""

from __future__ import annotations

from typing import Any

import orjson

from router.errors import BackendSaid, Fault, ModelLoading, RouterError

_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_LLAMACPP_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    503: "unavailable_error",
}


def _type(error: RouterError, names: dict[int, str], other: str) -> str:
    """The family's own word for a status; `other` where the fault is a server's and there is none."""
    of_client = error.status < 500 or error.fault is Fault.CLIENT
    return names.get(error.status, "invalid_request_error" if of_client else other)


def _openai(error: RouterError) -> dict[str, Any]:
    kind = _type(error, _OPENAI_TYPES, "server_error")
    return {"message": error.message, "type": kind, "param": error.param, "code": error.code}


def _in_its_own_words(error: RouterError) -> bytes:
    """Clients act upon what servers say: on a code of theirs, or llama.cpp's on its model that is loading."""
    return error.said if isinstance(error, ModelLoading | BackendSaid) else b""


class OpenAIErrors:
    """`{"error": {...}}`, also as the last event of a stream: its clients raise what is under `error`."""

    def error_body(self, error: RouterError) -> bytes:
        return _in_its_own_words(error) or orjson.dumps({"error": _openai(error)})

    def error_event(self, error: RouterError) -> bytes:
        return b"data: %b\n\n" % self.error_body(error)


class ResponsesErrors(OpenAIErrors):
    """Events of the Responses API carry their type, and an `error` event has its fields at the top."""

    def error_event(self, error: RouterError) -> bytes:
        described = _openai(error)
        event = {**described, "type": "error", "error": described}
        return b"event: error\ndata: %b\n\n" % orjson.dumps(event)


class AnthropicErrors:
    """`{"type": "error", "error": {...}}`, in a stream as an event of that name."""

    def error_body(self, error: RouterError) -> bytes:
        if isinstance(error, BackendSaid) and error.said.startswith(b'{"type":"error"'):
            return error.said
        kind = _type(error, _ANTHROPIC_TYPES, "api_error")
        return orjson.dumps({"type": "error", "error": {"type": kind, "message": error.message}})

    def error_event(self, error: RouterError) -> bytes:
        return b"event: error\ndata: %b\n\n" % self.error_body(error)


class OllamaErrors:
    """`{"error": "..."}`, in a stream as a line."""

    def error_body(self, error: RouterError) -> bytes:
        return orjson.dumps({"error": error.message})

    def error_event(self, error: RouterError) -> bytes:
        return self.error_body(error) + b"\n"


class LlamaCppErrors:
    """`{"error": {...}}` with the status as a number in it."""

    def error_body(self, error: RouterError) -> bytes:
        kind = _type(error, _LLAMACPP_TYPES, "server_error")
        return _in_its_own_words(error) or orjson.dumps(
            {"error": {"code": error.status, "message": error.message, "type": kind}}
        )

    def error_event(self, error: RouterError) -> bytes:
        return b"data: %b\n\n" % self.error_body(error)

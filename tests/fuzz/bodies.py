"""Targets: what clients send as JSON and as forms."""

from __future__ import annotations

import json
from typing import Any, Final

from classifiers.chain import Chain
from classifiers.conditions import NUMBERS, compile_condition
from classifiers.hints import affinity_key
from router.errors import BadRequest
from router.surfaces import SURFACES, Kind, Route, read_call
from router.surfaces.routes import find
from router.wire.splice import multipart_field, replace_model, replace_multipart_model
from tests.fuzz.pieces import Source

ROUTES: Final = [
    find("POST", path)
    for path in (
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/v1/audio/speech",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/embeddings",
        "/v1/audio/transcriptions",
        "/v1/rerank",
        "/v1/score",
        "/tokenize",
        "/detokenize",
        "/api/chat",
        "/api/embed",
        "/api/generate",
        "/api/show",
        "/infill",
        "/completion",
        "/apply-template",
    )
]
"""Each client API that reads a body; every second one has a reader of its own."""

_WORDS: Final = """
model messages role content type text input prompt system tools tool_calls function function_call name arguments images
stream options num_predict response_format format max_tokens max_completion_tokens n best_of priority background suffix
service_tier source data tool_result user assistant tool query documents prompt_string multimodal_data input_extra
input_prefix instructions output summary reasoning thinking output_config stream_format prompt_cache_key functions
previous_response_id image_url input_audio custom refusal
"""
WORDS: Final = tuple(_WORDS.split())
"""Names and types that some API knows."""

FORM_TYPE: Final = "multipart/form-data; boundary=XyZ"
_CHAIN: Final = Chain()
_ANY_NUMBER: Final = compile_condition({name: "-5..999999" for name in NUMBERS})


def check_call(route: Route, body: bytes, content_type: str = "application/json") -> None:
    """A call is read and judged, or refused with a sentence."""
    try:
        features = read_call(route, body, {"content-type": content_type})
    except BadRequest as error:
        assert 0 < len(error.message) < 1000
        return
    assert features.surface == route.surface.name
    assert 0 <= features.last_tokens <= features.prompt_tokens
    assert 0 <= features.system_tokens <= features.prompt_tokens
    assert features.prompts >= 1
    assert features.choices >= 1
    if features.model is not None:
        assert features.model.encode().decode() == features.model
    _CHAIN.classify(features)
    _ANY_NUMBER(features)
    assert len(affinity_key(features)) <= 64


def check_errors(message: str) -> None:
    """An error is JSON in every API, whatever it quotes."""
    error = BadRequest(message)
    for surface in SURFACES.values():
        assert isinstance(json.loads(surface.error_body(error)), dict)
        assert b"\n\n" not in surface.error_event(error).rstrip(b"\n")


def check_splice(body: bytes) -> None:
    """Any bytes: nothing is raised. A JSON object: its model is another, and all else means the same."""
    new = 'a "new" name/é'
    replaced = replace_model(body, new)
    value = _json(body)
    if isinstance(value, dict):
        expected = {**value, "model": new} if "model" in value else value
        assert repr(_json(replaced)) == repr(expected)
        if "model" not in value:
            assert replaced == body
        assert replace_model(replaced, "b") == replace_model(body, "b")


def _json(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def check_form(body: bytes, content_type: str) -> None:
    """Any bytes: nothing is raised. With a model, another one stands in its place; without one nothing changes."""
    model = multipart_field(body, content_type, "model")
    replaced = replace_multipart_model(body, content_type, "new-name")
    if model is None:
        assert replaced == body
    else:
        assert multipart_field(replaced, content_type, "model") == "new-name"
        assert replace_multipart_model(replaced, content_type, "new-name") == replaced
    for name in ("prompt", "stream"):
        assert multipart_field(replaced, content_type, name) == multipart_field(body, content_type, name)


def fuzz_calls(data: bytes) -> None:
    source = Source(data)
    route = source.one_of(ROUTES)
    assert route.kind in (Kind.GENERATE, Kind.UTILITY)
    check_call(route, source.rest(), FORM_TYPE)


def fuzz_splice(data: bytes) -> None:
    check_splice(data)


def fuzz_forms(data: bytes) -> None:
    """The first line is the type, so that boundaries are tried, too."""
    content_type, _, body = data.partition(b"\n")
    check_form(body, content_type.decode("utf-8", "replace"))


def fuzz_errors(data: bytes) -> None:
    check_errors(data.decode("utf-8", "replace"))

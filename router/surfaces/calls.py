"""From the bytes of a request to its features."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from classifiers.api import Features
from router.errors import BadRequest
from router.surfaces.openai_audio import FORM_FIELDS
from router.surfaces.reading import kind
from router.surfaces.routes import Kind, Route
from router.wire.splice import multipart_field

_FORMS = ("/v1/audio/transcriptions", "/v1/audio/translations")
"""Paths that take a form."""
_READ_AGAIN_BYTES = 2 * 2**20
"""The second reader takes five times as long as the first, so long bodies are not its business."""


def read_call(route: Route, body: bytes, headers: Mapping[str, str]) -> Features:
    """Read a call once.

    `body` is free of content codings; `headers` have lower-case names and no secrets among them. Raises `BadRequest`
    with a sentence that says what is wrong and where.
    """
    surface = route.surface
    if route.kind is Kind.FOLLOW_UP:
        return Features(surface=surface.name, previous_response_id=route.response_id, headers=headers)
    if route.kind is Kind.MODELS:
        return Features(surface=surface.name, model=route.response_id or None, headers=headers)
    content_type = headers.get("content-type", "")
    if route.target in _FORMS:
        return surface.features(_form(body, content_type), headers)
    return surface.features(_object(body), headers)


def _object(body: bytes) -> Mapping[str, Any]:
    if not body:
        raise BadRequest("the body is empty; send a JSON object")
    value = _json(body)
    if not isinstance(value, dict):
        raise BadRequest(f"the body is {kind(value)}; send a JSON object")
    return value


def _json(body: bytes) -> Any:
    """What some server in the world would read: strict JSON, or with NaN, a byte order mark, or half a character.

    The last is what is left where a text was cut inside an emoji, as JavaScript writes it.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if len(body) <= _READ_AGAIN_BYTES:
            try:
                return json.loads(body.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                pass
        where = f"line {error.lineno}, column {error.colno}"
        raise BadRequest(f"the body is not JSON: {error.msg} at {where}; send a JSON object") from None


def _form(body: bytes, content_type: str) -> Mapping[str, Any]:
    if not content_type.lower().startswith("multipart/form-data"):
        raise BadRequest("the body is not a form; send multipart/form-data with a file and the name of a model")
    fields = {name: multipart_field(body, content_type, name) for name in FORM_FIELDS}
    return {name: value for name, value in fields.items() if value is not None}

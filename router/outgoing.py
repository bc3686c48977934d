"""The request as a backend gets it: path, headers, its own name for the model. The rest is the client's bytes."""

from __future__ import annotations

import orjson

from router.applicant import Placed
from router.call import Call
from router.engines.answers import as_object, parsed
from router.heads import to_backend
from router.surfaces.ollama import key_of_shown
from router.wire.api import UpstreamRequest
from router.wire.exchange import RawHeaders
from router.wire.splice import replace_model, replace_multipart_model


def upstream_request(call: Call, placed: Placed, body: bytes) -> UpstreamRequest:
    """Build it. The body is touched only where the backend knows the model by another name, or honours a priority."""
    exchange = call.exchange
    settings = placed.backend.settings
    headers: RawHeaders = exchange.raw_headers
    if call.decoded:
        headers = [field for field in headers if field[0].lower() != b"content-encoding"]
    if exchange.started:  # by pings, whose head names no coding
        headers = [field for field in headers if field[0].lower() != b"accept-encoding"]
        headers.append((b"Accept-Encoding", b"identity"))
    if call.trace is not None:
        headers = [field for field in headers if field[0].lower() != b"traceparent"]
        headers.append((b"traceparent", call.trace.header))
    if body:
        content_type = exchange.header("content-type") or ""
        is_form = content_type.lower().startswith("multipart/")
        if placed.model is not None and placed.model != call.features.model:
            body = (
                replace_multipart_model(body, content_type, placed.model)
                if is_form
                else replace_model(body, placed.model, _key_of_model(call, body))
            )
        if settings.forward_priority and placed.lease.occupies_slot and not is_form:
            body = _with_priority(body, placed.backend.engine.priority(call.verdict.call_class))
    api_key = settings.api_key.get_secret_value() if settings.api_key is not None else None
    return UpstreamRequest(
        method=exchange.method,
        target=call.target + exchange.query,
        headers=to_backend(
            headers,
            api_key=api_key,
            request_id=call.request_id,
            forwarded=call.plan.forwarding.fields(exchange.raw_headers, exchange.peer, tls=exchange.tls),
        ),
        body=body,
    )


def _key_of_model(call: Call, body: bytes) -> str:
    """The one of the body from which the name of the model was read."""
    return key_of_shown(as_object(parsed(body))) if call.surface.name == "ollama_show" else "model"


def _with_priority(body: bytes, priority: int | None) -> bytes:
    """With the engine's number for the class in front of the first key; None: it has none. A client's own stays."""
    if priority is None or _names_priority(body):
        return body
    brace = body.index(b"{") + 1
    comma = b"" if body[brace:].lstrip().startswith(b"}") else b","
    return b'%b"priority":%d%b%b' % (body[:brace], priority, comma, body[brace:])


def _names_priority(body: bytes) -> bool:
    """Whether it is a key of the outermost object, whatever its value."""
    if b'"priority"' not in body:
        return False
    try:
        return "priority" in orjson.loads(body)
    except orjson.JSONDecodeError:
        return True  # read, but not by this reader; better none than two

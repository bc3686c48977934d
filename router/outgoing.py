"""The request as a backend gets it: path, headers, its own name for the model. The rest is the client's bytes."""

from __future__ import annotations

from router.call import Call
from router.heads import to_backend
from router.line import Placed
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
    renamed = placed.model is not None and placed.model != call.features.model
    priority = _priority(call, placed)
    if body and (renamed or priority is not None):
        if renamed and placed.model is not None:
            body = _rename(body, exchange.header("content-type") or "", placed.model)
        if priority is not None:
            body = _with_priority(body, priority)
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


def _rename(body: bytes, content_type: str, model: str) -> bytes:
    if content_type.startswith("multipart/"):
        return replace_multipart_model(body, content_type, model)
    return replace_model(body, model)


def _priority(call: Call, placed: Placed) -> int | None:
    """The engine's number for this class, where the operator wants it sent and the client sent none itself."""
    if not placed.backend.settings.forward_priority or call.features.priority is not None:
        return None
    return placed.backend.engine.priority(call.verdict.call_class)


def _with_priority(body: bytes, priority: int) -> bytes:
    """Add the field in front of the object's first key."""
    brace = body.index(b"{") + 1
    comma = b"" if body[brace:].lstrip().startswith(b"}") else b","
    return b'%b"priority":%d%b%b' % (body[:brace], priority, comma, body[brace:])

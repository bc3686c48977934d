"""The head of a request to a backend, as bytes. Pure."""

from __future__ import annotations

from router.errors import BadRequest
from router.wire.api import UpstreamRequest

_OURS = frozenset({b"host", b"connection", b"content-length", b"transfer-encoding"})
_OURS_SIZES = frozenset(map(len, _OURS))
"""Callers leave out all fields that speak of one hop. A second one of these would be a way to smuggle requests, so
it is not left to callers. The size is asked first: it is the cheaper question."""

_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


def request_head(request: UpstreamRequest, authority: bytes) -> bytes:
    """Request line and fields, up to and with the empty line.

    `Content-Length` is sent with every body and with an empty body of a method that usually has one. Raises
    `BadRequest` for a line break inside a field or the target: it would add fields that nobody checked.
    """
    lines = [
        b"%b %b HTTP/1.1\r\nHost: %b"
        % (request.method.encode(), request.target.encode("utf-8", "surrogateescape"), authority)
    ]
    lines += [
        b": ".join(field)
        for field in request.headers
        if len(field[0]) not in _OURS_SIZES or field[0].lower() not in _OURS
    ]
    if request.body or request.method in _METHODS_WITH_BODY:
        lines.append(b"Content-Length: %d" % len(request.body))
    lines.append(b"\r\n")
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(lines) + 1 or head.count(b"\r") != len(lines) + 1:
        raise BadRequest("a header field or the path contains a line break; remove it")
    return head

"""Headers on their way through: what is dropped, what is ours, what passes as it came. Pure, bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from classifiers.api import SECRET_HEADERS
from router.access.forwarding import FORWARDED
from router.wire.exchange import RawHeaders

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Meant for one hop (RFC 9110, 7.6.1)."""

_FOR_THE_ROUTER = frozenset({b"authorization", b"x-api-key", b"api-key", b"cookie"})
"""A client's key is for the router; and its cookies belong to the router's origin, not to servers behind it."""

_NOT_TO_BACKENDS = _HOP_BY_HOP | _FOR_THE_ROUTER | FORWARDED | {b"host", b"content-length", b"expect"}
"""Framing and Host are the upstream client's own; of X-Forwarded-* goes on what `Forwarding` makes of it."""

_PLAIN_CONNECTION = frozenset({b"keep-alive", b"close"})
"""Values of `Connection` that name no other field: nearly all."""

_ABOUT_ORIGINS = frozenset(
    {
        b"access-control-allow-credentials",
        b"access-control-allow-headers",
        b"access-control-allow-methods",
        b"access-control-allow-origin",
        b"access-control-allow-private-network",
        b"access-control-expose-headers",
        b"access-control-max-age",
    }
)
"""Which pages may read an answer of the router is said by its own settings; llama.cpp would let in every page."""

_NOT_TO_CLIENTS = _HOP_BY_HOP | _ABOUT_ORIGINS | {b"content-length"}

_ADD_UP = (b"Server-Timing", b"Vary")
"""Ours stand beside those of a backend."""


def hints(headers: RawHeaders) -> dict[str, str]:
    """Request headers as classifiers may see them: lower-case names, the last of repeated ones, no secrets."""
    found = {_lower(name): value.decode("utf-8", "replace") for name, value in headers}
    for name in SECRET_HEADERS & found.keys():
        del found[name]
    return found


@lru_cache(maxsize=1024)
def _lower(name: bytes) -> str:
    """Clients write the same few dozen names over and over."""
    return name.decode("latin-1").lower()


def to_backend(
    headers: RawHeaders, *, api_key: str | None, request_id: str, forwarded: RawHeaders = ()
) -> list[tuple[bytes, bytes]]:
    """Request headers for a backend. `forwarded`: what it is told of the client's address."""
    kept: list[tuple[bytes, bytes]] = []
    named = has_id = False
    for field in headers:
        name = field[0].lower()
        if name not in _NOT_TO_BACKENDS:
            kept.append(field)
            has_id |= name == b"x-request-id"
        elif name == b"connection":
            named |= field[1].lower() not in _PLAIN_CONNECTION
    if named:
        kept = _without_named(headers, kept)
    if api_key is not None:
        kept.append((b"Authorization", b"Bearer " + api_key.encode()))
    if not has_id:
        kept.append((b"X-Request-Id", request_id.encode("latin-1")))
    kept += forwarded
    return kept


def to_client(headers: RawHeaders, ours: Iterable[tuple[bytes, bytes]], *, stream: bool) -> list[tuple[bytes, bytes]]:
    """Response headers for a client: those of the backend, then ours where the backend has none of that name."""
    kept: list[tuple[bytes, bytes]] = []
    present: set[bytes] = set()
    named = False
    for field in headers:
        name = field[0].lower()
        if name not in _NOT_TO_CLIENTS:
            kept.append(field)
            present.add(name)
        elif name == b"connection":
            named |= field[1].lower() not in _PLAIN_CONNECTION
    if named:
        kept = _without_named(headers, kept)
    if stream:
        # Proxies in front of us would otherwise collect the stream into lumps.
        if b"cache-control" not in present:
            kept.append((b"Cache-Control", b"no-cache"))
        else:
            kept = [_not_cached(field) for field in kept]
        if b"x-accel-buffering" not in present:
            kept.append((b"X-Accel-Buffering", b"no"))
    kept += [field for field in ours if field[0].lower() not in present or field[0] in _ADD_UP]
    return kept


def _not_cached(field: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """What the backend says of caching, `no-transform` for one, and that a stream is not for caches."""
    name, value = field
    if name.lower() != b"cache-control" or b"no-cache" in value or b"no-store" in value:
        return field
    return name, value + b", no-cache"


def _without_named(headers: RawHeaders, kept: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Less the fields that a `Connection` header declares to be for this hop only."""
    named = {
        token.strip().lower() for name, value in headers if name.lower() == b"connection" for token in value.split(b",")
    }
    return [field for field in kept if field[0].lower() not in named]


def request_codings(headers: RawHeaders) -> tuple[str, ...]:
    """Of all `Content-Encoding` fields; those of a later field were applied later."""
    values = [value.decode("latin-1") for name, value in headers if name.lower() == b"content-encoding"]
    return content_codings(",".join(values))


def content_codings(value: str | None) -> tuple[str, ...]:
    """Codings of a `Content-Encoding` header in the order in which they were applied."""
    if not value:
        return ()
    return tuple(coding for part in value.split(",") if (coding := part.strip().lower()) and coding != "identity")

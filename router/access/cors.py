"""Which web pages may read answers of the router from a browser (the CORS protocol of the Fetch standard). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from router.wire.exchange import Exchange

Fields = list[tuple[bytes, bytes]]

_HEADER_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}([ \t]*,[ \t]*[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}){0,99}")
_VARY = (b"Vary", b"Origin")
_ANYBODY = (b"Access-Control-Allow-Origin", b"*")
_READABLE = (
    b"Access-Control-Expose-Headers",
    b"X-Request-Id, X-Twolane-Class, X-Twolane-Backend, X-Twolane-Reason, X-Twolane-Queue-Ms, "
    b"Server-Timing, Retry-After, X-RateLimit-Limit-Requests, X-RateLimit-Remaining-Requests, "
    b"X-RateLimit-Reset-Requests, X-RateLimit-Limit-Tokens, X-RateLimit-Remaining-Tokens, X-RateLimit-Reset-Tokens",
)
_METHODS = (b"Access-Control-Allow-Methods", b"GET, HEAD, POST, PUT, PATCH, DELETE")
_REMEMBER = (b"Access-Control-Max-Age", b"600")
_USUAL_HEADERS = "authorization, content-type, x-api-key, api-key"


class Cors:
    """Origins that are allowed; `*` is any. Cookies are never part of it, so `*` gives away no session."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origins)
        self._anybody = "*" in self._origins

    def headers(self, origin: str | None) -> Fields:
        """What an answer to a page of this origin says, whatever else is in it."""
        if self._anybody:
            return [_ANYBODY, _READABLE]
        if origin is None or origin.lower() not in self._origins:
            return [_VARY]
        return [(b"Access-Control-Allow-Origin", origin.encode("latin-1")), _READABLE, _VARY]

    def preflight(self, exchange: Exchange) -> Fields | None:
        """The answer to a browser that asks before it sends. None: it is no such question, or the origin may not."""
        origin = exchange.header("origin")
        if exchange.method != "OPTIONS" or origin is None or exchange.header("access-control-request-method") is None:
            return None
        if not self._anybody and origin.lower() not in self._origins:
            return None
        wanted = exchange.header("access-control-request-headers")
        if wanted is None or _HEADER_NAMES.fullmatch(wanted) is None:
            wanted = _USUAL_HEADERS
        # A star would not cover Authorization, so names are repeated.
        answer = [_METHODS, (b"Access-Control-Allow-Headers", wanted.encode("ascii")), _REMEMBER]
        if exchange.header("access-control-request-private-network") == "true":
            answer.append((b"Access-Control-Allow-Private-Network", b"true"))
        return answer

"""Every error that a client can see, each with whose fault it is and what to do about it.

An error knows nothing of client APIs; `router.surfaces` puts it into the shape of the API that was called. It does know
the header fields that go with its status.
"""

from __future__ import annotations

import math
from enum import StrEnum

Fields = tuple[tuple[bytes, bytes], ...]


class Fault(StrEnum):
    """Whose fault an error is."""

    CLIENT = "client"
    ROUTER = "router"
    BACKEND = "backend"


class RouterError(Exception):
    """Base of all. `message` is a sentence that says what to do; it never contains a secret or a prompt."""

    status = 500
    code = "internal_error"
    fault = Fault.ROUTER
    fields: Fields = ()
    """Header fields of the answer, beside `Retry-After`."""
    word = ""
    """In metrics, where it is neither `refused` (the call was wrong) nor `rejected` (there was no place)."""

    def __init__(self, message: str, *, param: str | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s

    @property
    def outcome(self) -> str:
        """What a call that ends with it is counted as."""
        return self.word or ("refused" if self.fault is Fault.CLIENT else "rejected")

    def headers(self) -> Fields:
        """All header fields that go with it."""
        if self.retry_after_s is None:
            return self.fields
        return (*self.fields, (b"Retry-After", b"%d" % max(1, math.ceil(self.retry_after_s))))


class BadRequest(RouterError):
    status, code, fault = 400, "invalid_request", Fault.CLIENT


class Malformed(RouterError):
    """Bytes that are no request which may be served; the connection ends with it."""

    code, fault = "malformed_request", Fault.CLIENT

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class Unauthorized(RouterError):
    status, code, fault = 401, "invalid_api_key", Fault.CLIENT
    fields = ((b"WWW-Authenticate", b"Bearer"),)
    word = "denied"


class Forbidden(RouterError):
    status, code, fault = 403, "not_allowed", Fault.CLIENT
    word = "denied"


class NotFound(RouterError):
    status, code, fault = 404, "not_found", Fault.CLIENT


class UnknownModel(RouterError):
    status, code, fault = 404, "model_not_found", Fault.CLIENT


class MethodNotAllowed(RouterError):
    status, code, fault = 405, "method_not_allowed", Fault.CLIENT

    def __init__(self, message: str, *, allow: tuple[str, ...]) -> None:
        super().__init__(message)
        self.allow = allow
        self.fields = ((b"Allow", ", ".join(allow).encode()),)


class TooLarge(RouterError):
    status, code, fault = 413, "request_too_large", Fault.CLIENT


class UnsupportedCoding(RouterError):
    status, code, fault = 415, "unsupported_content_encoding", Fault.CLIENT


class PlainHttpOnly(RouterError):
    """A WebSocket was asked for. There are clients that go on over HTTP at once when they see this status."""

    status, code, fault = 426, "websocket_not_supported", Fault.CLIENT
    fields = ((b"Upgrade", b"HTTP/1.1"), (b"Connection", b"Upgrade"))


class RateLimited(RouterError):
    """A key has used up what it may use for now."""

    status, code, fault = 429, "rate_limit_exceeded", Fault.CLIENT
    word = "limited"


class Overloaded(RouterError):
    """The line is full, or a promise could not be kept: come back later."""

    status, code, fault = 429, "overloaded", Fault.ROUTER


class NoBackend(RouterError):
    """Nothing that could serve the call is up."""

    status, code, fault = 503, "no_backend_available", Fault.ROUTER


class PolicyFailed(RouterError):
    """The policy raised an error for this call; others go on."""

    status, code, fault = 500, "policy_failed", Fault.ROUTER


class OutOfSockets(RouterError):
    """The system gave the router no further socket. Says nothing about the backend."""

    status, code, fault = 503, "out_of_sockets", Fault.ROUTER


class WaitedTooLong(RouterError):
    status, code, fault = 503, "waited_too_long", Fault.ROUTER


class ModelLoading(RouterError):
    """Nothing is wrong, but no model was in memory in time.

    `said`: the error body in which a backend put it, where that is of the usual shape; there are clients that know it.
    """

    status, code, fault = 503, "model_loading", Fault.BACKEND

    def __init__(self, message: str, *, said: bytes, retry_after_s: float) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.said = said


class Draining(RouterError):
    status, code, fault = 503, "shutting_down", Fault.ROUTER


class BackendUnreachable(RouterError):
    """No connection (in time), or it broke before the request was taken: the call never started, another may try."""

    status, code, fault = 502, "backend_unreachable", Fault.BACKEND


class BackendBroke(RouterError):
    """It took the request and then failed: a generation may have run, so nothing tries again."""

    status, code, fault = 502, "backend_failed", Fault.BACKEND


class BackendSaid(RouterError):
    """A backend's own refusal, for a client that has the head of a stream already.

    `said`: the error body in which it was put, where that is of the usual shape.
    """

    code, fault = "backend_error", Fault.BACKEND

    def __init__(self, message: str, *, status: int, said: bytes = b"") -> None:
        super().__init__(message)
        self.status = status
        self.said = said


class BackendTimeout(RouterError):
    """First-byte or idle limit passed. Past the connect limit a backend is unreachable: the call never started."""

    status, code, fault = 504, "backend_timeout", Fault.BACKEND

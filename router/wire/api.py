"""The upstream side as the gateway sees it: send one request, get one response, relay it, close it once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from router.wire.exchange import RawHeaders


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Limits of one request, in seconds. There is none on the whole."""

    connect_s: float
    first_byte_s: float
    idle_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRequest:
    """Ready for the wire: the target as it goes into the request line, headers without framing and Host."""

    method: str
    target: str
    headers: RawHeaders
    body: bytes


class Sink(Protocol):
    """Where a body goes, see `router.wire.exchange.Exchange`."""

    straight: Callable[[bytes], None] | None

    def write(self, data: bytes) -> bool: ...

    async def drained(self) -> None: ...


Look = Callable[[list[bytes], list[float]], float]
"""Shown pieces of a body that have been passed on, and when each came (seconds, as `time.monotonic`). Returns how long
the next ones may be kept before they are shown: 0 while there is something to wait for."""


class UpstreamResponse(Protocol):
    """A response whose head has arrived. Body bytes come as the backend sent them, only de-chunked."""

    status: int
    reason: bytes
    headers: RawHeaders
    length: int | None
    """Content-Length; None: chunked, close-delimited or no body."""
    framed: bool
    """Whether the response says where it ends. Else it ends with the connection, and so does one that was cut off."""
    dial_s: float
    """Until the connection stood, in seconds; 0: it was a kept one."""

    async def relay(self, sink: Sink, look: Look) -> None:
        """Hand every piece of the body to `sink` as it arrives, in the same turn of the event loop.

        When its `write` returns False, reading from the backend stops until `drained()` returns. `look` has been shown
        everything when this ends, in whatever way. Returns at the end of a complete body. Raises `BackendBroke` when
        the body ends early, `BackendTimeout` when the backend stays silent longer than the idle limit (time spent
        waiting for the client does not count).
        """
        ...

    async def read(self, limit_bytes: int) -> bytes:
        """The whole body, for small answers that must be looked at before they are passed on."""
        ...

    def close(self) -> None:
        """Give the connection back (complete body) or break it (else). May be called more than once."""
        ...


class UpstreamPool(Protocol):
    """Connections to one backend: as many as there are calls, kept alive while that is safe."""

    async def send(self, request: UpstreamRequest, patience: Patience) -> UpstreamResponse:
        """Send and wait for the head of the response.

        Raises `BackendUnreachable` where the backend certainly did not take the request (refused, no route, reset of
        a kept connection before it was read), `BackendBroke` where it may have, `BackendTimeout`. Cancelling closes
        the connection at once.
        """
        ...

    def close(self) -> None:
        """Close idle connections now, the others when their calls end."""
        ...

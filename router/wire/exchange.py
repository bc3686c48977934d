"""One request of a client and its response, as the gateway sees them.

The gateway is written against this interface alone and knows nothing of the server side underneath.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

RawHeaders = Sequence[tuple[bytes, bytes]]
"""Header fields as they stood on the wire: order, case and repetition kept."""


class Exchange(Protocol):
    method: str
    path: str
    """Raw path without the query, percent-encoding untouched."""
    query: str
    """Raw query including the `?`, or empty."""
    raw_headers: RawHeaders

    @property
    def peer(self) -> str:
        """Address of the other end of the connection; empty: a unix socket."""
        ...

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        ...

    stalls: int
    """How often the client was waited for."""
    straight: Callable[[bytes], None] | None
    """Takes a whole chunk of the response's body in the framing in which it came, as long as that is the framing in
    which it leaves and the client keeps up; None: what came goes through `write`."""

    def header(self, name: str) -> str | None:
        """Value of the last header of that lower-case name."""
        ...

    async def body(self, limit_bytes: int) -> bytes:
        """The whole body, verbatim. Raises `TooLarge` before reading where the length says so."""
        ...

    def start(self, status: int, reason: bytes, headers: RawHeaders, *, length: int | None) -> None:
        """Begin the response. `length` None: the length is not known, framing is chosen by the client's version.

        `headers` contain no framing and no hop-by-hop fields, those are the exchange's own; but for an `Upgrade` that
        is offered, and the `Connection` that names it. Sent in this turn of the
        event loop, with the bytes of the body that are written in it.
        """
        ...

    def write(self, data: bytes) -> bool:
        """Hand over body bytes at once. False: the client is slow, wait for `drained` before the next write."""
        ...

    async def drained(self) -> None:
        """Return when the client has read enough for the next write. Raises `ConnectionError` when it left."""
        ...

    def finish(self) -> None:
        """The response is complete."""
        ...

    def abort(self) -> None:
        """Break the transfer so that the client sees that it is incomplete. For failures after `start`."""
        ...

    @property
    def started(self) -> bool: ...

    @property
    def gone(self) -> bool:
        """The client has left."""
        ...

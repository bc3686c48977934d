"""What goes into a simulation and what comes out: calls with what their servers will find, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from classifiers.api import Features, Verdict
from router.wire.exchange import RawHeaders


@dataclass(frozen=True, slots=True, kw_only=True)
class Arriving:
    """One call of a client. The router sees what it would see on the wire; the rest is for the engines."""

    at_s: float
    client: str
    """Address that it comes from."""
    path: str
    headers: RawHeaders
    body: bytes = b""
    prompt_tokens: int
    output_tokens: int
    """How long the answer will be, which nobody knows before."""
    blocks: Sequence[int] = ()
    full_blocks: Sequence[int] = ()
    leaves_after_s: float | None = None
    """When its client gives up; None: never."""
    features: Features | None = None
    """What was read of it, for calls of which there is no body any more, as those of a log. Of this call alone."""
    verdict: Verdict | None = None
    """What was found of it before, which then is not asked anew. Needs `features`."""
    direct: str = ""
    """Name of a backend that it is sent to past the router."""


@dataclass(slots=True)
class Became:
    """What became of a call. Times on the simulation's clock, in seconds; None: it did not come to that."""

    call: Arriving
    verdict: Verdict | None = None
    backend: str = ""
    reason: str = ""
    placed_s: float | None = None
    first_s: float | None = None
    end_s: float | None = None
    """Of a complete answer."""
    ended_s: float | None = None
    """When it was over, whatever came of it."""
    cached_tokens: int = 0
    status: int = 0
    """200 for a complete answer, that of the refusal, 499 where the client left; 0: it did not end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something happens to an engine while the simulation runs."""

    at_s: float
    backend: str
    speed: float | None = None
    sequences: int | None = None
    frozen: bool | None = None
    """Whether its figures stay as they were when they are asked for."""

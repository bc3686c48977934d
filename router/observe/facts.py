"""What is known of a call when it has ended. Observers are told this and ask nothing."""

from __future__ import annotations

from typing import NamedTuple


class CallFacts(NamedTuple):
    """One ended call. Instants are differences to its arrival; None: that point was never reached.

    A named tuple since one is made for each call, and that takes a third of the time of a frozen dataclass.
    """

    request_id: str
    surface: str
    call_class: str
    """`none`: it was refused, or answered by the router itself, before it had one."""
    source: str
    reason: str
    backend: str
    """Empty: it never got one."""
    model: str
    stream: bool
    outcome: str
    """completed, refused (the call was wrong), denied (no such key), limited (its key has used up what it may use),
    rejected (no place), client_gone, backend_4xx, backend_busy, backend_error, backend_unreachable, shutdown or
    router_error."""
    status: int
    decide_s: float
    """Spent reading, classifying and deciding."""
    queue_s: float
    """Spent in the router's line."""
    complete_s: float
    ttft_s: float | None = None
    tpot_s: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    retries: int = 0
    key: str = ""
    """Name of the client's key; empty: none was needed, or it was wrong."""

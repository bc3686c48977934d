"""What is known of a call when it has ended. Observers are told this and ask nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """One ended call. Instants are differences to its arrival; None: that point was never reached."""

    request_id: str
    surface: str
    call_class: str
    source: str
    reason: str
    backend: str
    """Empty: it never got one."""
    model: str
    stream: bool
    outcome: str
    """completed, rejected, refused (4xx of ours), client_gone, backend_error, backend_4xx or shutdown."""
    status: int
    decide_s: float
    """Spent reading, classifying and deciding."""
    queue_s: float
    """Spent in the router's line."""
    ttft_s: float | None = None
    complete_s: float
    tpot_s: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    retries: int = 0

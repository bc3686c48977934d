"""What was known of a client when its call arrived, as plain values. The router keeps the history; this is its view."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The calls of one client before this one. Holds no text and nothing that names the client."""

    calls_60s: int = 0
    """Calls of this client in the last minute, this one not counted."""

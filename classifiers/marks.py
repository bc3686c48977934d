"""By what related calls are recognised: hashes of what they share. Text never leaves this module."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Hashes of parts of one call; 0 where that part is missing."""

    system: int = 0
    """Of the system text."""

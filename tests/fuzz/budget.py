"""How many inputs a target gets: few with every `make check`, many with `TWOLANE_FUZZ=long`."""

from __future__ import annotations

import os
from typing import Final

from hypothesis import HealthCheck, settings

_LONG_FACTOR: Final = 50


def fuzzed(examples: int = 150) -> settings:
    """A decorator beside `@given`."""
    many = os.environ.get("TWOLANE_FUZZ") == "long"
    return settings(
        max_examples=examples * _LONG_FACTOR if many else examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )

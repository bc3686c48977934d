"""Calls as the learned models see them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Final

from classifiers.api import Features

VECTOR: Final = "0"


def named_numbers(features: Features) -> dict[str, float]:
    """What is known of a call, as numbers by name; zeros are left out."""
    found: dict[str, float] = {}
    for part in (features, features.shape, features.arrival):
        if part is None or not is_dataclass(part):
            continue
        for entry in fields(part):
            value = part.__getattribute__(entry.name)
            if isinstance(value, int | float) and value:
                found[entry.name] = value
    return found

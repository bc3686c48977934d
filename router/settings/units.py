"""`500ms`, `2s`, `10m`, `64MiB`: quantities as people write them, and the floats and ints that the code works with.

In a file a quantity needs its unit. In code (defaults, tests, URLs on a command line) plain seconds and bytes are fine.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationInfo, WithJsonSchema

IN_FILE: Final = {"in_file": True}
"""Validation context of values that a person wrote."""

_SECONDS_PER = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES_PER = {"B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30}
_DURATION_PATTERN = r"^[0-9]+(\.[0-9]+)?(ms|s|m|h)$"
_SIZE_PATTERN = r"^[0-9]+(B|kB|KiB|MB|MiB|GB|GiB)$"
_DURATION = re.compile(_DURATION_PATTERN)
_SIZE = re.compile(_SIZE_PATTERN)

LONGEST_S: Final = 365 * 24 * 3600.0
LARGEST_BYTES: Final = 2**40


def in_file(info: ValidationInfo) -> bool:
    """Whether the value comes from a file, where short forms are read and units are required."""
    return isinstance(info.context, dict) and info.context.get("in_file") is True


def parse_duration(value: object) -> float:
    """Seconds of a duration such as `500ms`. Raises `ValueError` that names the accepted units."""
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        seconds = float(match[0].removesuffix(match[2])) * _SECONDS_PER[match[2]]
        if seconds > LONGEST_S:
            raise ValueError("expected at most 8760h (a year)")
        return seconds
    raise ValueError("expected a duration: a number and its unit, such as 500ms, 2s, 10m or 1h")


def parse_size(value: object) -> int:
    """Bytes of a size such as `64MiB`. Raises `ValueError` that names the accepted units."""
    if isinstance(value, str) and len(value) < 32 and (match := _SIZE.fullmatch(value)):
        size = int(match[0].removesuffix(match[1])) * _BYTES_PER[match[1]]
        if size > LARGEST_BYTES:
            raise ValueError("expected at most 1024GiB")
        return size
    raise ValueError("expected a size: a whole number and its unit, such as 512KiB, 64MiB or 1GiB")


def duration_text(seconds: float) -> str:
    """Seconds as a file would have them, in the largest unit that needs no fraction: `120.0` is `2m`."""
    for unit in ("h", "m", "s", "ms"):
        amount = seconds / _SECONDS_PER[unit]
        if amount >= 0.5 and abs(amount - round(amount)) < 1e-9:  # 0.07 / 0.001 is 70.00000000000001
            return f"{round(amount)}{unit}"
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"


def size_text(size: int) -> str:
    """Bytes as a file would have them: `67108864` is `64MiB`."""
    for unit in ("GiB", "MiB", "KiB"):
        if size and size % _BYTES_PER[unit] == 0:
            return f"{size // _BYTES_PER[unit]}{unit}"
    return f"{size}B"


def _duration(value: object, info: ValidationInfo) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool) and not in_file(info):
        return float(value)
    return parse_duration(value)


def _size(value: object, info: ValidationInfo) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and not in_file(info):
        return value
    return parse_size(value)


_WRITE_DURATION = PlainSerializer(duration_text, return_type=str, when_used="json-unless-none")

Seconds = Annotated[
    float,
    Field(ge=0, allow_inf_nan=False),
    BeforeValidator(_duration),
    _WRITE_DURATION,
    WithJsonSchema({"type": "string", "pattern": _DURATION_PATTERN, "examples": ["500ms", "2s", "10m"]}),
]
"""A duration; `0s` is allowed."""

PositiveSeconds = Annotated[
    float,
    Field(gt=0, allow_inf_nan=False),
    BeforeValidator(_duration),
    _WRITE_DURATION,
    WithJsonSchema({"type": "string", "pattern": _DURATION_PATTERN, "examples": ["500ms", "2s", "10m"]}),
]
"""A duration of more than zero."""

Bytes = Annotated[
    int,
    Field(ge=1),
    BeforeValidator(_size),
    PlainSerializer(size_text, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": _SIZE_PATTERN, "examples": ["512KiB", "64MiB"]}),
]
"""A size of at least one byte."""

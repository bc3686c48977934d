"""`500ms`, `2s`, `10m`, `64MiB`: quantities as people write them, and the floats and ints that the code works with."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS_PER = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE = re.compile(r"(\d+)(B|KiB|MiB|GiB|kB|MB|GB)")
_BYTES_PER = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}


def parse_duration(value: object) -> float:
    """Seconds of a duration such as `500ms`. Raises `ValueError` that names the accepted units."""
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        return float(match[1]) * _SECONDS_PER[match[2]]
    raise ValueError("expected a duration with its unit, such as 500ms, 2s, 10m or 1h")


def parse_size(value: object) -> int:
    """Bytes of a size such as `64MiB`. Raises `ValueError` that names the accepted units."""
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        return int(match[1]) * _BYTES_PER[match[2]]
    raise ValueError("expected a size with its unit, such as 512KiB or 64MiB")


Seconds = Annotated[
    float,
    BeforeValidator(lambda value: value if isinstance(value, float) else parse_duration(value)),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?(ms|s|m|h)$", "examples": ["500ms", "2s", "10m"]}),
]
"""A duration in YAML, seconds in code. Defaults are written as floats."""

Bytes = Annotated[
    int,
    BeforeValidator(lambda value: value if isinstance(value, int) else parse_size(value)),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(B|KiB|MiB|GiB|kB|MB|GB)$", "examples": ["64MiB"]}),
]
"""A size in YAML, bytes in code."""

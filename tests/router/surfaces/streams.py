"""Playing a stream to a reader, and reading a call from a body, as the tests of all surfaces do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from classifiers.api import Features
from router.surfaces import find, read_call
from router.surfaces.api import TokenReader

Event = tuple[str, object]
"""Name and data; data that is not bytes is written as JSON."""


def play(reader: TokenReader, *events: object, name: str = "") -> list[bool]:
    """Feed the events; returns which of them carried output."""
    return [reader.event(name, event if isinstance(event, bytes) else orjson.dumps(event)) for event in events]


def play_named(reader: TokenReader, *events: Event) -> list[bool]:
    return [carried for name, event in events for carried in play(reader, event, name=name)]


def read(path: str, body: object, headers: Mapping[str, str] | None = None) -> Features:
    """Features of a POST."""
    return read_call(find("POST", path), orjson.dumps(body), headers or {})


def chat(*messages: Mapping[str, Any], **fields: object) -> Features:
    return read("/v1/chat/completions", {"model": "m", "messages": messages, **fields})

"""One client API: how to read a call from it, how to read tokens from its stream, its error shape.

Surfaces only look. The bytes of the call and of the answer pass the router as they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from classifiers.api import Features
from router.errors import RouterError


class Framing(StrEnum):
    """How a stream is cut into events."""

    SSE = "sse"
    NDJSON = "ndjson"


@dataclass(slots=True)
class Progress:
    """What has been seen of one answer so far; the reader writes it, the gateway reads it."""

    tokens: int = 0
    """Pieces of output seen: text, reasoning or tool-call deltas. The engine's own count replaces it at the end."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    prompt_s: float | None = None
    """As the engine has measured it: its work until the first token."""
    decode_s: float | None = None
    """As the engine has measured it: from the first token to the last."""
    response_id: str = ""
    ended: bool = False
    """The answer's own end mark was seen (`[DONE]`, `message_stop`, `done: true`, ...)."""
    finished: bool = False
    """A reason why the output ended was seen, in APIs that give one before the end mark."""
    failed: bool = False
    """The backend reported an error inside the stream."""
    at_fault: bool = False
    """By its own words that error was its own, and not the call's."""

    @property
    def output(self) -> int:
        """Tokens of output so far, as the engine or else the reader has counted them."""
        return self.output_tokens or self.tokens


class TokenReader(Protocol):
    """Reads the events of one streamed answer. Fed one complete event at a time."""

    progress: Progress

    def event(self, name: str, data: bytes) -> bool:
        """Take in one event (SSE: its `event:` name and joined `data:`; NDJSON: empty name, one line).

        True if it carried output: text, reasoning, or part of a tool call. Role-only, empty, ping and usage
        events carry none. Never raises: what cannot be read is passed over.
        """
        ...

    def only_output(self, events: bytes, count: int) -> bool:
        """Take in `count` whole events at once, as they stood in the stream, if it is plain that each carries one
        piece of output and nothing else. False: nothing was taken in, they have to be fed one by one.
        """
        ...


class Surface(Protocol):
    name: str
    """Stable word, used in metrics, rules and the engines' tables: openai_chat, anthropic_messages, ..."""
    framing: Framing

    def features(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> Features:
        """Raises `BadRequest` for what no backend could accept; keeps quiet about what it does not know."""
        ...

    def reader(self) -> TokenReader:
        """A reader for one streamed answer."""
        ...

    def read_whole(self, body: bytes) -> Progress:
        """The counts of an answer that was not streamed. Never raises."""
        ...

    def error_body(self, error: RouterError) -> bytes:
        """JSON in the shape of this API."""
        ...

    def error_event(self, error: RouterError) -> bytes:
        """The same inside a stream that has already begun."""
        ...

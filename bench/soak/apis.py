"""The client APIs of the soak, as far as it needs them: a body, the pieces of an answer, the shape of an error.

Bytes are put together from halves that are made once: client and backends together must cost less than the router.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


def _halves(document: object, *, before: str = "", after: str = "") -> tuple[bytes, bytes]:
    """Written JSON, cut where TEXT stands in it."""
    first, second = (before + json.dumps(document, separators=(",", ":")) + after).split("TEXT")
    return first.encode(), second.encode()


def _event(document: object, name: str = "") -> str:
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {json.dumps(document, separators=(',', ':'))}\n\n"


def _sse(document: object, name: str = "") -> tuple[bytes, bytes]:
    first, second = _event(document, name).split("TEXT")
    return first.encode(), second.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One client API. Pairs of bytes are what stands before and behind a text."""

    name: str
    path: str
    stream_type: str
    opening: bytes
    """Begins a streamed answer."""
    piece: tuple[bytes, bytes]
    """One piece of output in a stream."""
    ending: bytes
    """Ends a streamed answer."""
    whole: tuple[bytes, bytes]
    """An answer that is not streamed."""
    fields: bytes
    """Of a call, between its model and its prompt; STREAM stands for true or false, TOPIC for how it begins."""
    behind: bytes
    """Of a call, behind its prompt."""
    boundary: bytes
    """Ends each event of a stream."""
    error_begins: bytes
    """With which an error event begins, as opposed to all others."""
    error: Callable[[Any], str | None]
    """The code in an error document of this API, or "" where it has none; None: it has another shape."""

    def event_error(self, event: bytes) -> str | None:
        """As `error`, of one event in a stream."""
        _, _, data = event.rpartition(b"data: ") if self.boundary == b"\n\n" else (b"", b"", event)
        return self.body_error(data)

    def body_error(self, body: bytes) -> str | None:
        try:
            return self.error(json.loads(body))
        except ValueError:
            return None


def _openai_error(document: Any) -> str | None:
    match document:
        case {"error": {"message": str(), "type": str(), "param": _, "code": str(code)}}:
            return code
        case _:
            return None


def _anthropic_error(document: Any) -> str | None:
    match document:
        case {"type": "error", "error": {"type": str(), "message": str()}}:
            return ""
        case _:
            return None


def _ollama_error(document: Any) -> str | None:
    match document:
        case {"error": str()}:
            return ""
        case _:
            return None


_USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
_DONE = "data: [DONE]\n\n"
_EARLIER = b'{"role":"user","content":"TOPIC"},{"role":"assistant","content":"Yes?"},{"role":"user","content":"'
"""Of a conversation; calls with one topic belong together."""


def _delta(delta: object, finish: str | None = None) -> dict[str, object]:
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def _block(kind: str, **more: object) -> tuple[dict[str, object], str]:
    return {"type": kind, **more}, kind


CHAT = Api(
    name="chat",
    path="/v1/chat/completions",
    stream_type="text/event-stream",
    opening=_event(_delta({"role": "assistant", "content": ""})).encode(),
    piece=_sse(_delta({"content": "TEXT"})),
    ending=(_event(_delta({}, "stop")) + _event({"choices": [], "usage": _USAGE}) + _DONE).encode(),
    whole=_halves(
        {
            "id": "c",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "TEXT"}, "finish_reason": "stop"}],
            "usage": _USAGE,
        }
    ),
    fields=b'"stream":STREAM,"messages":[{"role":"system","content":"Count."},' + _EARLIER,
    behind=b'"}]}',
    boundary=b"\n\n",
    error_begins=b'data: {"error"',
    error=_openai_error,
)

COMPLETIONS = Api(
    name="completions",
    path="/v1/completions",
    stream_type="text/event-stream",
    opening=b"",
    piece=_sse({"id": "c", "choices": [{"index": 0, "text": "TEXT"}]}),
    ending=(_event({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}], "usage": _USAGE}) + _DONE).encode(),
    whole=_halves({"id": "c", "choices": [{"index": 0, "text": "TEXT", "finish_reason": "stop"}], "usage": _USAGE}),
    fields=b'"max_tokens":64,"stream":STREAM,"prompt":"',
    behind=b'"}',
    boundary=b"\n\n",
    error_begins=b'data: {"error"',
    error=_openai_error,
)

MESSAGES = Api(
    name="messages",
    path="/v1/messages",
    stream_type="text/event-stream",
    opening=(
        _event(*_block("message_start", message={"id": "m", "role": "assistant", "usage": {"input_tokens": 5}}))
        + _event(*_block("content_block_start", index=0, content_block={"type": "text", "text": ""}))
    ).encode(),
    piece=_sse(*_block("content_block_delta", index=0, delta={"type": "text_delta", "text": "TEXT"})),
    ending=(
        _event(*_block("content_block_stop", index=0))
        + _event(*_block("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 7}))
        + _event(*_block("message_stop"))
    ).encode(),
    whole=_halves(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "TEXT"}],
            "usage": {"input_tokens": 5, "output_tokens": 7},
        }
    ),
    fields=b'"max_tokens":64,"stream":STREAM,"messages":[' + _EARLIER,
    behind=b'"}]}',
    boundary=b"\n\n",
    error_begins=b"event: error",
    error=_anthropic_error,
)


def _line(**fields: object) -> str:
    return json.dumps({"model": "soak", **fields}, separators=(",", ":")) + "\n"


OLLAMA = Api(
    name="ollama",
    path="/api/chat",
    stream_type="application/x-ndjson",
    opening=b"",
    piece=_halves({"model": "soak", "message": {"role": "assistant", "content": "TEXT"}, "done": False}, after="\n"),
    ending=_line(message={"role": "assistant", "content": ""}, done=True, prompt_eval_count=5, eval_count=7).encode(),
    whole=_halves(
        {
            "model": "soak",
            "message": {"role": "assistant", "content": "TEXT"},
            "done": True,
            "prompt_eval_count": 5,
            "eval_count": 7,
        }
    ),
    fields=b'"stream":STREAM,"messages":[' + _EARLIER,
    behind=b'"}]}',
    boundary=b"\n",
    error_begins=b'{"error"',
    error=_ollama_error,
)

APIS: Mapping[str, Api] = {api.name: api for api in (CHAT, COMPLETIONS, MESSAGES, OLLAMA)}
BY_PATH: Mapping[bytes, Api] = {api.path.encode(): api for api in APIS.values()}

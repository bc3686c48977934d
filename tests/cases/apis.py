"""The client APIs as the cases need them: a call, and a short answer in pieces whose meaning is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from tests.scripted import Script, ScriptedBackend, echo

PROMPT_TOKENS, OUTPUT_TOKENS = 5, 1
"""What each answer says of itself at its end."""

Document = dict[str, Any]


def sse(document: object, name: str = "") -> bytes:
    """One server-sent event; with its name where the API gives names."""
    named = f"event: {name}\n".encode() if name else b""
    return named + b"data: " + orjson.dumps(document) + b"\n\n"


def line(document: object) -> bytes:
    """One line of NDJSON."""
    return orjson.dumps(document) + b"\n"


def delta(fields: Document, finish: str | None = None) -> bytes:
    """A chunk of OpenAI's chat."""
    return sse({"id": "c1", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def typed(kind: str, **fields: Any) -> bytes:
    """An event of an API that names its events, also inside."""
    return sse({"type": kind, **fields}, kind)


DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One client API, with an engine that serves it."""

    name: str
    path: str
    call: Document
    """Its body, without `stream`."""
    opening: bytes
    """Begins a streamed answer; carries no output."""
    token: Callable[[str], bytes]
    """One piece of output."""
    ending: bytes
    """The counts and the end mark."""
    whole: Document
    """An answer that is not streamed, with the same counts."""
    content_type: str = "text/event-stream"
    engine: str = "openai"
    probes: Document = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def body(self, *, stream: bool, **more: Any) -> Document:
        return {**self.call, "stream": stream, **more}

    def backend(self, script: Script = echo, **options: Any) -> ScriptedBackend:
        return ScriptedBackend(script, probes=self.probes, **options)

    @property
    def settings(self) -> Document:
        """Of a backend that serves this API."""
        return {"engine": self.engine}


_MESSAGES = [{"role": "user", "content": "hi"}]
_USAGE = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": OUTPUT_TOKENS, "total_tokens": 6}
_USAGE_IO = {"input_tokens": PROMPT_TOKENS, "output_tokens": OUTPUT_TOKENS}
_OLLAMA_PROBES = {"/api/version": {"version": "0.9.0"}, "/api/tags": {"models": [{"name": "m:latest"}]}}
_OLLAMA_END = {"done": True, "prompt_eval_count": PROMPT_TOKENS, "eval_count": OUTPUT_TOKENS}

CHAT = Api(
    name="chat",
    path="/v1/chat/completions",
    call={"model": "m", "messages": _MESSAGES},
    opening=delta({"role": "assistant", "content": ""}),
    token=lambda text: delta({"content": text}),
    ending=delta({}, "stop") + sse({"choices": [], "usage": _USAGE}) + DONE,
    whole={
        "id": "c1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
        "usage": _USAGE,
    },
)
COMPLETIONS = Api(
    name="completions",
    path="/v1/completions",
    call={"model": "m", "prompt": "hi"},
    opening=sse({"id": "c1", "choices": [{"index": 0, "text": ""}]}),
    token=lambda text: sse({"id": "c1", "choices": [{"index": 0, "text": text}]}),
    ending=sse({"choices": [], "usage": _USAGE}) + DONE,
    whole={"id": "c1", "choices": [{"index": 0, "text": "a", "finish_reason": "stop"}], "usage": _USAGE},
)
RESPONSES = Api(
    name="responses",
    path="/v1/responses",
    call={"model": "m", "input": "hi"},
    opening=typed("response.created", response={"id": "r1", "status": "in_progress", "output": []})
    + typed("response.output_item.added", output_index=0, item={"type": "message", "role": "assistant", "content": []}),
    token=lambda text: typed("response.output_text.delta", output_index=0, delta=text),
    ending=typed("response.output_text.done", output_index=0, text="a")
    + typed("response.completed", response={"id": "r1", "status": "completed", "usage": _USAGE_IO}),
    whole={"id": "r1", "object": "response", "output": [], "usage": _USAGE_IO},
)
MESSAGES = Api(
    name="messages",
    path="/v1/messages",
    call={"model": "m", "max_tokens": 9, "messages": _MESSAGES},
    opening=typed("message_start", message={"id": "m1", "role": "assistant", "usage": {"input_tokens": 5}})
    + typed("content_block_start", index=0, content_block={"type": "text", "text": ""})
    + typed("ping"),
    token=lambda text: typed("content_block_delta", index=0, delta={"type": "text_delta", "text": text}),
    ending=typed("content_block_stop", index=0)
    + typed("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": OUTPUT_TOKENS})
    + typed("message_stop"),
    whole={"id": "m1", "type": "message", "content": [{"type": "text", "text": "a"}], "usage": _USAGE_IO},
    engine="llamacpp",
)
OLLAMA_CHAT = Api(
    name="ollama_chat",
    path="/api/chat",
    call={"model": "m", "messages": _MESSAGES},
    opening=line({"model": "m", "message": {"role": "assistant", "content": ""}, "done": False}),
    token=lambda text: line({"model": "m", "message": {"role": "assistant", "content": text}, "done": False}),
    ending=line({"model": "m", "message": {"role": "assistant", "content": ""}, **_OLLAMA_END}),
    whole={"model": "m", "message": {"role": "assistant", "content": "a"}, **_OLLAMA_END},
    content_type="application/x-ndjson",
    engine="ollama",
    probes=_OLLAMA_PROBES,
)
OLLAMA_GENERATE = Api(
    name="ollama_generate",
    path="/api/generate",
    call={"model": "m", "prompt": "hi"},
    opening=line({"model": "m", "response": "", "done": False}),
    token=lambda text: line({"model": "m", "response": text, "done": False}),
    ending=line({"model": "m", "response": "", **_OLLAMA_END}),
    whole={"model": "m", "response": "a", **_OLLAMA_END},
    content_type="application/x-ndjson",
    engine="ollama",
    probes=_OLLAMA_PROBES,
)
LLAMACPP = Api(
    name="llamacpp",
    path="/completion",
    call={"model": "m", "prompt": "hi"},
    opening=sse({"content": "", "stop": False}),
    token=lambda text: sse({"content": text, "stop": False}),
    ending=sse({"content": "", "stop": True, "tokens_evaluated": PROMPT_TOKENS, "tokens_predicted": OUTPUT_TOKENS}),
    whole={"content": "a", "stop": True, "tokens_evaluated": PROMPT_TOKENS, "tokens_predicted": OUTPUT_TOKENS},
    engine="llamacpp",
)

APIS = (CHAT, COMPLETIONS, RESPONSES, MESSAGES, OLLAMA_CHAT, OLLAMA_GENERATE, LLAMACPP)

each_api = pytest.mark.parametrize("api", APIS, ids=str)
each_sse_api = pytest.mark.parametrize("api", [api for api in APIS if api.content_type == CHAT.content_type], ids=str)

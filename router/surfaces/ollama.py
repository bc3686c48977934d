"""Ollama's own API: `/api/chat`, `/api/generate`, `/api/embed`, `/api/show`. Streams unless told not to."""

from __future__ import annotations

from typing import Any

from classifiers.api import Features
from router.errors import BadRequest
from router.surfaces.api import Framing, Progress, TokenReader
from router.surfaces.counts import count, parse, read_counted, take_durations, take_output
from router.surfaces.dialects import OllamaErrors
from router.surfaces.openai_embeddings import read_inputs
from router.surfaces.readers import MarkReader, Silent
from router.surfaces.reading import Body, Headers, Prompt, describe, format_of, kind, number


class OllamaChat(OllamaErrors):
    name = "ollama_chat"
    framing = Framing.NDJSON

    def features(self, body: Body, headers: Headers) -> Features:
        prompt = Prompt()
        messages = body.get("messages")
        if messages is not None and not isinstance(messages, list):
            raise BadRequest(f"messages: expected an array, got {kind(messages)}", param="messages")
        # No messages: load the model.
        prompt.take_messages(messages or [])
        return _describe(self.name, body, headers, prompt)

    def reader(self) -> TokenReader:
        return OllamaReader()

    def read_whole(self, body: bytes) -> Progress:
        return read_counted(body, _take_counts)


class OllamaGenerate(OllamaErrors):
    name = "ollama_generate"
    framing = Framing.NDJSON

    def features(self, body: Body, headers: Headers) -> Features:
        asked = body.get("prompt")
        if asked is not None and not isinstance(asked, str):
            raise BadRequest(f"prompt: expected a string, got {kind(asked)}", param="prompt")
        prompt = Prompt()
        prompt.take_inputs(asked)
        prompt.take_beginning(asked)
        prompt.take_message({"content": body.get("suffix"), "images": body.get("images")}, prompt.last)
        prompt.take_system(body.get("system"))
        return _describe(self.name, body, headers, prompt)

    def reader(self) -> TokenReader:
        return OllamaReader()

    def read_whole(self, body: bytes) -> Progress:
        return read_counted(body, _take_counts)


class OllamaEmbed(OllamaErrors):
    """`/api/embed` takes `input`, the older `/api/embeddings` one `prompt`."""

    name = "ollama_embed"
    framing = Framing.NDJSON

    def features(self, body: Body, headers: Headers) -> Features:
        return describe(self.name, body, headers, read_inputs(body, ("input", "prompt")), stream=False)

    def reader(self) -> TokenReader:
        return Silent()

    def read_whole(self, body: bytes) -> Progress:
        return read_counted(body, _take_counts)


class OllamaShow(OllamaErrors):
    name = "ollama_show"
    framing = Framing.NDJSON

    def features(self, body: Body, headers: Headers) -> Features:
        named = {**body, "model": body.get(key_of_shown(body))}
        return describe(self.name, named, headers, Prompt(), stream=False)

    def reader(self) -> TokenReader:
        return Silent()

    def read_whole(self, body: bytes) -> Progress:
        return Progress(ended=True)


def key_of_shown(body: Body) -> str:
    """By which a call to `/api/show` names its model; `name` is the older one, and is read where the other is empty."""
    return "name" if not body.get("model") and body.get("name") else "model"


def _describe(name: str, body: Body, headers: Headers, prompt: Prompt) -> Features:
    options = body.get("options")
    return describe(
        name,
        body,
        headers,
        prompt,
        max_tokens=number(options, "num_predict") if isinstance(options, dict) else None,
        response_format=format_of(body),
        stream=body.get("stream") is not False,
    )


def _take_counts(progress: Progress, answer: dict[str, Any]) -> None:
    if (tokens := count(answer.get("prompt_eval_count"))) is not None:
        progress.prompt_tokens = tokens
    take_output(progress, count(answer.get("eval_count")))
    take_durations(progress, answer)


class OllamaReader(MarkReader):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(guard_key="done", guard_value="true")

    def look(self, name: str, data: bytes) -> bool:
        line = parse(data)
        if line is None:
            return False
        if line.get("error"):
            self.progress.failed = True
            return False
        message = line.get("message")
        field = _output(message if isinstance(message, dict) else line)
        carried = self.carried(field, data) if field else False
        if line.get("done") is True:
            self.progress.ended = True
            _take_counts(self.progress, line)
        return carried


def _output(message: dict[str, Any]) -> str:
    for field in ("content", "response", "thinking", "tool_calls"):
        if message.get(field):
            return field
    return ""

"""Anthropic's messages: `/v1/messages` and `/v1/messages/count_tokens`."""

from __future__ import annotations

from typing import Any

from classifiers.api import Features
from router.surfaces.api import Framing, Progress, TokenReader
from router.surfaces.counts import count, parse, take_anthropic_prompt, take_error, take_id, take_output
from router.surfaces.dialects import AnthropicErrors
from router.surfaces.readers import MarkReader, Silent
from router.surfaces.reading import Body, Headers, Prompt, describe, messages_of, number, word

_TEXTS = ("text", "thinking", "partial_json")
_SAYS_NOTHING = frozenset({"ping", "content_block_stop"})


class AnthropicMessages(AnthropicErrors):
    name = "anthropic_messages"
    framing = Framing.SSE

    def features(self, body: Body, headers: Headers) -> Features:
        return describe(
            self.name,
            body,
            headers,
            _read_prompt(body),
            max_tokens=number(body, "max_tokens"),
            response_format=_format_of(body),
        )

    def reader(self) -> TokenReader:
        return MessagesReader()

    def read_whole(self, body: bytes) -> Progress:
        progress = Progress()
        answer = parse(body)
        if answer is not None:
            progress.ended = answer.get("type") != "error"
            take_id(progress, answer)
            _take_usage(progress, answer.get("usage"))
        return progress


class AnthropicCountTokens(AnthropicErrors):
    name = "anthropic_count_tokens"
    framing = Framing.SSE

    def features(self, body: Body, headers: Headers) -> Features:
        return describe(self.name, body, headers, _read_prompt(body), stream=False)

    def reader(self) -> TokenReader:
        return Silent()

    def read_whole(self, body: bytes) -> Progress:
        return Progress(ended=True)


def _read_prompt(body: Body) -> Prompt:
    prompt = Prompt()
    prompt.take_messages(messages_of(body))
    prompt.take_system(body.get("system"))
    return prompt


def _format_of(body: Body) -> str:
    config = body.get("output_config")
    asked = config.get("format") if isinstance(config, dict) else body.get("output_format")
    return word(asked, "type") if isinstance(asked, dict) else ""


def _take_usage(progress: Progress, usage: object) -> None:
    take_anthropic_prompt(progress, usage)
    if isinstance(usage, dict):
        take_output(progress, count(usage.get("output_tokens")))


class MessagesReader(MarkReader):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(guard_key="usage", guard_value="{")

    def look(self, name: str, data: bytes) -> bool:
        if name in _SAYS_NOTHING or (event := parse(data)) is None:
            return False
        progress = self.progress
        match event.get("type") or name:
            case "content_block_delta":
                return self._carries(event.get("delta"), data)
            case "content_block_start":
                return self._starts(event.get("content_block"), data)
            case "message_start" if isinstance(event.get("message"), dict):
                take_id(progress, event["message"])
                # Its output count is a placeholder.
                take_anthropic_prompt(progress, event["message"].get("usage"))
            case "message_delta":
                _take_usage(progress, event.get("usage"))
            case "message_stop":
                progress.ended = True
            case "error":
                take_error(progress, event.get("error"))
            case _:
                pass
        return False

    def _carries(self, delta: object, data: bytes) -> bool:
        """Signatures and citations are no output."""
        if isinstance(delta, dict):
            for field in _TEXTS:
                if delta.get(field):
                    return self.carried(field, data)
        return False

    def _starts(self, block: Any, data: bytes) -> bool:
        """The start of a tool call names the tool; that of a text is empty with most servers."""
        if not isinstance(block, dict):
            return False
        if word(block, "type").endswith("tool_use"):
            self.progress.tokens += 1
            return True
        return self._carries(block, data)

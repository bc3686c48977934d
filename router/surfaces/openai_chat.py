"""OpenAI's chat: `/v1/chat/completions`."""

from __future__ import annotations

from typing import Any

from classifiers.api import Features
from router.surfaces.api import Framing, Progress, TokenReader
from router.surfaces.counts import (
    count,
    parse,
    read_openai,
    take_error,
    take_id,
    take_output,
    take_prompt_timings,
    take_usage,
)
from router.surfaces.dialects import OpenAIErrors
from router.surfaces.readers import MarkReader
from router.surfaces.reading import Body, Headers, Prompt, describe, format_of, messages_of, number


class OpenAIChat(OpenAIErrors):
    name = "openai_chat"
    framing = Framing.SSE

    def features(self, body: Body, headers: Headers) -> Features:
        prompt = Prompt()
        prompt.take_messages(messages_of(body))
        return describe(
            self.name,
            body,
            headers,
            prompt,
            max_tokens=number(body, "max_completion_tokens", "max_tokens"),
            response_format=format_of(body),
        )

    def reader(self) -> TokenReader:
        return ChoicesReader()

    def read_whole(self, body: bytes) -> Progress:
        return read_openai(body)


class ChoicesReader(MarkReader):
    """Reads the chunks of chats, and of completions, whose choices hold their `text` themselves."""

    __slots__ = ("_timed_tokens",)

    def __init__(self) -> None:
        super().__init__(guard_key="usage", guard_value="{")
        self._timed_tokens = 0

    def look(self, name: str, data: bytes) -> bool:
        progress = self.progress
        if data.startswith(b"[DONE]"):
            progress.ended = True
            return False
        chunk = parse(data)
        if chunk is None:
            return False
        if name == "error" or chunk.get("error") or chunk.get("object") == "error":
            take_error(progress, chunk.get("error") or chunk)
            return False
        take_id(progress, chunk)
        choices = chunk.get("choices")
        choices = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
        fields = [field for choice in choices if (field := _output(choice))]
        carried = self.carried(fields[0], data, len(fields)) if fields else False
        progress.finished |= _ends_a_choice(choices)
        take_usage(progress, chunk.get("usage"))
        if isinstance(chunk.get("timings"), dict) and (not choices or _ends_a_choice(choices)):
            self._take_timings(chunk["timings"])
        return carried

    def _take_timings(self, timings: dict[str, Any]) -> None:
        """llama.cpp's own counts. Each choice ends with those of its own output, and so does the usage beside them."""
        take_prompt_timings(self.progress, timings)
        if (tokens := count(timings.get("predicted_n"))) is not None:
            self._timed_tokens += tokens
            take_output(self.progress, self._timed_tokens)


def _ends_a_choice(choices: list[dict[str, Any]]) -> bool:
    return any(choice.get("finish_reason") for choice in choices)


def _output(choice: dict[str, Any]) -> str:
    """The field of a choice that carries output; empty: none does (role, finish reason, empty texts)."""
    if choice.get("text"):
        return "text"
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return ""
    for field in ("content", "reasoning_content", "reasoning", "refusal", "audio"):
        if delta.get(field):
            return field
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else (delta,):
        if isinstance(call, dict) and (field := _called(call)):
            return field
    return ""


def _called(call: dict[str, Any]) -> str:
    """The field of a tool call, or of the older kind of call, that carries output."""
    for kind in ("function", "function_call", "custom"):
        function = call.get(kind)
        if isinstance(function, dict):
            for field in ("arguments", "input", "name"):
                if function.get(field):
                    return field
    return ""

"""OpenAI's Responses: `/v1/responses`, and the paths that ask for a stored response by its id."""

from __future__ import annotations

from typing import Any

from classifiers.api import Features
from router.errors import BadRequest
from router.surfaces.api import Framing, Progress, TokenReader
from router.surfaces.counts import parse, read_openai, take_error, take_id, take_usage
from router.surfaces.dialects import ResponsesErrors
from router.surfaces.readers import MarkReader
from router.surfaces.reading import Body, Headers, Prompt, describe, format_of, kind, number, word

_CALLS = frozenset({"function_call", "custom_tool_call", "mcp_call", "computer_call", "local_shell_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "computer_call_output"})
_ENDS = frozenset({"response.completed", "response.failed", "response.incomplete"})
_WORTH_PARSING = _ENDS | {"", "error", "message", "response.created", "response.output_item.added"}
"""Names of events that say more than the one before, with those that are no names."""


class OpenAIResponses(ResponsesErrors):
    name = "openai_responses"
    framing = Framing.SSE

    def features(self, body: Body, headers: Headers) -> Features:
        prompt = Prompt()
        _read_input(body.get("input"), prompt)
        prompt.take_system(body.get("instructions"))
        text = body.get("text")
        asked = text.get("format") if isinstance(text, dict) else None
        return describe(
            self.name,
            body,
            headers,
            prompt,
            max_tokens=number(body, "max_output_tokens"),
            response_format=format_of({"response_format": asked}),
        )

    def reader(self) -> TokenReader:
        return ResponsesReader()

    def read_whole(self, body: bytes) -> Progress:
        return read_openai(body)


def _read_input(asked: object, prompt: Prompt) -> None:
    """A string, or items: messages, calls of tools and their results. Raises `BadRequest` for anything else."""
    if isinstance(asked, list):
        prompt.take_messages(asked, where="input", as_message=_as_message)
    elif asked is None or isinstance(asked, str):
        prompt.take_inputs(asked)
        prompt.last_role = "user"
        prompt.opening = prompt.last.copy()
    else:
        raise BadRequest(f"input: expected a string or an array, got {kind(asked)}", param="input")


def _as_message(item: Any) -> Any:
    """An item of the input as the message of a chat that it stands for."""
    if not isinstance(item, dict):
        return item
    kind_of_item = word(item, "type")
    if kind_of_item in _RESULTS:
        return {"role": "tool", "content": item.get("output"), "tool_call_id": item.get("call_id")}
    if kind_of_item in _CALLS:
        return {"role": "assistant", "function_call": item}
    if kind_of_item == "reasoning":
        return {"role": "assistant", "content": [item.get("summary"), item.get("content")]}
    return item


class ResponsesReader(MarkReader):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(guard_key="response", guard_value="{")

    def look(self, name: str, data: bytes) -> bool:
        if name not in _WORTH_PARSING and not name.endswith(".delta"):
            return False
        event = parse(data)
        if event is None:
            return False
        kind_of_event = word(event, "type") or name
        response = event.get("response")
        if isinstance(response, dict):
            self._take_response(kind_of_event, response)
            return False
        if kind_of_event == "error" or event.get("error"):
            take_error(self.progress, event.get("error") or event)
            return False
        return self._is_output(kind_of_event, event) and self.carried("delta", data)

    def _take_response(self, kind_of_event: str, response: dict[str, Any]) -> None:
        progress = self.progress
        take_id(progress, response)
        if kind_of_event in _ENDS:
            take_usage(progress, response.get("usage"))
            progress.ended = True
            if kind_of_event == "response.failed":
                take_error(progress, response.get("error"))

    def _is_output(self, kind_of_event: str, event: dict[str, Any]) -> bool:
        if kind_of_event == "response.output_item.added":
            item = event.get("item")
            return isinstance(item, dict) and word(item, "type") in _CALLS
        return kind_of_event.endswith(".delta") and bool(event.get("delta"))

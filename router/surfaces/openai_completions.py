"""OpenAI's older completions: `/v1/completions`."""

from __future__ import annotations

from classifiers.api import Features
from router.errors import BadRequest
from router.surfaces.api import Framing, Progress, TokenReader
from router.surfaces.counts import read_openai
from router.surfaces.dialects import OpenAIErrors
from router.surfaces.openai_chat import ChoicesReader
from router.surfaces.reading import Body, Headers, Prompt, describe, format_of, kind, number


class OpenAICompletions(OpenAIErrors):
    name = "openai_completions"
    framing = Framing.SSE

    def features(self, body: Body, headers: Headers) -> Features:
        prompt = read_prompt(body)
        return describe(
            self.name, body, headers, prompt, max_tokens=number(body, "max_tokens"), response_format=format_of(body)
        )

    def reader(self) -> TokenReader:
        return ChoicesReader()

    def read_whole(self, body: bytes) -> Progress:
        return read_openai(body)


def read_prompt(body: Body) -> Prompt:
    """Text, token ids, or many of them. Raises `BadRequest` for a prompt that is neither text nor array nor object."""
    asked = body.get("prompt")
    if isinstance(asked, (bool, int, float)):
        raise BadRequest(f"prompt: expected a string or an array, got {kind(asked)}", param="prompt")
    prompt = Prompt()
    prompt.take_inputs(asked)
    prompt.take_beginning(asked)
    prompt.take_content(body.get("suffix"), prompt.last)
    return prompt

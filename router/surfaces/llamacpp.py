"""llama.cpp's own API: `/completion`, `/infill`, `/apply-template`."""

from __future__ import annotations

from typing import Any

from classifiers.api import Features
from router.surfaces.api import Framing, Progress, TokenReader
from router.surfaces.counts import count, parse, read_counted, take_error, take_output, take_prompt_timings
from router.surfaces.dialects import LlamaCppErrors
from router.surfaces.openai_completions import read_prompt
from router.surfaces.readers import MarkReader, Silent
from router.surfaces.reading import Body, Headers, Prompt, describe, format_of, messages_of, number


class LlamaCppCompletion(LlamaCppErrors):
    name = "llamacpp_completion"
    framing = Framing.SSE

    def features(self, body: Body, headers: Headers) -> Features:
        return _describe(self.name, body, headers, read_prompt(body))

    def reader(self) -> TokenReader:
        return CompletionReader()

    def read_whole(self, body: bytes) -> Progress:
        return read_counted(body, _take_counts)


class LlamaCppInfill(LlamaCppErrors):
    name = "llamacpp_infill"
    framing = Framing.SSE

    def features(self, body: Body, headers: Headers) -> Features:
        prompt = read_prompt(body)
        for name in ("input_prefix", "input_suffix"):
            prompt.take_content(body.get(name), prompt.last)
        extra = body.get("input_extra")
        for file in extra if isinstance(extra, list) else ():
            prompt.take_content(file, prompt.earlier)
        return _describe(self.name, body, headers, prompt)

    def reader(self) -> TokenReader:
        return CompletionReader()

    def read_whole(self, body: bytes) -> Progress:
        return read_counted(body, _take_counts)


class LlamaCppApplyTemplate(LlamaCppErrors):
    name = "llamacpp_apply_template"
    framing = Framing.SSE

    def features(self, body: Body, headers: Headers) -> Features:
        prompt = Prompt()
        prompt.take_messages(messages_of(body))
        return describe(self.name, body, headers, prompt, stream=False)

    def reader(self) -> TokenReader:
        return Silent()

    def read_whole(self, body: bytes) -> Progress:
        return Progress(ended=True)


def _describe(name: str, body: Body, headers: Headers, prompt: Prompt) -> Features:
    max_tokens = number(body, "n_predict", "max_tokens")
    return describe(name, body, headers, prompt, max_tokens=max_tokens, response_format=format_of(body))


def _take_counts(progress: Progress, answer: dict[str, Any]) -> None:
    if isinstance(answer.get("timings"), dict):
        take_prompt_timings(progress, answer["timings"])
    if (tokens := count(answer.get("tokens_evaluated"))) is not None:
        progress.prompt_tokens = tokens
    if (tokens := count(answer.get("tokens_predicted"))) is not None:
        # Each of several prompts ends with the counts of its own output.
        take_output(progress, tokens + (progress.output_tokens or 0))


class CompletionReader(MarkReader):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(guard_key="stop", guard_value="true")

    def look(self, name: str, data: bytes) -> bool:
        chunk = parse(data)
        if chunk is None:
            return False
        if chunk.get("error"):
            take_error(self.progress, chunk["error"])
            return False
        carried = self.carried("content", data) if chunk.get("content") else False
        if chunk.get("stop") is True:
            self.progress.ended = True
            _take_counts(self.progress, chunk)
        return carried

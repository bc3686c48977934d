"""OpenAI's embeddings: `/v1/embeddings`."""

from __future__ import annotations

import re

from classifiers.api import Features
from router.errors import BadRequest
from router.surfaces.api import Framing, Progress, TokenReader
from router.surfaces.counts import parse, take_usage
from router.surfaces.dialects import OpenAIErrors
from router.surfaces.readers import Silent
from router.surfaces.reading import Body, Headers, Prompt, describe, kind

_INPUTS = ("input", "content", "messages", "inputs")
"""As OpenAI has it, then llama.cpp's name, vLLM's chat form, and the one of rerankers' relatives."""

_USAGE = re.compile(rb'"usage"\s*:\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})')


class OpenAIEmbeddings(OpenAIErrors):
    name = "openai_embeddings"
    framing = Framing.SSE

    def features(self, body: Body, headers: Headers) -> Features:
        return describe(self.name, body, headers, read_inputs(body, _INPUTS), stream=False)

    def reader(self) -> TokenReader:
        return Silent()

    def read_whole(self, body: bytes) -> Progress:
        return read_usage_alone(body)


def read_inputs(body: Body, names: tuple[str, ...]) -> Prompt:
    """The texts to embed under the first of these names. Raises `BadRequest` where there is nothing to embed."""
    for name in names:
        inputs = body.get(name)
        if inputs is None:
            continue
        if isinstance(inputs, (bool, int, float)):
            raise BadRequest(f"{name}: expected a string or an array, got {kind(inputs)}", param=name)
        prompt = Prompt()
        prompt.take_inputs(inputs)
        if name == "messages":
            prompt.prompts = 1
        return prompt
    raise BadRequest(f"{names[0]}: expected a string or an array, it is missing", param=names[0])


def read_usage_alone(body: bytes) -> Progress:
    """The counts of an answer that is mostly numbers: parsing megabytes of them would hold up everybody else."""
    progress = Progress(ended=True)
    if found := _USAGE.search(body):
        take_usage(progress, parse(found[1]))
    return progress

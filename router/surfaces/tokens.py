"""Tokenizing and its reverse: `/tokenize`, `/detokenize`."""

from __future__ import annotations

from classifiers.api import Features
from router.surfaces.api import Framing, Progress, TokenReader
from router.surfaces.dialects import OpenAIErrors
from router.surfaces.readers import Silent
from router.surfaces.reading import Body, Headers, Prompt, describe

_TEXTS = ("content", "prompt", "messages", "tokens")
"""llama.cpp's name, vLLM's two, and that of the ids to turn back."""


class Tokens(OpenAIErrors):
    framing = Framing.SSE

    def __init__(self, name: str) -> None:
        self.name = name

    def features(self, body: Body, headers: Headers) -> Features:
        prompt = Prompt()
        for name in _TEXTS:
            if body.get(name) is not None:
                prompt.take_inputs(body[name])
        return describe(self.name, body, headers, prompt, stream=False)

    def reader(self) -> TokenReader:
        return Silent()

    def read_whole(self, body: bytes) -> Progress:
        return Progress(ended=True)


TOKENIZE = Tokens("tokenize")
DETOKENIZE = Tokens("detokenize")

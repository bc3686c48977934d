"""Lists of models and versions, which the router answers itself."""

from __future__ import annotations

from classifiers.api import Features
from router.surfaces.api import Framing, Progress, TokenReader
from router.surfaces.dialects import OllamaErrors, OpenAIErrors
from router.surfaces.readers import Silent
from router.surfaces.reading import Body, Headers


class _Listing:
    framing = Framing.SSE

    def __init__(self, name: str) -> None:
        self.name = name

    def features(self, body: Body, headers: Headers) -> Features:
        return Features(surface=self.name, headers=headers)

    def reader(self) -> TokenReader:
        return Silent()

    def read_whole(self, body: bytes) -> Progress:
        return Progress(ended=True)


class OpenAIListing(_Listing, OpenAIErrors):
    """Anthropic's clients read the same list."""


class OllamaListing(_Listing, OllamaErrors):
    pass


OPENAI_MODELS = OpenAIListing("openai_models")
OLLAMA_TAGS = OllamaListing("ollama_tags")
OLLAMA_PS = OllamaListing("ollama_ps")
OLLAMA_VERSION = OllamaListing("ollama_version")

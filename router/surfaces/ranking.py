"""Reranking and scoring: `/v1/rerank` and `/v1/score` with the other paths that servers give them."""

from __future__ import annotations

from classifiers.api import Features
from router.surfaces.api import Framing, Progress, TokenReader
from router.surfaces.dialects import OpenAIErrors
from router.surfaces.openai_embeddings import read_usage_alone
from router.surfaces.readers import Silent
from router.surfaces.reading import Body, Headers, Prompt, describe, estimate_all

_QUERIES = ("query", "queries", "text_1", "data_1")
_DOCUMENTS = ("documents", "texts", "text_2", "data_2", "items")
"""The names that Cohere, TEI, vLLM and SGLang use."""


class Ranking(OpenAIErrors):
    framing = Framing.SSE

    def __init__(self, name: str) -> None:
        self.name = name

    def features(self, body: Body, headers: Headers) -> Features:
        prompt = Prompt()
        documents = next((body[name] for name in _DOCUMENTS if body.get(name) is not None), None)
        prompt.take_inputs(documents)
        query: list[str] = []
        for name in _QUERIES:
            prompt.take_content(body.get(name), query)
        # The model reads the query again with each document. Written out, a small call could fill the memory.
        prompt.last_counted += estimate_all(query) * prompt.prompts
        return describe(self.name, body, headers, prompt, stream=False)

    def reader(self) -> TokenReader:
        return Silent()

    def read_whole(self, body: bytes) -> Progress:
        return read_usage_alone(body)


RERANK = Ranking("rerank")
SCORE = Ranking("score")

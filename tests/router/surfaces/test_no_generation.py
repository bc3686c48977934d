"""Embeddings, ranking, tokenizing and listings: texts are counted, and there is no first token to wait for."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from router.errors import BadRequest
from router.surfaces import SURFACES
from tests.router.surfaces.streams import play, read


@pytest.mark.parametrize(
    ("inputs", "prompts", "tokens"),
    [
        ("x", 1, 1),
        (["x", "y", "z"], 3, 3),
        ([1, 2, 3], 1, 3),
        ([[1, 2], [3]], 2, 3),
        (["x"] * 500, 500, None),
        ([{"content": [{"type": "text", "text": "x"}, {"type": "image_url"}]}], 1, 1),
        ([], 1, 0),
    ],
)
def test_every_shape_of_input_is_embedded(inputs: object, prompts: int, tokens: int | None) -> None:
    features = read("/v1/embeddings", {"model": "m", "input": inputs, "encoding_format": "base64"})
    assert (features.surface, features.prompts, features.stream) == ("openai_embeddings", prompts, False)
    assert tokens is None or features.last_tokens == tokens


def test_texts_to_embed_may_be_messages_or_under_another_name() -> None:
    chat = read("/v1/embeddings", {"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]})
    assert (chat.prompts, chat.last_tokens) == (1, 2)
    assert read("/v1/embeddings", {"content": "x"}).last_tokens == 1


@pytest.mark.parametrize("body", [{}, {"input": None}, {"input": 5}, {"input": True}])
def test_nothing_to_embed_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(BadRequest) as caught:
        read("/v1/embeddings", {"model": "m", **body})
    assert caught.value.param == "input"


def test_usage_is_found_without_parsing_megabytes_of_numbers() -> None:
    numbers = b",".join([b"0.123456789"] * 400_000)
    body = b'{"data":[{"embedding":[%b]}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}' % numbers
    began = time.perf_counter()
    progress = SURFACES["openai_embeddings"].read_whole(body)
    assert time.perf_counter() - began < 0.05
    assert (progress.prompt_tokens, progress.ended) == (8, True)


@pytest.mark.parametrize("body", [b"", b'{"usage":', b'{"usage":{"prompt_tokens":"x"}}', b'{"error":{}}'])
def test_usage_that_is_not_there_is_unknown(body: bytes) -> None:
    assert SURFACES["openai_embeddings"].read_whole(body).prompt_tokens is None


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank", "/v2/rerank"])
def test_documents_to_rank_are_counted(path: str) -> None:
    features = read(path, {"model": "m", "query": "q", "documents": ["a", "b"]})
    assert (features.surface, features.model, features.prompts) == ("rerank", "m", 2)


def test_the_query_counts_with_each_document() -> None:
    query = "Which lane is for those who wait?"
    one, many = (read("/rerank", {"query": query, "documents": ["a"] * count}) for count in (1, 10))
    assert many.last_tokens > 9 * one.last_tokens


def test_a_query_is_not_written_out_for_each_document() -> None:
    body = {"query": "q" * 100_000, "documents": [""] * 100_000}
    tracemalloc.start()
    assert read("/rerank", body).last_tokens > 100_000
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 50e6


def test_documents_may_be_objects_or_have_another_name() -> None:
    assert read("/rerank", {"documents": [{"text": "a"}]}).last_tokens == 1
    assert read("/rerank", {"query": "q", "texts": ["a", "b", "c"]}).prompts == 3
    assert read("/rerank", {"query": "q"}).prompts == 1


@pytest.mark.parametrize("body", [{"text_1": "q", "text_2": ["a", "b"]}, {"query": "q", "items": ["a", "b"]}])
def test_texts_to_score_are_counted(body: dict[str, object]) -> None:
    features = read("/v1/score", body)
    assert (features.surface, features.prompts) == ("score", 2)


@pytest.mark.parametrize("body", [{"content": "x"}, {"prompt": "x"}, {"messages": [{"role": "user", "content": "x"}]}])
def test_tokenizing_reads_every_name_of_the_text(body: dict[str, object]) -> None:
    assert read("/tokenize", body).last_tokens == 1


def test_detokenizing_counts_ids() -> None:
    features = read("/detokenize", {"tokens": [1, 2, 3]})
    assert (features.surface, features.last_tokens) == ("detokenize", 3)


@pytest.mark.parametrize(
    "name",
    ["openai_embeddings", "rerank", "score", "tokenize", "detokenize", "ollama_embed", "ollama_show", "openai_models"],
)
def test_no_answer_of_these_has_a_first_token(name: str) -> None:
    reader = SURFACES[name].reader()
    assert play(reader, {"choices": [{"delta": {"content": "a"}}]}, b"x") == [False, False]
    assert reader.progress.tokens == 0
    SURFACES[name].read_whole(b"whatever")

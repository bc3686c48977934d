"""Completions: every shape of prompt, and chunks that hold text."""

from __future__ import annotations

import pytest

from router.errors import BadRequest
from router.surfaces import SURFACES
from tests.router.surfaces.streams import play, read

SURFACE = SURFACES["openai_completions"]


@pytest.mark.parametrize(
    ("prompt", "prompts", "tokens"),
    [
        ("x", 1, 1),
        (["x", "y"], 2, 2),
        ([151644, 8948, 198], 1, 3),
        ([[1, 2], [3]], 2, 3),
        ([], 1, 0),
        ([[]], 1, 0),
        (None, 1, 0),
        ([{"prompt_string": "x", "multimodal_data": ["aGk="]}], 1, 1),
        ([1, "x", 2], 1, 3),
    ],
)
def test_every_shape_of_prompt_is_read(prompt: object, prompts: int, tokens: int) -> None:
    features = read("/v1/completions", {"model": "m", "prompt": prompt})
    assert (features.prompts, features.last_tokens, features.turns) == (prompts, tokens, 1)


@pytest.mark.parametrize("prompt", [5, True, 1.5])
def test_a_prompt_that_is_a_number_is_refused(prompt: object) -> None:
    with pytest.raises(BadRequest) as caught:
        read("/v1/completions", {"prompt": prompt})
    assert caught.value.param == "prompt"


def test_limits_and_choices_are_read() -> None:
    features = read("/v1/completions", {"prompt": "x", "max_tokens": 9, "best_of": 4, "n": 2, "suffix": "}"})
    assert (features.max_tokens, features.choices, features.last_tokens) == (9, 4, 2)


def test_text_is_counted_and_usage_on_the_last_chunk_is_read() -> None:
    reader = SURFACE.reader()
    usage = {"completion_tokens": 3, "prompt_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}}
    text = [{"id": "cmpl-1", "choices": [{"text": piece, "index": 0, "finish_reason": None}]} for piece in ("a", "b")]
    last = {"choices": [{"text": "", "finish_reason": "length"}], "usage": usage}
    assert play(reader, *text, last, b"[DONE]") == [True, True, False, False]
    progress = reader.progress
    assert (progress.tokens, progress.output_tokens, progress.prompt_tokens, progress.cached_tokens) == (3, 3, 4, 3)
    assert (progress.ended, progress.failed, progress.response_id) == (True, False, "cmpl-1")

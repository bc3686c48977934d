"""llama.cpp's own API: its names for the prompt, and its counts on the last chunk."""

from __future__ import annotations

import orjson
import pytest

from classifiers.estimate import estimate_tokens
from router.surfaces import SURFACES
from tests.router.surfaces.streams import play, read

SURFACE = SURFACES["llamacpp_completion"]
CODE = "def add(a: int, b: int) -> int:\n    return a + b\n"
END = {
    "content": "",
    "stop": True,
    "tokens_predicted": 24,
    "tokens_evaluated": 21,
    "timings": {"cache_n": 20, "prompt_n": 1, "predicted_n": 24},
}


def test_a_prompt_is_read() -> None:
    features = read("/completion", {"prompt": CODE, "n_predict": 24, "json_schema": {"type": "object"}, "stream": True})
    assert (features.surface, features.max_tokens, features.stream) == ("llamacpp_completion", 24, True)
    assert (features.last_tokens, features.response_format) == (estimate_tokens(CODE), "json_schema")


def test_no_limit_is_minus_one() -> None:
    assert read("/completion", {"prompt": "x", "n_predict": -1}).max_tokens is None


@pytest.mark.parametrize(("prompt", "prompts"), [([1, 2, 3], 1), (["a", "b"], 2), ([12, "a", 3], 1), ("a", 1)])
def test_prompts_have_every_shape(prompt: object, prompts: int) -> None:
    assert read("/completion", {"prompt": prompt}).prompts == prompts


def test_infill_counts_all_that_is_around_the_gap() -> None:
    extra = [{"filename": "a.py", "text": CODE}]
    body = {"input_prefix": CODE, "input_suffix": CODE, "prompt": "x", "input_extra": extra}
    assert read("/infill", body).prompt_tokens > 3 * estimate_tokens(CODE) - 3
    read("/infill", {"input_extra": [5, {}], "input_prefix": 7})


def test_a_template_is_applied_without_a_slot() -> None:
    features = read("/apply-template", {"messages": [{"role": "user", "content": "a"}]})
    assert (features.surface, features.stream) == ("llamacpp_apply_template", False)


def test_a_stream_ends_with_its_counts() -> None:
    reader = SURFACE.reader()
    text = {"index": 0, "content": "a", "stop": False, "tokens": [5]}
    assert play(reader, {"content": "", "stop": False}, text, text, END) == [False, True, True, False]
    progress = reader.progress
    assert (progress.prompt_tokens, progress.cached_tokens, progress.output_tokens) == (21, 20, 24)
    assert (progress.ended, progress.failed) == (True, False)


def test_a_last_chunk_may_carry_output_too() -> None:
    reader = SURFACE.reader()
    text = {"content": "a", "stop": False}
    assert play(reader, text, text, {**END, "content": "b"}) == [True] * 3
    assert (reader.progress.ended, reader.progress.tokens) == (True, 24)


def test_several_prompts_end_with_the_counts_of_each() -> None:
    reader = SURFACE.reader()
    play(reader, {"index": 0, "content": "a"}, {**END, "index": 0}, {"index": 1, "content": "a"}, {**END, "index": 1})
    assert reader.progress.output_tokens == 48


def test_an_error_is_a_failure() -> None:
    reader = SURFACE.reader()
    play(reader, {"error": {"code": 500, "message": "x", "type": "server_error"}})
    assert reader.progress.failed


@pytest.mark.parametrize("event", [b"", b"[]", {}, {"content": 5}, {"content": [], "stop": 1, "timings": 5}])
def test_no_event_makes_a_reader_raise(event: object) -> None:
    play(SURFACE.reader(), event, {"content": "a"}, event)


def test_a_whole_answer_gives_its_counts() -> None:
    progress = SURFACE.read_whole(orjson.dumps({**END, "content": "abc"}))
    assert (progress.prompt_tokens, progress.cached_tokens, progress.output_tokens) == (21, 20, 24)
    assert progress.ended

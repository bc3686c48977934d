"""What engines have measured of their own work is read where they tell it, and nothing is made of what is no time."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from router.surfaces import SURFACES
from router.surfaces.api import Progress

TIMINGS = {"cache_n": 0, "prompt_n": 9, "prompt_ms": 250.0, "predicted_n": 5, "predicted_ms": 1_500}


def streamed(surface: str, last: dict[str, Any]) -> Progress:
    reader = SURFACES[surface].reader()
    reader.event("", orjson.dumps(last))
    return reader.progress


def whole(surface: str, answer: dict[str, Any]) -> Progress:
    return SURFACES[surface].read_whole(orjson.dumps(answer))


@pytest.mark.parametrize("times", ["streamed", "whole"])
@pytest.mark.parametrize("surface", ["openai_chat", "openai_completions"])
def test_llamacpp_tells_its_times_beside_answers_of_openais_apis(surface: str, times: str) -> None:
    end = {"choices": [{"finish_reason": "stop", "delta": {}, "text": ""}], "timings": TIMINGS}
    progress = streamed(surface, end) if times == "streamed" else whole(surface, end)
    assert (progress.prompt_s, progress.decode_s) == (0.25, 1.5)


def test_llamacpp_tells_its_times_in_its_own_api() -> None:
    answer = {"content": "", "stop": True, "timings": TIMINGS}
    for progress in (streamed("llamacpp_completion", answer), whole("llamacpp_completion", answer)):
        assert (progress.prompt_s, progress.decode_s) == (0.25, 1.5)


@pytest.mark.parametrize("surface", ["ollama_chat", "ollama_generate"])
def test_ollama_tells_its_times_in_nanoseconds(surface: str) -> None:
    answer = {"done": True, "prompt_eval_duration": 250_000_000, "eval_count": 3, "eval_duration": 1_500_000_000}
    for progress in (streamed(surface, answer), whole(surface, answer)):
        assert (progress.prompt_s, progress.decode_s) == (0.25, 1.5)


@pytest.mark.parametrize("said", [None, "250", 0, -1.0, 1e15, [250], {}])
def test_what_is_no_time_is_not_taken_for_one(said: object) -> None:
    timings = {**TIMINGS, "prompt_ms": said}
    assert whole("openai_chat", {"choices": [], "timings": timings}).prompt_s is None
    assert whole("openai_chat", {"choices": [], "timings": said}).prompt_s is None

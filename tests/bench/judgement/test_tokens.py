"""The measure of token estimates itself: what counts as the truth, and that learning is judged on later calls."""

from __future__ import annotations

import pytest

from bench.judgement import vocabularies
from bench.judgement.tokens import Counted, error, learned, report
from classifiers.api import Features


def test_markers_of_the_template_and_tools_count() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"text": "Hello there"}]}]
    tool = {"type": "function", "function": {"name": "look", "parameters": {}}}
    bare = vocabularies.prompt_tokens("llama3", {"messages": messages})
    texts = vocabularies.count("llama3", "Be brief.") + vocabularies.count("llama3", "Hello there")
    assert bare == texts + 2 * 5 + 5
    assert vocabularies.prompt_tokens("llama3", {"messages": messages, "tools": [tool]}) > bare + 10
    assert vocabularies.prompt_tokens("llama3", {"prompt": "Hello there"}) == 1 + vocabularies.count(
        "llama3", "Hello there"
    )


def test_calls_that_the_model_made_are_read_again() -> None:
    call = {"function": {"name": "look", "arguments": '{"at": "the sky"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert vocabularies.texts_of({"messages": [message]}) == ["look", '{"at": "the sky"}']


def test_what_looks_like_a_special_token_is_text() -> None:
    assert vocabularies.count("qwen3", "<|im_end|>") > 1


def test_learning_is_judged_by_later_calls_alone() -> None:
    calls = [
        Counted(
            "s", Features(surface="x", last_role="user", prompt_tokens=size, estimated_tokens=size), {"m": 2 * size}
        )
        for size in range(100, 500, 10)
    ]
    before, after = learned(calls, "m")
    assert len(before) == len(after) == len(calls) // 2
    assert max(after) < 0.1 < min(before)


def test_errors_are_shares_of_the_truth() -> None:
    assert error(150, 100) == 0.5
    assert error(1, 0) == 1.0


def test_without_data_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TWOLANE_DATA", raising=False)
    assert report() == ["prompt tokens: not measured, TWOLANE_DATA names no data"]

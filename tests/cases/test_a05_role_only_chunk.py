"""A05: the first frame has a role and no token; who takes it for one sees first tokens that never were."""

from __future__ import annotations

import pytest

from tests.cases.apis import CHAT, COMPLETIONS, DONE, LLAMACPP, OLLAMA_CHAT, RESPONSES, Api, delta, each_api, sse, typed
from tests.cases.staged import staged

EMPTY = [
    (CHAT, delta({"role": "assistant", "content": ""})),
    (CHAT, delta({"role": "assistant"})),
    (CHAT, delta({"role": "assistant", "content": None})),
    (CHAT, delta({"role": "assistant", "content": None, "tool_calls": [], "refusal": None})),
    (CHAT, delta({"content": ""}, "stop")),
    (CHAT, sse({"id": "c1", "choices": []})),
    (CHAT, sse({"id": "c1", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]})),
    (CHAT, sse({"id": "c1", "choices": [{"index": 0, "delta": None}]})),
    (CHAT, b"data: not JSON at all\n\n"),
    (COMPLETIONS, sse({"choices": [{"index": 0, "text": ""}]})),
    (RESPONSES, typed("response.in_progress", response={"id": "r1", "output": []})),
    (RESPONSES, typed("response.content_part.added", part={"type": "output_text", "text": ""})),
    (RESPONSES, typed("response.output_text.delta", delta="")),
    (OLLAMA_CHAT, OLLAMA_CHAT.token("")),
    (LLAMACPP, sse({"content": "", "prompt_progress": {"total": 9, "processed": 4}})),
]


@each_api
async def test_the_first_token_is_the_first_output(api: Api) -> None:
    async with staged(api, api.opening, api.token("a"), api.ending) as (script, router, _):
        script.assert_first_token_in(1, router)


@each_api
async def test_a_stream_without_output_gives_no_sample(api: Api) -> None:
    async with staged(api, api.opening, api.ending, gap_s=0.0) as (_, router, _):
        assert router.metric("twolane_ttft_seconds_count") == 0
        assert router.metric("twolane_tpot_seconds_count") == 0
        assert router.metric("twolane_calls_total", outcome="completed") == 1


@pytest.mark.parametrize(("api", "event"), EMPTY)
async def test_frames_without_output_are_no_token_before_it_nor_behind_it(api: Api, event: bytes) -> None:
    async with staged(api, event, api.token("a") + event * 3, gap_s=0.02) as (script, router, _):
        script.assert_first_token_in(1, router)
        assert router.metric("twolane_tokens_total", direction="out") == 1


async def test_a_role_and_a_token_in_one_chunk_are_a_token() -> None:
    async with staged(CHAT, delta({"role": "assistant", "content": "a"}), DONE, gap_s=0.0) as (script, router, _):
        script.assert_first_token_in(0, router)

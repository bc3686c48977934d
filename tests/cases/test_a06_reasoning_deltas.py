"""A06: a model that thinks aloud has begun long before the text of its answer; servers differ in the field's name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.apis import CHAT, MESSAGES, OLLAMA_CHAT, OLLAMA_GENERATE, RESPONSES, Api, delta, line, typed
from tests.cases.staged import staged


@pytest.mark.parametrize(
    ("fields", "thinks"),
    [
        ({"reasoning_content": "Hm"}, True),
        ({"reasoning": "Hm"}, True),
        ({"content": None, "reasoning_content": "Hm"}, True),
        ({"content": "", "reasoning_content": "Hm"}, True),
        ({"content": "", "reasoning_content": ""}, False),
        ({"content": None, "reasoning": None}, False),
        ({"role": "assistant", "reasoning_content": ""}, False),
    ],
)
async def test_a_thought_is_a_token_unless_it_is_empty(fields: dict[str, Any], thinks: bool) -> None:
    thought = delta(fields)
    async with staged(CHAT, thought, CHAT.token("a"), CHAT.ending) as (script, router, answer):
        script.assert_first_token_in(0 if thinks else 1, router)
        assert answer.body.startswith(thought)


def ollama(**fields: Any) -> bytes:
    return line({"message": {"role": "assistant", "content": "", **fields}, "done": False})


THOUGHTS = [
    (CHAT, delta({"reasoning_content": "Hm"})),
    (RESPONSES, typed("response.reasoning_text.delta", delta="Hm")),
    (RESPONSES, typed("response.reasoning_summary_text.delta", delta="Hm")),
    (MESSAGES, typed("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "Hm"})),
    (OLLAMA_CHAT, ollama(thinking="Hm")),
    (OLLAMA_GENERATE, line({"response": "", "thinking": "Hm", "done": False})),
]
each_thought = pytest.mark.parametrize(("api", "thought"), THOUGHTS)


@each_thought
async def test_a_thought_is_a_token_in_every_api(api: Api, thought: bytes) -> None:
    async with staged(api, api.opening, thought, api.token("a"), gap_s=0.02) as (script, router, _):
        script.assert_first_token_in(1, router)


@each_thought
async def test_thoughts_and_text_are_counted_alike_where_the_server_counts_nothing(api: Api, thought: bytes) -> None:
    stages = [thought * 3, *[thought] * 40, *[api.token("a")] * 40, thought + api.token("a")]
    async with staged(api, *stages, gap_s=0.0) as (_, router, _):
        assert router.metric("twolane_tokens_total", direction="out") == 85


async def test_what_only_says_that_a_thought_begins_is_no_token() -> None:
    begins = typed("content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""})
    signed = typed("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "abc"})
    thought = typed("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "Hm"})
    async with staged(MESSAGES, MESSAGES.opening + begins + signed, thought) as (script, router, _):
        script.assert_first_token_in(1, router)

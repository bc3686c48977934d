"""A32: a long history goes where it fits, however short its last message; a wrong guess costs one more attempt."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.apis import CHAT, COMPLETIONS, MESSAGES, RESPONSES, Api
from tests.router.running import router_for
from tests.scripted import Peer, Received, Script, ScriptedBackend, echo

INTERACTIVE = "X-Twolane-Class: interactive"
WORDS = "the quick brown fox jumps over the lazy dog and finds nothing new there " * 45
TURNS = [{"role": "user" if turn % 2 == 0 else "assistant", "content": f"{turn} {WORDS}"} for turn in range(10)]
HISTORY = [{"role": "system", "content": "be brief"}, *TURNS, {"role": "user", "content": "ok continue"}]
"""About 6,000 tokens."""

LONG: list[tuple[Api, dict[str, Any]]] = [
    (CHAT, {"messages": HISTORY}),
    (MESSAGES, {"messages": HISTORY[1:], "system": "be brief"}),
    (RESPONSES, {"input": HISTORY}),
    (COMPLETIONS, {"prompt": WORDS * 10 + "ok continue"}),
    (COMPLETIONS, {"prompt": [7] * 6000}),
]
each_long = pytest.mark.parametrize(("api", "call"), LONG, ids=[str(api) for api, _ in LONG])


def llamacpp(context_tokens: int, script: Script = echo) -> ScriptedBackend:
    props = {"total_slots": 2, "default_generation_settings": {"n_ctx": context_tokens}}
    return ScriptedBackend(script, probes={"/props": props})


def vllm(context_tokens: int, script: Script = echo) -> ScriptedBackend:
    entry = {"id": "m", "object": "model", "owned_by": "vllm", "max_model_len": context_tokens}
    return ScriptedBackend(script, probes={"/v1/models": {"object": "list", "data": [entry]}})


LATENCY, THROUGHPUT = {"engine": "auto"}, {"engine": "auto", "lane": "throughput"}

REFUSALS: dict[str, dict[str, Any]] = {
    "llama.cpp": {
        "error": {
            "code": 400,
            "message": "the request exceeds the available context size, try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 6100,
            "n_ctx": 4096,
        }
    },
    "vllm": {
        "error": {
            "message": "This model's maximum context length is 4096 tokens. However, you requested 6100 tokens",
            "type": "BadRequestError",
            "code": 400,
        }
    },
    "vllm before 0.10": {
        "object": "error",
        "message": "This model's maximum context length is 4096 tokens. However, you requested 6100 tokens",
        "code": 400,
    },
    "openai": {"error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}},
    "anthropic shape": {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "the request exceeds the available context size"},
    },
}


def refuses(document: dict[str, Any]) -> Script:
    async def script(request: Received, peer: Peer) -> None:
        await peer.json(document, "400 Bad Request")

    return script


@each_long
async def test_the_history_counts_and_not_the_last_message(api: Api, call: dict[str, Any]) -> None:
    async with llamacpp(4096) as small, vllm(32768) as large:
        async with router_for((small, LATENCY), (large, THROUGHPUT)) as router:
            for stream in (False, True):
                body = {**api.body(stream=stream), **call}
                assert (await router.post(api.path, body, INTERACTIVE)).header("x-twolane-backend") == "b1"
            assert small.received == []
            short = await router.post(api.path, api.body(stream=True), INTERACTIVE)
            assert short.header("x-twolane-backend") == "b0"


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("api", [CHAT, MESSAGES, RESPONSES, COMPLETIONS], ids=str)
async def test_a_wrong_guess_is_mended_once(api: Api, refusal: dict[str, Any]) -> None:
    async with llamacpp(4096, refuses(refusal)) as small, vllm(32768) as large:
        async with router_for((small, LATENCY), (large, THROUGHPUT), health={"break_after": 1}) as router:
            for stream in (False, True):
                answer = await router.post(api.path, api.body(stream=stream), INTERACTIVE)
                assert (answer.status, answer.header("x-twolane-backend")) == (200, "b1")
            assert (len(small.received), len(large.received)) == (2, 2)
            assert small.received[0].body == large.received[0].body
            assert router.metric("twolane_backend_up", backend="b0") == 1


async def test_where_no_backend_fits_there_is_one_refusal_and_no_loop() -> None:
    refuse = refuses(REFUSALS["llama.cpp"])
    async with llamacpp(4096, refuse) as small, vllm(8192, refuse) as larger, vllm(8192, refuse) as as_large:
        fleet = (small, LATENCY), (larger, THROUGHPUT), (as_large, THROUGHPUT)
        async with router_for(*fleet) as router:
            answer = await router.post(CHAT.path, CHAT.body(stream=True), INTERACTIVE)
            assert (answer.status, answer.json()) == (400, REFUSALS["llama.cpp"])
            assert len(small.received) == 1
            assert len(larger.received) + len(as_large.received) == 1


async def test_what_fits_nowhere_as_far_as_is_known_is_the_backends_to_refuse() -> None:
    async with llamacpp(2048, refuses(REFUSALS["llama.cpp"])) as small, llamacpp(4096) as larger:
        async with router_for((small, LATENCY), (larger, LATENCY)) as router:
            statuses = {(await router.post(CHAT.path, {**CHAT.call, "messages": HISTORY})).status for _ in range(4)}
            assert statuses == {200}  # the larger one took it: our estimate was only that
            assert len(larger.received) == 4


async def test_a_backend_whose_size_is_not_known_gets_the_one_attempt() -> None:
    async with llamacpp(4096, refuses(REFUSALS["llama.cpp"])) as small, ScriptedBackend() as unknown:
        async with router_for((small, LATENCY), (unknown, {"lane": "throughput"})) as router:
            answer = await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)
            assert (answer.status, answer.header("x-twolane-backend")) == (200, "b1")


async def test_among_backends_of_unknown_size_none_is_tried_for_being_larger() -> None:
    async with ScriptedBackend(refuses(REFUSALS["openai"])) as one, ScriptedBackend() as two:
        async with router_for(one, (two, {"lane": "throughput"})) as router:
            assert (await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)).status == 400
            assert two.received == []


async def test_a_lane_that_the_class_may_not_use_is_not_used_for_its_size() -> None:
    """Nor does the call wait for it."""
    lanes = {"ttft": {"lanes": ["latency"], "max_wait": "5s"}}
    async with llamacpp(4096, refuses(REFUSALS["llama.cpp"])) as small, vllm(32768) as large:
        async with router_for((small, LATENCY), (large, THROUGHPUT), classes=lanes) as router:
            for body in (CHAT.call, {**CHAT.call, "messages": HISTORY}):
                answer = await router.post(CHAT.path, body, INTERACTIVE)
                assert (answer.status, answer.json()) == (400, REFUSALS["llama.cpp"])
            assert large.received == []


async def test_a_small_backend_is_asked_while_the_large_one_is_down() -> None:
    async with llamacpp(4096) as small, vllm(32768) as large:
        async with router_for((small, LATENCY), (large, THROUGHPUT), health={"interval": "1h"}) as router:
            await large.stop()
            for _ in range(2):
                answer = await router.post(CHAT.path, {**CHAT.call, "messages": HISTORY}, INTERACTIVE)
                assert (answer.status, answer.header("x-twolane-backend")) == (200, "b0")


async def test_a_bad_call_is_not_taken_for_a_long_one() -> None:
    """A prompt may say anything, and servers repeat it in what they say of it."""
    error = {
        "error": {"message": "tools: unsupported", "type": "BadRequestError", "code": 400},
        "input": {"messages": [{"role": "user", "content": "what does maximum context length mean?"}]},
    }
    async with llamacpp(4096, refuses(error)) as small, vllm(32768) as large:
        async with router_for((small, LATENCY), (large, THROUGHPUT)) as router:
            answer = await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)
            assert (answer.status, answer.json()) == (400, error)
            assert large.received == []

"""A08: who turns on `include_usage` for his own books sends chunks to clients that they never asked for."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.cases.apis import CHAT, COMPLETIONS, DONE, Api, delta, sse
from tests.cases.staged import staged
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received

USAGE = sse({"id": "c1", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}})


async def as_openai(request: Received, peer: Peer) -> None:
    """Sends the usage where it was asked for."""
    options = orjson.loads(request.body).get("stream_options") or {}
    await peer.stream_head()
    for text in "ab":
        await peer.chunk(CHAT.token(text))
    if options.get("include_usage"):
        await peer.chunk(USAGE)
    await peer.chunk(DONE)
    await peer.last_chunk()


async def refuses_stream_options(request: Received, peer: Peer) -> None:
    if b"stream_options" in request.body:
        await peer.json({"error": {"message": "unknown field stream_options"}}, "400 Bad Request")
    else:
        await as_openai(request, peer)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"stream_options": None},
    {"stream_options": {}},
    {"stream_options": {"include_usage": False}},
    {"stream_options": {"include_usage": True}},
    {"stream_options": {"include_usage": True, "continuous_usage_stats": False}},
]
SETTINGS: list[dict[str, Any]] = [{}, {"engine": "vllm", "forward_priority": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda value: orjson.dumps(value).decode())
@pytest.mark.parametrize("settings", SETTINGS, ids=["plain", "with_priority"])
@pytest.mark.parametrize("model", ["m", "fast"])
async def test_the_options_of_the_client_are_left_alone(
    options: dict[str, Any], settings: dict[str, Any], model: str
) -> None:
    async with CHAT.backend(as_openai) as backend:
        async with router_for((backend, settings), models={"fast": {"b0": "m"}}) as router:
            answer = await router.post(CHAT.path, {**CHAT.body(stream=True), "model": model, **options})
            sent = orjson.loads(backend.received[0].body)
            assert {name: sent[name] for name in sent if name == "stream_options"} == options
            asked = bool((options.get("stream_options") or {}).get("include_usage"))
            assert answer.body == CHAT.token("a") + CHAT.token("b") + USAGE * asked + DONE


async def test_a_backend_that_does_not_know_the_options_is_not_sent_any() -> None:
    async with CHAT.backend(refuses_stream_options) as backend, router_for(backend) as router:
        assert (await router.post(CHAT.path, CHAT.body(stream=True))).status == 200
        assert backend.received[0].body == orjson.dumps(CHAT.body(stream=True))


async def test_tokens_are_counted_where_no_usage_is_asked_for() -> None:
    async with staged(CHAT, CHAT.token("a"), CHAT.token("b"), DONE, gap_s=0.0) as (_, router, answer):
        assert b'"choices":[]' not in answer.body
        assert_tokens(router, prompt=0, output=2)


def assert_tokens(router: Running, *, prompt: int, output: int) -> None:
    assert router.metric("twolane_tokens_total", direction="in") == prompt
    assert router.metric("twolane_tokens_total", direction="out") == output
    assert router.metric("twolane_watch_failures_total") == 0


def usage(**counts: int) -> dict[str, Any]:
    return {"usage": counts}


ODD: list[tuple[Api, tuple[bytes, ...], int, int]] = [
    (CHAT, (CHAT.token("a"), sse(usage(total_tokens=3))), 0, 1),
    (CHAT, (CHAT.token("a"), sse(usage(prompt_tokens=5, completion_tokens=9))), 5, 9),
    (CHAT, (CHAT.token("a"), sse({"choices": None, **usage(prompt_tokens=5, completion_tokens=9)})), 5, 9),
    (CHAT, (CHAT.token("a"), sse({"choices": [], "usage": None})), 0, 1),
    (CHAT, (CHAT.token("a"), sse({"choices": [], "usage": {}})), 0, 1),
    (CHAT, (CHAT.token("a"), sse({"choices": [], **usage(prompt_tokens=-1, completion_tokens=-1)})), 0, 1),
    (CHAT, (CHAT.token("a"), sse({"choices": [], "usage": {"completion_tokens": "9"}})), 0, 1),
    (
        CHAT,  # the running count of vLLM, in every chunk
        tuple(
            sse({"choices": [{"delta": {"content": "a"}}], **usage(prompt_tokens=5, completion_tokens=number)})
            for number in range(1, 60)
        ),
        5,
        59,
    ),
    (
        CHAT,  # `usage: null` in every chunk but the last, as OpenAI has it
        (*[sse({"choices": [{"delta": {"content": "a"}}], "usage": None})] * 50, USAGE),
        5,
        2,
    ),
    (
        CHAT,
        (CHAT.token("a"), delta({}, "stop")[:-3] + b',"usage":{"prompt_tokens":5,"completion_tokens":4}}\n\n'),
        5,
        4,
    ),
    (COMPLETIONS, (COMPLETIONS.token("a"), sse(usage(prompt_tokens=5, completion_tokens=9))), 5, 9),
]


@pytest.mark.parametrize(("api", "events", "prompt", "output"), ODD)
async def test_usage_of_any_form_is_read_or_passed_over_and_its_bytes_pass(
    api: Api, events: tuple[bytes, ...], prompt: int, output: int
) -> None:
    async with staged(api, *events, DONE, gap_s=0.0) as (_, router, _):
        assert_tokens(router, prompt=prompt, output=output)

"""From answers to expectations, through the whole router: what `explain` tells of caches after calls."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

CHAT = "/v1/chat/completions"
LONG = "Some facts about a small town. " * 100


def chat(text: str = LONG, **rest: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **rest}


async def expected(router: Running, text: str = LONG) -> dict[str, int]:
    """Cached tokens by backend, as told by `explain`."""
    document = {"path": CHAT, "body": chat(text)}
    answer = await router.admin("POST", "/explain", orjson.dumps(document), "Content-Type: application/json")
    told: Any = answer.json()
    return {each["backend"]: each["cached_tokens"] for each in told["considered"]}


def answering(cached: int | None) -> Any:
    async def script(request: Received, peer: Peer) -> None:
        usage: dict[str, Any] = {"prompt_tokens": 700, "completion_tokens": 2}
        if cached is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
        await peer.json({"choices": [{"index": 0, "message": {"content": "ok"}}], "usage": usage})

    return script


async def test_explain_tells_what_each_backend_is_expected_to_have() -> None:
    async with ScriptedBackend(answering(None)) as one, ScriptedBackend(answering(None)) as two:
        async with router_for(one, two, policy="round_robin") as router:
            assert await expected(router) == {"b0": 0, "b1": 0}
            home = (await router.post(CHAT, chat())).header("x-twolane-backend")
            assert home is not None
            await eventually(lambda: router.idle)
            found = await expected(router)
            assert found.pop(home) > 500
            assert list(found.values()) == [0]
            assert max((await expected(router, "Another one. " * 200)).values()) == 0


@pytest.mark.parametrize(("cached", "least", "most"), [(None, 500, 800), (690, 500, 800), (0, 0, 150)])
async def test_what_engines_report_corrects_what_is_expected(cached: int | None, least: int, most: int) -> None:
    async with ScriptedBackend(answering(cached)) as one, router_for(one) as router:
        for _ in range(10):
            assert (await router.post(CHAT, chat())).complete
        await eventually(lambda: router.idle)
        assert least <= (await expected(router))["b0"] <= most


async def test_a_backend_that_refused_the_call_is_expected_to_have_nothing() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.json({"error": {"message": "no"}}, "400 Bad Request")

    async with ScriptedBackend(script) as one, router_for(one) as router:
        await router.post(CHAT, chat())
        assert await expected(router) == {"b0": 0}


async def test_a_running_prompt_counts_and_so_does_one_whose_client_left() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        await peer.token("a")
        await peer.until_closed()

    async with ScriptedBackend(script) as one, router_for(one) as router:
        client = await router.client()
        await client.post(CHAT, chat(stream=True))
        await client.answer(head_only=True)
        assert (await expected(router))["b0"] > 500
        client.close()
        await eventually(lambda: router.idle)
        await asyncio.sleep(0)
        assert (await expected(router))["b0"] > 500

"""What the router expects of the caches of real servers, beside what they report of each call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from bench.model_maker import ModelFiles
from bench.servers.engines import LlamaCppServer, VllmServer
from bench.servers.router import RouterProcess
from tests.e2e.calls import CHAT
from tests.e2e.conftest import QUICK, StartRouter

WORDS = "after again all before big but came day first from good great had how into just know little long made many"
Message = dict[str, Any]


def text(chance: Random, words: int) -> str:
    return " ".join(chance.choices(WORDS.split(), k=words))


class Talk:
    """Calls to one backend through the router, each with what `explain` expected of it."""

    def __init__(self, router: RouterProcess, http: aiohttp.ClientSession, model: str) -> None:
        self._router = router
        self._http = http
        self._model = model
        self.expected: list[float] = []
        """Tokens, in the engine's own count of the prompt."""
        self.found: list[int] = []
        self.prompts: list[int] = []

    async def say(self, messages: list[Message]) -> str:
        body = {"model": self._model, "messages": messages, "max_tokens": 16, "temperature": 0}
        told = self._router.ask_admin("POST", "/explain", {"path": CHAT, "body": body})
        (considered,) = told["considered"]
        async with self._http.post(self._router.url + CHAT, json=body) as response:
            answer = await response.json()
        usage = answer["usage"]
        self.prompts.append(usage["prompt_tokens"])
        self.found.append((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
        self.expected.append(considered["cached_tokens"] * usage["prompt_tokens"] / told["features"]["prompt_tokens"])
        return str(answer["choices"][0]["message"]["content"])

    def worst(self) -> float:
        """Largest difference, in tokens."""
        return max(abs(expected - found) for expected, found in zip(self.expected, self.found, strict=True))


async def conversation(talk: Talk, chance: Random, turns: int) -> None:
    messages: list[Message] = [{"role": "system", "content": text(chance, 150)}]
    for _ in range(turns):
        messages.append({"role": "user", "content": text(chance, 60)})
        messages.append({"role": "assistant", "content": await talk.say(messages)})


async def in_turn(talk: Talk, chance: Random, conversations: int, turns: int) -> None:
    all_messages: list[list[Message]] = [[] for _ in range(conversations)]
    for _ in range(turns):
        for messages in all_messages:
            messages.append({"role": "user", "content": text(chance, 150)})
            messages.append({"role": "assistant", "content": await talk.say(messages)})


def alone(url: str) -> dict[str, Any]:
    return {"backends": [{"name": "one", "url": url}], **QUICK}


@pytest.mark.llamacpp
async def test_turns_of_a_conversation_find_in_llamacpp_what_was_expected(
    model: ModelFiles, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    with LlamaCppServer(model.gguf, slots=2, ctx=8192) as server:
        talk = Talk(start_router(alone(server.url)), http, server.name)
        await conversation(talk, Random(1), turns=5)
        assert talk.expected[0] == talk.found[0] == 0
        assert min(talk.found[1:]) > 200
        assert talk.worst() < 60


@pytest.mark.llamacpp
async def test_two_slots_are_not_expected_to_remember_four_conversations(
    model: ModelFiles, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    with LlamaCppServer(model.gguf, slots=2, ctx=8192) as server:
        talk = Talk(start_router(alone(server.url)), http, server.name)
        await in_turn(talk, Random(2), conversations=4, turns=3)
        assert max(talk.found) < 60
        assert talk.worst() < 60


@pytest.mark.llamacpp
async def test_a_llamacpp_that_was_started_anew_is_expected_to_have_nothing(
    model: ModelFiles, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    chance = Random(3)
    messages: list[Message] = [{"role": "user", "content": text(chance, 300)}]
    with LlamaCppServer(model.gguf, slots=2) as server:
        port = server.port
        router = start_router(alone(server.url))
        talk = Talk(router, http, server.name)
        await talk.say(messages)
    router.process.wait_until(lambda: router.backends()["one"]["health"] == "down", timeout_s=20, what="a dead backend")
    with LlamaCppServer(model.gguf, slots=2, port=port):
        router.process.wait_until(lambda: router.backends()["one"]["health"] == "up", timeout_s=20, what="a backend")
        await talk.say(messages)
        await talk.say(messages)
        assert talk.expected[1] == 0
        assert talk.found[1] <= 1
        assert talk.expected[2] == pytest.approx(talk.found[2], abs=60)


@pytest.fixture(scope="module")
def gpu(model: ModelFiles, logs: Path) -> Iterator[VllmServer]:
    with VllmServer(model.hf, alias="tiny", max_seqs=4, ctx=8192, log=logs / "vllm-prefixes.log") as server:
        yield server


@pytest.mark.vllm
@pytest.mark.timeout(600)
async def test_conversations_find_in_vllm_what_was_expected(
    gpu: VllmServer, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    """On the CPU it caches blocks of 128 tokens, so what it finds is up to that much less."""
    talk = Talk(start_router(alone(gpu.url)), http, gpu.name)
    await conversation(talk, Random(4), turns=5)
    await in_turn(talk, Random(5), conversations=4, turns=3)
    assert sum(talk.found) > 0.3 * sum(talk.prompts)
    assert talk.worst() < 128 + 60
    assert sum(talk.expected) == pytest.approx(sum(talk.found), rel=0.35)

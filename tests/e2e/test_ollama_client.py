"""The `ollama` package through the router.

No real Ollama server can be installed where these tests run. So: on real llama.cpp, what a client of Ollama's API gets
told there; and its streaming path against `ScriptedOllama`, a fake that replies what Ollama's API reference documents.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import ollama
import orjson
import pytest

from bench.servers.router import RouterProcess
from tests.e2e.conftest import QUICK, StartRouter
from tests.scripted import Peer, Received, ScriptedBackend

HELLO = [{"role": "user", "content": "Say hello"}]
WORDS = ("one", " two", " three")


@asynccontextmanager
async def client_of(router: RouterProcess) -> AsyncIterator[ollama.AsyncClient]:
    client = ollama.AsyncClient(host=router.url)
    try:
        yield client
    finally:
        await client.close()  # type: ignore[no-untyped-call]


async def chat(client: ollama.AsyncClient, stream: bool) -> None:
    if stream:
        async for _ in await client.chat(model="chat", messages=HELLO, stream=True):
            pass
    else:
        await client.chat(model="chat", messages=HELLO, stream=False)


@pytest.mark.llamacpp
class TestOnLlamaCpp:
    async def test_no_models_are_listed_since_llamacpp_has_no_such_api(self, two_lanes: RouterProcess) -> None:
        async with client_of(two_lanes) as client:
            assert (await client.list()).models == []

    @pytest.mark.parametrize("stream", [False, True])
    async def test_a_chat_is_refused_with_what_to_do_since_llamacpp_has_no_such_api(
        self, two_lanes: RouterProcess, stream: bool
    ) -> None:
        async with client_of(two_lanes) as client:
            with pytest.raises(ollama.ResponseError) as refused:
                await chat(client, stream)
        assert refused.value.status_code == 404
        assert refused.value.error
        assert not refused.value.error.startswith("{"), "the message is the sentence alone, as Ollama sends it"


class ScriptedOllama(ScriptedBackend):
    """Enough of Ollama's API to be recognised and to stream; computes nothing."""

    def __init__(self) -> None:
        super().__init__(script=ollama_script)

    async def _probe(self, request: Received, peer: Peer) -> None:
        documents: dict[str, object] = {
            "/api/version": {"version": "0.12.3"},
            "/api/tags": {"models": [{"name": "tiny:latest", "model": "tiny:latest", "size": 1, "digest": "0"}]},
            "/api/ps": {"models": []},
            "/v1/models": {"object": "list", "data": [{"id": "tiny:latest", "object": "model", "owned_by": "library"}]},
        }
        if request.target == "/":
            await peer.head("200 OK", "Content-Type: text/plain", "Content-Length: 17")
            await peer.send(b"Ollama is running")
        elif request.target in documents:
            await peer.json(documents[request.target])
        else:
            await peer.json({"error": "not found"}, "404 Not Found")


async def ollama_script(request: Received, peer: Peer) -> None:
    asked = orjson.loads(request.body)
    common = {"model": asked["model"], "created_at": "2025-01-01T00:00:00.000000Z"}

    def part(text: str) -> dict[str, object]:
        if request.target == "/api/chat":
            return {**common, "message": {"role": "assistant", "content": text}, "done": False}
        return {**common, "response": text, "done": False}

    end = {**part(""), "done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": len(WORDS)}
    if asked.get("stream", True):
        await peer.head("200 OK", "Content-Type: application/x-ndjson", "Transfer-Encoding: chunked")
        for document in [*map(part, WORDS), end]:
            await peer.chunk(orjson.dumps(document) + b"\n")
        await peer.last_chunk()
    else:
        await peer.json({**end, **part("".join(WORDS)), "done": True})


@pytest.fixture
async def backend() -> AsyncIterator[ScriptedOllama]:
    backend = ScriptedOllama()
    async with backend:
        yield backend


@pytest.fixture
async def router(backend: ScriptedOllama, start_router: StartRouter) -> RouterProcess:
    # Not in this thread: the fake answers the router's probes from here.
    return await asyncio.to_thread(start_router, {"backends": [{"name": "box", "url": backend.url}], **QUICK})


class TestOnAScriptedOllama:
    async def test_it_is_recognised(self, router: RouterProcess) -> None:
        box = (await asyncio.to_thread(router.backends))["box"]
        assert box["engine"] == "ollama"
        assert box["models"] == ["tiny:latest"]

    async def test_its_models_are_listed(self, router: RouterProcess) -> None:
        async with client_of(router) as client:
            assert [model.model for model in (await client.list()).models] == ["tiny:latest"]

    async def test_a_chat_is_streamed(self, router: RouterProcess) -> None:
        async with client_of(router) as client:
            parts = [part async for part in await client.chat(model="tiny", messages=HELLO, stream=True)]
        assert [part.message.content for part in parts] == [*WORDS, ""]
        assert parts[-1].done
        assert parts[-1].eval_count == 3

    async def test_a_chat_is_answered_whole(self, router: RouterProcess) -> None:
        async with client_of(router) as client:
            answer = await client.chat(model="tiny", messages=HELLO, stream=False)
        assert answer.message.content == "one two three"

    async def test_a_prompt_is_continued_streamed_and_whole(self, router: RouterProcess) -> None:
        async with client_of(router) as client:
            parts = [part async for part in await client.generate(model="tiny", prompt="count", stream=True)]
            whole = await client.generate(model="tiny", prompt="count", stream=False)
        assert "".join(part.response or "" for part in parts) == whole.response == "one two three"

    async def test_an_unknown_model_is_refused_in_ollamas_shape(
        self, router: RouterProcess, backend: ScriptedOllama
    ) -> None:
        async with client_of(router) as client:
            with pytest.raises(ollama.ResponseError, match="nobody") as refused:
                await client.chat(model="nobody", messages=HELLO)
        assert refused.value.status_code == 404
        assert backend.received == []

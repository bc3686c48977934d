"""A22: a server that lists its models before it has one in memory; the calls belong elsewhere, or may wait."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cases.apis import CHAT, LLAMACPP, MESSAGES, OLLAMA_CHAT, Api, each_api
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
INTERACTIVE = "X-Twolane-Class: interactive"
SOON: dict[str, Any] = {"health": {"interval": "50ms", "break_after": 1}}
BRIEF: dict[str, Any] = {**SOON, "classes": {"ttft": {"max_wait": "100ms"}}}


@dataclass
class Loads:
    """503 to everybody, while `/v1/models` answers already; after `ready` it serves."""

    api: Api = CHAT
    engine: str = "llamacpp"
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    turned_away: int = 0

    async def call(self, request: Received, peer: Peer) -> None:
        if self.ready.is_set():
            await peer.json(self.api.whole)
        else:
            self.turned_away += 1
            await peer.json(LOADING, "503 Service Unavailable")

    async def health(self, request: Received, peer: Peer) -> None:
        if self.ready.is_set():
            await peer.json({"status": "ok"})
        else:
            await peer.json(LOADING, "503 Service Unavailable")

    def backend(self, **options: Any) -> ScriptedBackend:
        probes = {**self.api.probes, "/health": self.health}
        if self.engine == "ollama":
            probes["/api/version"] = self.health
        return ScriptedBackend(self.call, probes=probes, **options)

    @property
    def settings(self) -> dict[str, Any]:
        return {"engine": self.engine}


def health_of(router: Running, number: int = 0) -> str:
    return str(router.app.fleet.backends()[number].health.state)


@pytest.mark.parametrize("engine", ["auto", "llamacpp", "vllm", "openai"])
async def test_calls_go_to_the_one_that_is_ready(engine: str) -> None:
    loads = Loads(engine=engine)
    async with loads.backend() as first, ScriptedBackend() as second:
        both = [(first, loads.settings), (second, {"lane": "throughput"})]
        async with router_for(*both, **SOON) as router:
            for _ in range(10):
                answer = await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)
                assert answer.status == 200
                assert answer.header("x-twolane-backend") == "b1"
            if engine != "openai":  # such a one is asked for its models only, and they are there
                assert loads.turned_away == 0
            loads.ready.set()
            await eventually(lambda: health_of(router) == "up")
            answer = await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)
            assert answer.header("x-twolane-backend") == "b0"


@pytest.mark.parametrize("engine", ["auto", "llamacpp", "openai"])
@pytest.mark.parametrize("stream", [False, True])
async def test_where_it_is_alone_calls_wait_and_are_served_when_it_is_ready(engine: str, stream: bool) -> None:
    loads = Loads(engine=engine)
    async with loads.backend() as backend, router_for((backend, loads.settings), **SOON) as router:
        call = asyncio.get_running_loop().create_task(router.post(CHAT.path, CHAT.body(stream=stream), INTERACTIVE))
        await eventually(lambda: health_of(router) == "loading" and len(router.app.line) == 1)
        loads.ready.set()
        answer = await asyncio.wait_for(call, 5.0)
        assert answer.status == 200
        assert answer.json() == CHAT.whole


@pytest.mark.parametrize("engine", ["auto", "llamacpp", "openai"])
async def test_who_waited_in_vain_hears_it_in_the_words_of_the_server_and_when_to_return(engine: str) -> None:
    loads = Loads(engine=engine)
    async with loads.backend() as backend, router_for((backend, loads.settings), **BRIEF) as router:
        for _ in range(3):
            answer = await router.post(CHAT.path, CHAT.body(stream=True), INTERACTIVE)
            assert answer.status == 503
            assert answer.json() == LOADING
            assert int(answer.header("retry-after") or 0) >= 1
        assert router.metric("twolane_calls_total", outcome="rejected") == 3


@pytest.mark.parametrize("api", [CHAT, LLAMACPP, MESSAGES, OLLAMA_CHAT], ids=str)
async def test_in_the_shape_of_every_api(api: Api) -> None:
    loads = Loads(api, api.engine if api is not CHAT else "llamacpp")
    async with loads.backend() as backend, router_for((backend, loads.settings), **BRIEF) as router:
        answer = await router.post(api.path, api.body(stream=True), INTERACTIVE)
        assert answer.status == 503
        assert answer.header("retry-after") is not None
        document = answer.json()
        assert isinstance(document, dict)
        match api.name:
            case "ollama_chat":
                assert "Loading model" in document["error"]
            case "messages":
                assert document["type"] == "error"
                assert document["error"]["type"] == "overloaded_error"
                assert "Loading model" in document["error"]["message"]
            case _:
                assert document == LOADING


async def test_no_penalty_is_given_and_it_is_used_after_one_probe() -> None:
    loads = Loads()
    async with loads.backend() as backend, router_for((backend, loads.settings), **BRIEF) as router:
        for _ in range(5):
            assert (await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)).status == 503
        probes = sum(request.target == "/health" for request in backend.probed)
        loads.ready.set()
        await eventually(lambda: health_of(router) == "up")
        # One that was under way, one that tells what it is, and the one that hears it.
        assert sum(request.target == "/health" for request in backend.probed) <= probes + 3
        assert (await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)).status == 200


async def test_what_passes_through_is_told_so_by_the_server_itself() -> None:
    """There is no other one to try, so no retry is spent on it either."""

    async def says_loading(request: Received, peer: Peer) -> None:
        await peer.json(LOADING, "503 Service Unavailable", "Retry-After: 7")

    async with ScriptedBackend(says_loading) as backend:
        async with router_for(backend, passthrough="b0", health={"interval": "1h"}) as router:
            answer = await router.post("/pooling", {"model": "m"})
            assert (answer.status, answer.json(), answer.header("retry-after")) == (503, LOADING, "7")
            assert answer.header("x-twolane-backend") == "b0"
            assert health_of(router) == "loading"


async def test_a_server_that_restarts_loads_again_without_harm() -> None:
    loads = Loads()
    loads.ready.set()
    async with loads.backend() as backend, router_for((backend, loads.settings), **SOON) as router:
        assert (await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)).status == 200
        loads.ready.clear()
        call = asyncio.get_running_loop().create_task(router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE))
        await eventually(lambda: len(router.app.line) == 1)
        loads.ready.set()
        assert (await asyncio.wait_for(call, 5.0)).status == 200


@each_api
async def test_another_503_is_busy_and_passes_as_it_came(api: Api) -> None:
    busy = {"error": {"code": 503, "message": "too many requests in flight", "type": "unavailable_error"}}

    async def script(request: Received, peer: Peer) -> None:
        await peer.json(busy, "503 Service Unavailable", "Retry-After: 7")

    async with api.backend(script) as backend, router_for((backend, api.settings), **SOON) as router:
        for _ in range(3):
            answer = await router.post(api.path, api.body(stream=False))
            assert answer.status == 503
            assert answer.json() == busy
            assert answer.header("retry-after") == "7"
        assert health_of(router) == "up"
        assert len(backend.received) == 3

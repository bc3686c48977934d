"""A30: the list of models is that of all backends together, the same each time, and calls go where the model is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.cases.apis import CHAT, each_api
from tests.cases.apis import Api as ApiOf
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

SOON_S = 1.0


async def silent(request: Received, peer: Peer) -> None:
    await peer.until_closed()


def hung() -> ScriptedBackend:
    return ScriptedBackend(silent, probes={"/v1/models": silent, "/health": silent})


async def names(router: Running, path: str = "/v1/models") -> list[str]:
    answer = await asyncio.wait_for(router.get(path), SOON_S)
    assert answer.status == 200
    document: Any = answer.json()
    if path.startswith("/api/"):
        return [entry["name"] for entry in document["models"]]
    return [entry["id"] for entry in document["data"]]


async def test_twenty_lists_are_one_and_a_hung_backend_delays_none() -> None:
    async with ScriptedBackend(models=("b", "a")) as one, ScriptedBackend(models=("c", "b")) as two, hung() as three:
        aliases = {"fast": {"b0": "a"}, "a": {"b0": "a"}}
        async with router_for(one, two, three, models=aliases) as router:
            for path in ("/v1/models", "/models"):
                lists = [await names(router, path) for _ in range(20)]
                assert lists == [["a", "fast", "b", "c"]] * 20


async def test_a_call_goes_only_to_a_backend_that_has_the_model() -> None:
    async with ScriptedBackend(models=("a", "b")) as one, ScriptedBackend(models=("b", "c")) as two, hung() as three:
        async with router_for(one, two, three, health={"timeout": "200ms"}) as router:
            for model in "cccccccccc":
                assert (await router.post(CHAT.path, {**CHAT.call, "model": model})).status == 200
            assert (len(one.received), len(two.received)) == (0, 10)
            for model in "abcabcabc":
                assert (await router.post(CHAT.path, {**CHAT.call, "model": model})).status == 200
            assert {request.body.split(b'"model":"')[1][:1] for request in one.received} <= {b"a", b"b"}
            assert three.received == []
            # Nobody knows what the hung one serves.
            answer = await router.post(CHAT.path, {**CHAT.call, "model": "d"})
            assert answer.status == 503
            assert b"b2" in answer.body
        async with router_for(one, two) as router:
            answer = await router.post(CHAT.path, {**CHAT.call, "model": "d"})
            assert answer.status == 404
            assert b"a, b, c" in answer.body


@each_api
async def test_so_it_does_in_every_api(api: ApiOf) -> None:
    async with api.backend() as one, api.backend() as two:
        settings = ({**api.settings, "models": ["a", "b"]}, {**api.settings, "models": ["b", "c"]})
        async with router_for((one, settings[0]), (two, settings[1])) as router:
            for stream in (False, True) * 3:
                answer = await router.post(api.path, {**api.body(stream=stream), "model": "c"})
                assert answer.header("x-twolane-backend") == "b1"
            assert one.received == []


@pytest.mark.parametrize("model", ["a", "org/b", "c:1b"])
async def test_single_entries(model: str) -> None:
    async with ScriptedBackend(models=("a", "org/b", "c:1b")) as backend, router_for(backend) as router:
        for path in (f"/v1/models/{model}", f"/v1/models/{model.replace('/', '%2F').replace(':', '%3A')}"):
            answer = await router.get(path)
            document: Any = answer.json()
            assert (answer.status, document["id"], document["object"]) == (200, model, "model")
        missing = await router.get(f"/v1/models/{model}x")
        assert missing.status == 404
        assert b"model_not_found" in missing.body


async def test_the_list_does_not_flap_while_a_backend_is_away() -> None:
    """Its models are still asked for, and the answer says better what is wrong than a model that is not known."""
    quick = {"interval": "30ms", "timeout": "200ms", "down_after": 1}
    async with ScriptedBackend(models=("a",)) as one, ScriptedBackend(models=("b",)) as two:
        async with router_for(one, two, health=quick) as router:
            await two.stop()
            await eventually(lambda: router.metric("twolane_backend_up", backend="b1") == 0)
            assert await names(router) == ["a", "b"]
            answer = await router.post(CHAT.path, {**CHAT.call, "model": "b"})
            assert answer.status == 503
            assert b"b1" in answer.body


async def test_a_server_that_comes_back_with_other_models_is_believed() -> None:
    quick = {"interval": "30ms", "timeout": "200ms", "down_after": 1}
    async with ScriptedBackend(models=("a",)) as backend, router_for(backend, health=quick) as router:
        assert await names(router) == ["a"]
        await backend.stop()
        await eventually(lambda: router.metric("twolane_backend_up") == 0)
        async with ScriptedBackend(models=("b",), port=backend.port):
            await eventually(lambda: router.app.fleet.model_names().keys() == {"b"})
            assert await names(router) == ["b"]

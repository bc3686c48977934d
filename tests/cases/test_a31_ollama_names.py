"""A31: `qwen3` and `qwen3:latest` are one model of an Ollama server, `qwen3:1b` is another."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import orjson
import pytest

from router.listing import router_version
from tests.cases.apis import CHAT, COMPLETIONS, MESSAGES, OLLAMA_CHAT, OLLAMA_GENERATE, RESPONSES, Api
from tests.router.running import router_for
from tests.scripted import Peer, Received, ScriptedBackend, echo

VERSION = {"version": "0.9.0"}
SAME = ("qwen3", "qwen3:latest", "QWEN3", "library/qwen3", "registry.ollama.ai/library/qwen3:latest")
OTHERS = ("qwen3:1b", "qwen3:Latest-q8", "me/qwen3", "qwen", "qwen3:latest:latest", "qwen3-coder", "qwen3 ")


def ollama(*models: str, script: Any = echo) -> ScriptedBackend:
    tags = {"models": [{"name": model, "model": model} for model in models]}
    return ScriptedBackend(script, probes={"/api/version": VERSION, "/api/tags": tags})


async def strict(request: Received, peer: Peer) -> None:
    """As Ollama itself takes names: with or without the tag, the host and the library, in any case."""
    name = orjson.loads(request.body)["model"].lower()
    known = name.removeprefix("registry.ollama.ai/").removeprefix("library/").removesuffix(":latest") == "qwen3"
    await peer.json({"error": "model not found"} if not known else {"done": True}, "200 OK" if known else "404 No")


@pytest.mark.parametrize(
    "api", [OLLAMA_CHAT, OLLAMA_GENERATE, CHAT, COMPLETIONS, RESPONSES, MESSAGES], ids=lambda api: api.name
)
@pytest.mark.parametrize("engine", ["ollama", "auto"])
async def test_names(api: Api, engine: str) -> None:
    async with ollama("qwen3:latest", script=strict) as backend, router_for((backend, {"engine": engine})) as router:
        for name in SAME:
            answer = await router.post(api.path, {**api.body(stream=False), "model": name})
            assert answer.status == 200, name
            assert orjson.loads(backend.received[-1].body)["model"] == name
        for name in OTHERS:
            answer = await router.post(api.path, {**api.body(stream=False), "model": name})
            assert answer.status == 404, name
            assert b"qwen3:latest" in answer.body
        assert len(backend.received) == len(SAME)


@pytest.mark.parametrize(("path", "body"), [("/api/show", {}), ("/api/embed", {"input": "x"})])
async def test_calls_without_a_prompt(path: str, body: dict[str, Any]) -> None:
    async with ollama("qwen3:latest", script=strict) as backend, router_for((backend, {"engine": "ollama"})) as router:
        assert (await router.post(path, {"model": "qwen3", **body})).status == 200
        assert (await router.post(path, {"model": "qwen3:1b", **body})).status == 404


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        (b'{"model": "fast"}', b'{"model": "qwen3:latest"}'),
        (b'{"name": "fast", "verbose": true}', b'{"name": "qwen3:latest", "verbose": true}'),
        (b'{"model": "", "name": "fast"}', b'{"model": "", "name": "qwen3:latest"}'),
        (b'{"model": "fast", "name": "fast"}', b'{"model": "qwen3:latest", "name": "fast"}'),
    ],
)
async def test_an_alias_is_shown_by_the_key_that_named_it(asked: bytes, sent: bytes) -> None:
    async with ollama("qwen3:latest") as backend:
        aliases = {"fast": {"b0": "qwen3:latest"}}
        async with router_for((backend, {"engine": "ollama"}), models=aliases) as router:
            assert (await router.post("/api/show", asked)).status == 200
            assert backend.received[-1].body == sent


async def test_each_tag_has_its_backend() -> None:
    async with ollama("qwen3:latest") as one, ollama("qwen3:1b") as two:
        as_ollama = {"engine": "ollama"}
        async with router_for((one, as_ollama), (two, as_ollama)) as router:
            for name, backend in (("qwen3", "b0"), ("qwen3:latest", "b0"), ("qwen3:1b", "b1")):
                answer = await router.post(OLLAMA_CHAT.path, {**OLLAMA_CHAT.call, "model": name})
                assert answer.header("x-twolane-backend") == backend
            tags: Any = (await router.get("/api/tags")).json()
            assert [entry["name"] for entry in tags["models"]] == ["qwen3:1b", "qwen3:latest"]


async def test_other_servers_take_names_to_the_letter() -> None:
    async with ScriptedBackend(models=("qwen3:latest",)) as backend, router_for(backend) as router:
        assert (await router.post(CHAT.path, {**CHAT.call, "model": "qwen3:latest"})).status == 200
        assert (await router.post(CHAT.path, {**CHAT.call, "model": "qwen3"})).status == 404


@pytest.mark.parametrize("asked", ["fast", "fast:latest", "slow", "slow:latest"])
async def test_clients_of_ollama_may_add_the_tag_to_an_alias_or_leave_it_out(asked: str) -> None:
    """Open WebUI puts `:latest` behind every name that has no tag."""
    async with ollama("qwen3:latest", "qwen3:1b", script=strict) as backend:
        aliases = {"fast": {"b0": "qwen3:latest"}, "slow:latest": {"b0": "qwen3:latest"}}
        async with router_for((backend, {"engine": "ollama"}), models=aliases) as router:
            for path in ("/api/chat", "/api/generate", "/api/show"):
                assert (await router.post(path, {"model": asked})).status == 200
                assert orjson.loads(backend.received[-1].body)["model"] == "qwen3:latest"
            assert (await router.post(OLLAMA_CHAT.path, {**OLLAMA_CHAT.call, "model": "fast:1b"})).status == 404
            tags: Any = (await router.get("/api/tags")).json()
            names = ["fast:latest", "slow:latest", "qwen3:1b", "qwen3:latest"]
            assert [entry["name"] for entry in tags["models"]] == names


async def test_a_list_of_ollama_has_only_what_that_api_can_serve() -> None:
    async with ollama("qwen3:latest") as one, ScriptedBackend(models=("big",)) as two:
        aliases = {"both": {"b0": "qwen3:latest", "b1": "big"}, "rack": {"b1": "big"}}
        async with router_for((one, {"engine": "ollama"}), (two, {"engine": "vllm"}), models=aliases) as router:
            for path in ("/api/tags", "/api/ps"):
                listed: Any = (await router.get(path)).json()
                assert [entry["name"] for entry in listed["models"]] == ["both:latest", "qwen3:latest"]
            for name, holder in (("rack", b"b1"), ("big", b"b1")):
                answer = await router.post(OLLAMA_CHAT.path, {**OLLAMA_CHAT.call, "model": name})
                assert answer.status == 404
                assert b"is there, but its backends (%b) do not offer this API" % holder in answer.body
                assert answer.body.endswith(b'one of: both, qwen3:latest"}')
            answer = await router.post(OLLAMA_CHAT.path, {**OLLAMA_CHAT.call, "model": "small"})
            assert b"no backend serves the model 'small' here; known: both, qwen3:latest" in answer.body
            assert b"b0" in (await router.post("/tokenize", {"model": "qwen3", "prompt": "x"})).body


async def test_the_ollama_command_finds_what_it_looks_for() -> None:
    """It asks for the head of `/` before anything else, and cuts twelve characters from the digest of each model."""
    async with ollama("qwen3:latest") as backend, router_for((backend, {"engine": "ollama"})) as router:
        front = await router.get("/")
        assert (front.status, front.body) == (200, b"Ollama is running")
        assert (front.header("content-type") or "").startswith("text/plain")
        async with await router.client() as client:
            await client.request("HEAD", "/")
            assert (await client.answer(head_only=True)).header("content-length") == "17"
        assert (await router.post("/", {})).status == 404
        for path in ("/api/tags", "/api/ps"):
            listed: Any = (await router.get(path)).json()
            assert len(listed["models"][0]["digest"]) == 64
    async with ScriptedBackend() as backend, router_for(backend) as router:
        assert b"POST /v1/chat/completions" in (await router.get("/")).body
    async with ollama("qwen3:latest") as backend:
        async with router_for((backend, {"engine": "ollama"}), passthrough="b0") as router:
            assert (await router.get("/")).body != b"Ollama is running", "it is the backend's"


async def version_of(*versions: str) -> str:
    """What the router says where its Ollama servers are of these versions, beside a server of another kind."""
    async with AsyncExitStack() as stack:
        others = await stack.enter_async_context(ScriptedBackend(models=("big",)))
        backends: list[Any] = [(others, {"engine": "openai"})]
        for version in versions:
            tags = {"models": [{"name": "qwen3:latest"}]}
            probes = {"/api/version": {"version": version}, "/api/tags": tags}
            backends.append((await stack.enter_async_context(ScriptedBackend(probes=probes)), {"engine": "ollama"}))
        router = await stack.enter_async_context(router_for(*backends))
        document: Any = (await router.get("/api/version")).json()
        return str(document["version"])


async def test_the_version_is_the_lowest_of_the_servers_behind() -> None:
    """VS Code refuses an Ollama below 0.6.4, whatever stands between."""
    assert await version_of("0.12.3", "0.9.6-rc0", "0.11.0") == "0.9.6-rc0"
    assert await version_of("0.12.3") == "0.12.3"
    assert await version_of() == router_version()


async def test_an_alias_keeps_its_name_to_the_letter_in_other_apis() -> None:
    async with ollama("qwen3:latest") as backend:
        aliases = {"fast": {"b0": "qwen3:latest"}}
        async with router_for((backend, {"engine": "ollama"}), models=aliases) as router:
            assert (await router.post(CHAT.path, {**CHAT.call, "model": "fast"})).status == 200
            assert (await router.post(CHAT.path, {**CHAT.call, "model": "fast:latest"})).status == 404
            assert (await router.get("/v1/models/fast:latest")).status == 404


async def test_a_name_that_calls_may_use_has_an_entry() -> None:
    async with ollama("qwen3:latest") as backend, router_for((backend, {"engine": "ollama"})) as router:
        for name in SAME:
            entry: Any = (await router.get(f"/v1/models/{name}")).json()
            assert (entry["id"], entry["backends"]) == (name, ["b0"])
        assert (await router.get("/v1/models/qwen3:1b")).status == 404


async def test_an_alias_gives_ollama_the_name_that_it_knows() -> None:
    async with ollama("qwen3:latest") as one, ScriptedBackend(models=("Qwen/Qwen3-4B",)) as two:
        aliases = {"qwen3": {"b0": "qwen3:latest", "b1": "Qwen/Qwen3-4B"}}
        async with router_for((one, {"engine": "ollama"}), two, models=aliases, policy="round_robin") as router:
            for _ in range(6):
                assert (await router.post(CHAT.path, {**CHAT.call, "model": "qwen3"})).status == 200
            assert {orjson.loads(request.body)["model"] for request in one.received} == {"qwen3:latest"}
            assert {orjson.loads(request.body)["model"] for request in two.received} == {"Qwen/Qwen3-4B"}

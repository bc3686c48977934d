"""A45: what is no chat is routed by its model as well, and nobody waits for a first token of it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.cases.apis import CHAT
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend

RERANK = {"query": "q", "documents": ["a", "b"]}
SCORE = {"text_1": "q", "text_2": ["a", "b"]}
VECTOR = {"object": "list", "data": [{"index": 0, "embedding": "AACAPw=="}], "usage": {"prompt_tokens": 4}}
RANKS = {"results": [{"index": 1, "relevance_score": 0.9}], "usage": {"total_tokens": 4}}

ENDPOINTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("/v1/rerank", RERANK, RANKS),
    ("/rerank", RERANK, RANKS),
    ("/v2/rerank", RERANK, RANKS),
    ("/v1/rerank", {"query": "q", "documents": [{"text": "a"}, {"text": "b"}], "top_n": 1}, RANKS),
    ("/v1/score", SCORE, RANKS),
    ("/score", {"queries": ["q"], "items": ["a", "b"]}, RANKS),
    ("/v1/embeddings", {"input": "x"}, VECTOR),
    ("/v1/embeddings", {"input": ["x", "y"], "encoding_format": "base64"}, VECTOR),
    ("/v1/embeddings", {"input": [1, 2, 3], "dimensions": 8}, VECTOR),
    ("/v1/embeddings", {"input": [[1, 2], [3]], "user": "u"}, VECTOR),
    ("/embeddings", {"input": "x"}, VECTOR),
    ("/tokenize", {"prompt": "x"}, {"tokens": [1, 2], "count": 2}),
    ("/tokenize", {"messages": CHAT.call["messages"]}, {"tokens": [1, 2], "count": 2}),
    ("/detokenize", {"tokens": [1, 2]}, {"prompt": "x"}),
    ("/v1/messages/count_tokens", {"messages": CHAT.call["messages"]}, {"input_tokens": 2}),
]


async def explained(router: Running, path: str, body: object) -> dict[str, Any]:
    answer = await router.admin("POST", "/explain", orjson.dumps({"path": path, "headers": {}, "body": body}))
    assert answer.status == 200, answer.body
    document: dict[str, Any] = answer.json()  # type: ignore[assignment]
    return document


@pytest.mark.parametrize(("path", "fields", "said"), ENDPOINTS)
async def test_each_goes_to_the_backend_that_has_the_model(
    path: str, fields: dict[str, Any], said: dict[str, Any]
) -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.json(said)

    async with ScriptedBackend(script, models=("chat",)) as one, ScriptedBackend(script, models=("m",)) as two:
        as_vllm = {"engine": "vllm"}
        async with router_for((one, as_vllm), (two, as_vllm)) as router:
            body = orjson.dumps({"model": "m", **fields})
            for _ in range(3):
                answer = await router.post(path, body)
                assert (answer.status, answer.json()) == (200, said)
            assert [request.body for request in two.received] == [body] * 3
            assert one.received == []
            assert (await router.post(path, {"model": "nope", **fields})).status == 404
            assert router.metric("twolane_ttft_seconds_count") == 0
            assert router.metric("twolane_tpot_seconds_count") == 0
            assert router.metric("twolane_calls_total", outcome="completed") == 3


@pytest.mark.parametrize("fields", [{}, {"query": None}, {"documents": []}, {"texts": ["a"], "query": "q"}])
async def test_a_rerank_call_of_another_maker_is_no_mistake(fields: dict[str, Any]) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        body = orjson.dumps({"model": "m", **fields})
        assert (await router.post("/v1/rerank", body)).status == 200
        assert backend.received[0].body == body


@pytest.mark.parametrize(
    ("path", "fields", "expected"),
    [
        ("/v1/embeddings", {"input": ["x"] * 500}, "throughput"),
        ("/v1/embeddings", {"input": [[1, 2, 3]] * 500}, "throughput"),
        ("/v1/embeddings", {"input": "who was it?"}, "mixed"),
        ("/v1/rerank", {"query": "q", "documents": ["a"] * 500}, "throughput"),
        ("/v1/rerank", RERANK, "mixed"),
        ("/v1/score", {"text_1": "q", "text_2": ["a"] * 500}, "throughput"),
        ("/api/embed", {"input": ["x"] * 500}, "throughput"),
        ("/tokenize", {"prompt": "x" * 5000}, "ttft"),
    ],
)
async def test_many_inputs_lean_to_throughput(path: str, fields: dict[str, Any], expected: str) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        assert (await explained(router, path, fields))["class"] == expected


async def test_a_backend_that_does_not_offer_it_is_passed_over() -> None:
    """Nor is a call sent to a backend for nothing when none offers it."""
    async with ScriptedBackend() as one, ScriptedBackend() as two:
        async with router_for((one, {"engine": "lmstudio"}), (two, {"engine": "vllm"})) as router:
            for path in ("/v1/rerank", "/v1/score", "/tokenize"):
                for _ in range(3):
                    answer = await router.post(path, {"model": "m", **RERANK, **SCORE, "prompt": "x"})
                    assert answer.status == 200
            assert one.received == []
        async with router_for((one, {"engine": "lmstudio"})) as router:
            answer = await router.post("/v1/rerank", {"model": "m", **RERANK})
            assert answer.status == 404
            assert b"lmstudio" in answer.body
            assert one.received == []


async def test_what_takes_no_slot_waits_for_none() -> None:
    async def script(request: Received, peer: Peer) -> None:
        if request.target == "/tokenize":
            await peer.json({"tokens": [1]})
        else:
            await peer.until_closed()

    async with ScriptedBackend(script) as backend:
        async with router_for((backend, {"engine": "llamacpp", "max_inflight": 1})) as router:
            client = await router.client()
            await client.post(CHAT.path, CHAT.body(stream=True), "X-Twolane-Class: interactive")
            assert (await router.post("/tokenize", {"content": "x"})).status == 200
            client.close()


async def test_a_large_answer_of_numbers_passes_whole() -> None:
    vectors = {"data": [{"index": number, "embedding": [0.125] * 1024} for number in range(100)]}
    raw = orjson.dumps({**vectors, "usage": {"prompt_tokens": 777, "total_tokens": 777}})

    async def script(request: Received, peer: Peer) -> None:
        await peer.head("200 OK", "Content-Type: application/json", f"Content-Length: {len(raw)}")
        await peer.send(raw)

    async with ScriptedBackend(script) as backend, router_for(backend) as router:
        answer = await router.post("/v1/embeddings", {"model": "m", "input": ["x"] * 100})
        assert answer.body == raw
        assert router.metric("twolane_ttft_seconds_count") == 0


async def test_the_head_of_a_list_is_that_of_the_list_itself() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router, await router.client() as client:
        for path in ("/v1/models", "/v1/models/m", "/api/tags", "/api/version"):
            listed = await router.get(path)
            await client.request("HEAD", path)
            head = await client.answer(head_only=True)
            assert head.status == 200
            for name in ("content-type", "content-length"):
                assert head.header(name) == listed.header(name)


async def test_the_head_of_a_stored_response_is_asked_for_where_it_is() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.head("200 OK", "Content-Type: application/json", "Content-Length: 20")

    async with ScriptedBackend(script) as backend, router_for(backend) as router, await router.client() as client:
        await client.request("HEAD", "/v1/responses/resp_a")
        assert (await client.answer(head_only=True)).header("content-length") == "20"
        assert (backend.received[-1].method, backend.received[-1].target) == ("HEAD", "/v1/responses/resp_a")
        await client.request("GET", "/v1/models")
        assert (await client.answer()).complete


async def test_an_endpoint_that_nobody_foresaw_can_be_passed_through() -> None:
    async with ScriptedBackend() as backend, router_for(backend, passthrough="b0") as router:
        for path in ("/v1/reranking", "/pooling", "/classify", "/v1/images/generations", "/invocations"):
            assert (await router.post(path, {"model": "m"})).status == 200
            assert backend.received[-1].target == path


async def test_the_public_port_says_that_it_serves_until_it_shuts_down() -> None:
    keys = [{"name": "editor", "key": "k" * 32}]  # who balances load has none
    async with ScriptedBackend() as backend, router_for(backend, keys=keys) as router:
        answer = await router.get("/health")
        assert (answer.status, answer.body) == (200, b'{"status":"ok"}')
        assert (await router.post("/health", {})).status == 401
        async with await router.client() as client:
            await client.request("HEAD", "/health")
            assert (await client.answer(head_only=True)).status == 200
        router.app.gateway.draining = True
        answer = await router.get("/health")
        assert (answer.status, answer.header("retry-after")) == (503, "1")


async def test_health_is_the_backends_where_its_paths_are_passed_through() -> None:
    async def says_so(request: Received, peer: Peer) -> None:
        await peer.json({"slots_idle": 3})

    async with ScriptedBackend(health=says_so) as backend, router_for(backend, passthrough="b0") as router:
        assert b"slots_idle" in (await router.get("/health")).body

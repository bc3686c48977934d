"""A20: a browser asks first, without a key; then the streamed answer itself has to carry exactly one permission."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.cases.apis import Api, each_api
from tests.rawclient import Answer
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend

PAGE = "http://localhost:5173"
OTHER = "http://localhost:5174"
KEYS = [{"name": "page", "key": "ROUTERKEY"}]
ON: dict[str, Any] = {"cors": {"origins": [PAGE]}, "keys": KEYS}
KEY = "Authorization: Bearer ROUTERKEY"


def origins(answer: Answer) -> list[str]:
    return [value for name, value in answer.headers if name.lower() == "access-control-allow-origin"]


def vary(answer: Answer) -> list[str]:
    return [value for name, value in answer.headers if name.lower() == "vary"]


async def ask_first(router: Running, target: str, origin: str = PAGE) -> Answer:
    async with await router.client() as client:
        await client.request(
            "OPTIONS",
            target,
            None,
            f"Origin: {origin}",
            "Access-Control-Request-Method: POST",
            "Access-Control-Request-Headers: authorization,content-type",
        )
        return await client.answer()


def permissive(api: Api) -> Any:
    """A backend that lets in every page, as llama.cpp does, and streams."""

    async def script(request: Received, peer: Peer) -> None:
        await peer.head(
            "200 OK",
            f"Content-Type: {api.content_type}",
            "Access-Control-Allow-Origin: *",
            "Access-Control-Allow-Credentials: true",
            "Vary: Accept",
            "Transfer-Encoding: chunked",
        )
        await peer.chunk(api.opening)
        await peer.chunk(api.token("a"))
        await peer.chunk(api.ending)
        await peer.last_chunk()

    return script


@each_api
async def test_the_question_needs_no_key_and_the_stream_has_one_permission(api: Api) -> None:
    async with api.backend(permissive(api)) as backend, router_for((backend, api.settings), **ON) as router:
        asked = await ask_first(router, api.path)
        assert asked.status == 204
        assert origins(asked) == [PAGE]
        assert "authorization" in (asked.header("access-control-allow-headers") or "")
        assert "POST" in (asked.header("access-control-allow-methods") or "")
        assert (asked.header("content-length"), asked.header("transfer-encoding"), asked.body) == (None, None, b"")
        assert backend.received == []

        answer = await router.post(api.path, api.body(stream=True), f"Origin: {PAGE}", KEY)
        assert (answer.status, answer.complete) == (200, True)
        assert origins(answer) == [PAGE]
        assert answer.header("access-control-allow-credentials") is None
        assert set(vary(answer)) == {"Accept", "Origin"}
        assert "X-Request-Id" in (answer.header("access-control-expose-headers") or "")


async def test_errors_can_be_read_by_the_page_too() -> None:
    call = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with ScriptedBackend() as backend, router_for(backend, **ON) as router:
        for target, document, fields, status in (
            ("/v1/chat/completions", call, (), 401),
            ("/v1/chat/completions", b"{", (KEY,), 400),
            ("/v1/chat/completions", {**call, "model": "unknown"}, (KEY,), 404),
            ("/v1/nothing", call, (KEY,), 404),
        ):
            answer = await router.post(target, document, f"Origin: {PAGE}", *fields)
            assert (answer.status, origins(answer), vary(answer)) == (status, [PAGE], ["Origin"])
        listed = await router.get("/v1/models", f"Origin: {PAGE}", KEY)
        assert (listed.status, origins(listed)) == (200, [PAGE])


async def test_a_connection_goes_on_after_the_question() -> None:
    call = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with ScriptedBackend() as backend, router_for(backend, **ON) as router, await router.client() as client:
        preflight = (f"Origin: {PAGE}", "Access-Control-Request-Method: POST")
        for _ in range(2):
            await client.request("OPTIONS", "/v1/chat/completions", None, *preflight)
            assert (await client.answer()).status == 204
            await client.post("/v1/chat/completions", call, f"Origin: {PAGE}", KEY)
            assert (await asyncio.wait_for(client.answer(), 5.0)).status == 200


@pytest.mark.parametrize("origin", [OTHER, "null", "http://localhost:5173.evil.example", f"{PAGE}/"])
async def test_other_pages_are_not_let_in(origin: str) -> None:
    async with ScriptedBackend() as backend, router_for(backend, **ON) as router:
        asked = await ask_first(router, "/v1/chat/completions", origin)
        assert (asked.status, origins(asked), vary(asked)) == (401, [], ["Origin"])
        answer = await router.post("/v1/chat/completions", {"model": "m", "messages": []}, f"Origin: {origin}", KEY)
        assert origins(answer) == []


@each_api
async def test_without_settings_no_page_is_let_in_whatever_the_backend_says(api: Api) -> None:
    async with api.backend(permissive(api)) as backend, router_for((backend, api.settings)) as router:
        asked = await ask_first(router, api.path)
        assert (asked.status, origins(asked)) == (405, [])
        answer = await router.post(api.path, api.body(stream=True), f"Origin: {PAGE}")
        assert (answer.status, origins(answer), vary(answer)) == (200, [], ["Accept"])


async def test_a_star_lets_in_every_page() -> None:
    async with ScriptedBackend() as backend, router_for(backend, cors={"origins": ["*"]}) as router:
        assert origins(await ask_first(router, "/v1/chat/completions", OTHER)) == ["*"]
        answer = await router.get("/v1/models", f"Origin: {OTHER}")
        assert (origins(answer), vary(answer)) == (["*"], [])


async def test_an_error_of_a_backend_that_lets_in_every_page_has_one_permission() -> None:
    async def fails(request: Received, peer: Peer) -> None:
        await peer.json({"error": {"message": "no"}}, "400 Bad Request", "Access-Control-Allow-Origin: *")

    async with ScriptedBackend(fails) as backend, router_for(backend, **ON) as router:
        call = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        answer = await router.post("/v1/chat/completions", call, f"Origin: {PAGE}", KEY)
        assert (answer.status, origins(answer)) == (400, [PAGE])


async def test_no_backend_is_asked_on_behalf_of_a_page() -> None:
    async with ScriptedBackend() as backend, router_for(backend, passthrough="b0", **ON) as router:
        for target in ("/v1/chat/completions", "/v1/models", "/v1/odd"):
            assert (await ask_first(router, target)).status == 204
        assert backend.received == []

"""A20: a browser may not ask, or it may and cannot read the stream, or two allowances make none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.apis import CHAT, Api, each_api
from tests.rawclient import Answer
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received

PAGE = "http://localhost:5173"
FROM_PAGE = f"Origin: {PAGE}"
ON: dict[str, Any] = {"cors": {"origins": [PAGE]}}
KEYS: dict[str, Any] = {"keys": [{"name": "page", "key": "a-key-of-the-page"}]}
ALLOW = "access-control-allow-origin"


async def streams_and_allows_everybody(request: Received, peer: Peer) -> None:
    await peer.stream_head("Access-Control-Allow-Origin: *", "Access-Control-Allow-Credentials: true")
    await peer.chunk(CHAT.token("a"))
    await peer.chunk(CHAT.ending)
    await peer.last_chunk()


async def fails_and_allows_everybody(request: Received, peer: Peer) -> None:
    await peer.json({"error": {"message": "no"}}, "400 Bad Request", "Access-Control-Allow-Origin: *")


async def preflight(router: Running, path: str = CHAT.path, origin: str = PAGE) -> Answer:
    async with await router.client() as client:
        await client.request(
            "OPTIONS",
            path,
            None,
            f"Origin: {origin}",
            "Access-Control-Request-Method: POST",
            "Access-Control-Request-Headers: authorization,content-type",
        )
        return await client.answer()


async def test_a_page_may_ask_without_a_key_and_read_the_stream() -> None:
    async with CHAT.backend(streams_and_allows_everybody) as backend, router_for(backend, **ON, **KEYS) as router:
        asked = await preflight(router)
        assert asked.status in (200, 204)
        assert asked.header(ALLOW) == PAGE
        assert "authorization" in (asked.header("access-control-allow-headers") or "").lower()
        assert "POST" in (asked.header("access-control-allow-methods") or "")
        assert backend.received == []
        key = "Authorization: Bearer a-key-of-the-page"
        answer = await router.post(CHAT.path, CHAT.body(stream=True), FROM_PAGE, key)
        assert answer.status == 200
        assert answer.complete
        assert answer.header(ALLOW) == PAGE  # one, or it fails
        assert answer.header("access-control-allow-credentials") is None


@each_api
async def test_in_every_api(api: Api) -> None:
    async with api.backend(streams_and_allows_everybody) as backend:
        async with router_for((backend, api.settings), **ON) as router:
            assert (await preflight(router, api.path)).header(ALLOW) == PAGE
            assert (await router.post(api.path, api.body(stream=True), FROM_PAGE)).header(ALLOW) == PAGE


async def test_a_page_can_read_why_it_was_refused() -> None:
    async with CHAT.backend(fails_and_allows_everybody) as backend:
        async with router_for(backend, **ON, **KEYS, limits={"max_body": "1KiB"}) as router:
            key = "Authorization: Bearer a-key-of-the-page"
            for status, answer in [
                (400, await router.post(CHAT.path, CHAT.body(stream=True), FROM_PAGE, key)),
                (400, await router.post(CHAT.path, b"{", FROM_PAGE, key)),
                (401, await router.post(CHAT.path, CHAT.body(stream=True), FROM_PAGE)),
                (404, await router.post("/nope", b"{}", FROM_PAGE, key)),
                (404, await router.post(CHAT.path, {**CHAT.call, "model": "x"}, FROM_PAGE, key)),
                (413, await router.post(CHAT.path, CHAT.body(stream=True, user="x" * 2000), FROM_PAGE, key)),
            ]:
                assert answer.status == status
                assert answer.header(ALLOW) == PAGE
            assert (await router.get("/v1/models", FROM_PAGE, key)).header(ALLOW) == PAGE


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:5173.evil.example"])
async def test_other_pages_get_no_allowance(origin: str) -> None:
    async with CHAT.backend(streams_and_allows_everybody) as backend, router_for(backend, **ON) as router:
        assert (await preflight(router, origin=origin)).header(ALLOW) is None
        answer = await router.post(CHAT.path, CHAT.body(stream=True), f"Origin: {origin}")
        assert answer.header(ALLOW) is None
        assert "origin" in (answer.header("vary") or "").lower()


async def test_without_the_setting_no_page_is_allowed_whatever_the_backend_says() -> None:
    async with CHAT.backend(streams_and_allows_everybody) as backend, router_for(backend) as router:
        asked = await preflight(router)
        assert asked.status in (404, 405)
        answer = await router.post(CHAT.path, CHAT.body(stream=True), FROM_PAGE)
        assert answer.status == 200
        for said in (asked, answer):
            assert [name for name, _ in said.headers if name.lower().startswith("access-control-")] == []


async def test_a_star_lets_every_page_read_and_none_send_cookies() -> None:
    async with CHAT.backend(streams_and_allows_everybody) as backend:
        async with router_for(backend, cors={"origins": ["*"]}) as router:
            assert (await preflight(router, origin="http://any.example")).header(ALLOW) == "*"
            answer = await router.post(CHAT.path, CHAT.body(stream=True), "Origin: http://any.example")
            assert answer.header(ALLOW) == "*"
            assert answer.header("access-control-allow-credentials") is None


async def test_a_backend_is_never_asked_on_behalf_of_a_page() -> None:
    async with CHAT.backend() as backend, router_for(backend, passthrough="b0", **ON) as router:
        for path in (CHAT.path, "/v1/models", "/nope", "/v1/odd"):
            assert (await preflight(router, path)).status in (200, 204)
        assert backend.received == []

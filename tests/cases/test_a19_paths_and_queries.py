"""A19: base URLs with and without `/v1` make `/v1/v1`; queries are lost, or written anew."""

from __future__ import annotations

import pytest

from tests.cases.apis import CHAT, Api, each_api
from tests.rawclient import Answer
from tests.router.running import Running, router_for

QUERY = "?api-version=2024-10-21&q=a%2Fb%20c+d"
BASES = ["", "/", "/v1", "/v1/"]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("path", [CHAT.path, "/chat/completions"])
async def test_the_backend_sees_one_v1_and_the_same_query(base: str, path: str) -> None:
    async with CHAT.backend() as backend, router_for((backend, {"url": backend.url + base})) as router:
        assert (await router.post(path + QUERY, CHAT.body(stream=False))).status == 200
        assert backend.received[0].target == CHAT.path + QUERY


@pytest.mark.parametrize("base", BASES)
@each_api
async def test_every_api_under_every_base(api: Api, base: str) -> None:
    async with api.backend() as backend, router_for((backend, {**api.settings, "url": backend.url + base})) as router:
        assert (await router.post(api.path + QUERY, api.body(stream=False))).status == 200
        assert backend.received[0].target == api.path + QUERY


@pytest.mark.parametrize(
    "query", ["?", "?a=1?b=2", "?a=/v1/v1&b=//", "?a=%zz", "?a[]=1&a[]=2", "?=&&", "?a=%F0%9F%98%80"]
)
async def test_a_query_is_nobodys_business(query: str) -> None:
    async with CHAT.backend() as backend, router_for(backend) as router:
        assert (await router.post(CHAT.path + query, CHAT.body(stream=False))).status == 200
        assert backend.received[0].target == CHAT.path + query


async def test_bytes_in_a_query_that_no_url_may_have_are_kept_or_refused() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router, await router.client() as client:
        body = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
        target = CHAT.path.encode() + "?q=ü".encode()
        await client.send(b"POST %b HTTP/1.1\r\nHost: r\r\nContent-Length: %d\r\n\r\n%b" % (target, len(body), body))
        if (await client.answer()).status == 200:
            assert backend.received[0].target.encode("latin-1") == target
        else:
            assert backend.received == []


@pytest.mark.parametrize(
    "path",
    [
        "//v1/chat/completions",
        "/v1//chat/completions",
        "/v1/v1/chat/completions",
        "/v1/chat/completions/",
        "//chat/completions",
    ],
)
async def test_a_clients_base_url_may_be_wrong_by_a_slash_or_a_v1(path: str) -> None:
    async with CHAT.backend() as backend, router_for(backend) as router:
        assert (await router.post(path + QUERY, CHAT.body(stream=False))).status == 200
        assert backend.received[0].target == CHAT.path + QUERY


async def test_the_list_of_models_under_such_a_base_url() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router:
        for path in ("//v1/models", "/v1/models/", "/v1/v1/models", "/models/"):
            answer = await router.get(path)
            assert answer.status == 200
            assert b'"m"' in answer.body


async def test_what_is_no_slip_is_not_found() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router:
        for path in (
            "/v2/chat/completions",
            "/v1/chat",
            "/V1/chat/completions",
            "/v1/v1/v1/x",
            "/",
            "//",
            "/../v1/models",
        ):
            assert (await router.post(path, CHAT.body(stream=False))).status == 404
        assert backend.received == []


@pytest.mark.parametrize("base", BASES)
async def test_what_follows_a_stored_response_keeps_path_and_query(base: str) -> None:
    async with CHAT.backend() as backend, router_for((backend, {"url": backend.url + base})) as router:
        assert (await get(router, "/v1/responses/resp_%C3%BC/input_items?after=x%2Fy")).status == 200
        assert backend.received[0].target == "/v1/responses/resp_%C3%BC/input_items?after=x%2Fy"


async def test_what_passes_through_keeps_its_path_as_it_was_written() -> None:
    async with CHAT.backend() as backend, router_for(backend, passthrough="b0") as router:
        for target in ("/v1/odd//path/?x=%2F", "/%7Euser", "/a/../b", "/v1/v1/odd"):
            assert (await get(router, target)).status == 200
            assert backend.received[-1].target == target


async def get(router: Running, target: str) -> Answer:
    return await router.get(target)

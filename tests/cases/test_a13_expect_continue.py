"""A13: a client that asks before it sends a large body waits for an answer that never comes."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from tests.cases.apis import CHAT, Api, each_api
from tests.rawclient import RawClient
from tests.router.running import router_for
from tests.scripted import eventually

TWO_MEGABYTES = orjson.dumps(CHAT.body(stream=False, user="x" * 2**21))
NO_HANG_S = 5.0


async def ask(client: RawClient, path: str, framing: str, expectation: str = "100-continue") -> int:
    """Send a head that wants an answer before the body; returns the status of that answer."""
    fields = ("Host: r", "Content-Type: application/json", framing, f"Expect: {expectation}")
    await client.send("\r\n".join((f"POST {path} HTTP/1.1", *fields, "", "")).encode())
    async with asyncio.timeout(NO_HANG_S):
        return (await client.answer()).status


@pytest.mark.parametrize("expectation", ["100-continue", "100-Continue"])
async def test_the_body_is_asked_for_and_the_backend_is_not_asked(expectation: str) -> None:
    async with CHAT.backend() as backend, router_for(backend) as router, await router.client() as client:
        for number in (1, 2):
            framing = f"Content-Length: {len(TWO_MEGABYTES)}"
            assert await ask(client, CHAT.path, framing, expectation) == 100
            await client.send(TWO_MEGABYTES)
            assert (await client.answer()).status == 200
            assert len(backend.received) == number
            assert backend.received[-1].body == TWO_MEGABYTES
            assert backend.received[-1].all("expect") == []


@each_api
async def test_in_every_api(api: Api) -> None:
    async with api.backend() as backend, router_for((backend, api.settings)) as router, await router.client() as client:
        body = orjson.dumps(api.body(stream=False))
        assert await ask(client, api.path, f"Content-Length: {len(body)}") == 100
        await client.send(body)
        assert (await client.answer()).status == 200


async def test_with_a_chunked_body() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router, await router.client() as client:
        assert await ask(client, CHAT.path, "Transfer-Encoding: chunked") == 100
        await client.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(TWO_MEGABYTES), TWO_MEGABYTES))
        assert (await client.answer()).status == 200
        assert backend.received[0].body == TWO_MEGABYTES


@pytest.mark.parametrize(
    ("path", "status"), [(CHAT.path, 413), ("/v1/messages", 413), ("/nope", 404), ("/v1/models", 405)]
)
async def test_who_is_refused_is_not_asked_for_the_body(path: str, status: int) -> None:
    async with CHAT.backend() as backend:
        kinds = {"engine": "llamacpp"}
        async with router_for((backend, kinds), limits={"max_body": "1MiB"}) as router, await router.client() as client:
            assert await ask(client, path, f"Content-Length: {len(TWO_MEGABYTES)}") == status
            # What the client sends now, if it does, must not be taken for another request.
            assert await client.reader.read() == b""
        assert backend.received == []


async def test_who_is_refused_while_the_router_shuts_down_is_not_asked_for_the_body() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router, await router.client() as client:
        router.app.gateway.draining = True
        assert await ask(client, CHAT.path, "Content-Length: 100") == 503


async def test_who_does_not_wait_for_the_answer_is_served_as_well() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router, await router.client() as client:
        await client.send(
            f"POST {CHAT.path} HTTP/1.1\r\nHost: r\r\nExpect: 100-continue\r\n"
            f"Content-Length: {len(TWO_MEGABYTES)}\r\n\r\n".encode()
            + TWO_MEGABYTES
        )
        answer = await client.answer()
        if answer.status == 100:  # it may be left out when the body is there already
            answer = await client.answer()
        assert answer.status == 200
        assert backend.received[0].body == TWO_MEGABYTES


async def test_a_client_that_asks_and_then_leaves_is_forgotten() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router:
        client = await router.client()
        assert await ask(client, CHAT.path, "Content-Length: 1000") == 100
        client.close()
        await eventually(lambda: router.idle)
        assert backend.received == []


async def test_http_1_0_knows_no_such_question() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router, await router.client() as client:
        body = orjson.dumps(CHAT.body(stream=False))
        await client.send(
            f"POST {CHAT.path} HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        assert (await client.answer()).status == 200
        assert backend.received[0].all("expect") == []

"""What a client sends is what a backend gets, and what the backend answers is what the client gets, byte for byte.

Against a scripted backend on a raw socket, since only that can tell what it got.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator

import aiohttp
import pytest

from bench.servers.router import RouterProcess
from tests.e2e.calls import CHAT, post
from tests.e2e.conftest import QUICK, StartRouter
from tests.rawclient import RawClient
from tests.scripted import Peer, Received, ScriptedBackend

ODD = (
    b'{ "model" :"m",\n\t"messages":[{"content":"caf\\u00e9 \xc3\xa9 \xf0\x9f\x98\x80","role":"user"}],'
    b'"temperature":1.0,"top_p":1e0,"big":12345678901234567890,"seed":-0.0,"unknown":{"model":"inner","a":1,"a":2},'
    b'"x":[ ],"max_tokens":7 }\n'
)
"""JSON as no serializer would write it again: blanks, escapes, numbers, doubled keys, fields that nobody knows."""

STREAM = (
    b": a comment\r\n\r\n"
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}\r\n\r\n'
    b'data:{"choices":[{"index":0,"delta":{"content":"\xc3\xa9"}}],"odd" : 1.0}\n\n'
    b'event: ping\ndata: {}\n\ndata: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


async def say_stream(request: Received, peer: Peer) -> None:
    """In pieces that cut lines and characters."""
    await peer.stream_head()
    for start in range(0, len(STREAM), 7):
        await peer.chunk(STREAM[start : start + 7])
    await peer.last_chunk()


@pytest.fixture
async def backend() -> AsyncIterator[ScriptedBackend]:
    async with ScriptedBackend() as backend:
        yield backend


@pytest.fixture
async def router(backend: ScriptedBackend, start_router: StartRouter) -> RouterProcess:
    settings = {
        "backends": [{"name": "box", "url": backend.url, "api_key": "key-of-the-backend"}],
        "models": {"other": {"box": "m"}},
        "limits": {"max_body": "1MiB"},
        **QUICK,
    }
    return await asyncio.to_thread(start_router, settings)  # this thread answers its probes


async def test_a_body_reaches_the_backend_unchanged(
    router: RouterProcess, backend: ScriptedBackend, http: aiohttp.ClientSession
) -> None:
    reply = await post(http, router.url, ODD)
    assert reply.status == 200
    (received,) = backend.received
    assert hashlib.sha256(received.body).hexdigest() == hashlib.sha256(ODD).hexdigest()
    assert received.target == CHAT


async def test_a_large_body_reaches_the_backend_unchanged(
    router: RouterProcess, backend: ScriptedBackend, http: aiohttp.ClientSession
) -> None:
    body = ODD.replace(b'"x":[ ]', b'"x":"' + bytes(range(0x23, 0x5C)) * 15_000 + b'"')
    assert len(body) > 800_000
    assert (await post(http, router.url, body)).status == 200
    assert hashlib.sha256(backend.received[0].body).digest() == hashlib.sha256(body).digest()


async def test_an_alias_replaces_the_model_string_and_nothing_else(
    router: RouterProcess, backend: ScriptedBackend, http: aiohttp.ClientSession
) -> None:
    assert (await post(http, router.url, ODD.replace(b'"model" :"m"', b'"model" :"other"'))).status == 200
    assert backend.received[0].body == ODD


async def test_a_query_and_unknown_headers_go_along(
    router: RouterProcess, backend: ScriptedBackend, http: aiohttp.ClientSession
) -> None:
    await post(http, router.url, ODD, path=f"{CHAT}?beta=true&x=%2F", headers={"X-Mine": "caf\u00e9", "Accept": "*/*"})
    received = backend.received[0]
    assert received.target == f"{CHAT}?beta=true&x=%2F"
    assert received.one("x-mine") is not None


async def test_the_clients_key_stays_here_and_the_backends_own_is_sent(
    router: RouterProcess, backend: ScriptedBackend, http: aiohttp.ClientSession
) -> None:
    await post(http, router.url, ODD, headers={"Authorization": "Bearer of-the-client", "X-Api-Key": "of-the-client"})
    received = backend.received[0]
    assert received.one("authorization") == "Bearer key-of-the-backend"
    assert all("of-the-client" not in value for _, value in received.headers)
    assert received.one("host") == backend.url.removeprefix("http://")
    for document in (router.ask_admin("GET", "/config"), router.process.output()):
        assert "key-of-the-backend" not in str(document)


async def test_a_stream_passes_byte_for_byte(
    router: RouterProcess, backend: ScriptedBackend, http: aiohttp.ClientSession
) -> None:
    backend.script = say_stream
    reply = await post(http, router.url, ODD.replace(b'"max_tokens":7', b'"stream":true'))
    assert reply.body == STREAM
    assert reply.headers["content-type"] == "text/event-stream"


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "word"),
    [
        ("POST", CHAT, b'{"model":', 400, b"JSON"),
        ("POST", CHAT, b'["model"]', 400, b"object"),
        ("POST", CHAT, b'{"model":5,"messages":[{}]}', 400, b"model"),
        ("POST", CHAT, b'{"model":"nobody","messages":[{}]}', 404, b"nobody"),
        ("POST", CHAT, b" " * 2**20 + b"{}", 413, b"max_body"),
        ("GET", CHAT, None, 405, b"POST"),
        ("POST", "/v1/nothing", b"{}", 404, b"/v1/chat/completions"),
    ],
)
async def test_a_bad_call_is_refused_as_json_and_reaches_no_backend(
    router: RouterProcess,
    backend: ScriptedBackend,
    method: str,
    target: str,
    body: bytes | None,
    status: int,
    word: bytes,
) -> None:
    async with await RawClient.connect(int(router.url.rpartition(":")[2])) as client:
        await client.request(method, target, body)
        answer = await client.answer()
    assert answer.status == status
    error = answer.json()["error"]  # type: ignore[index]
    assert error["message"]
    assert error["code"]
    assert word in answer.body
    assert backend.received == []

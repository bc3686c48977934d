"""A WebSocket handshake, as its clients send it: answered at once, in words, and never by a backend."""

from __future__ import annotations

import base64
import hashlib

import pytest

from tests.rawclient import Answer, RawClient
from tests.router.running import Running, router_for
from tests.scripted import ScriptedBackend

_KEY = base64.b64encode(hashlib.sha256(b"a nonce").digest()[:16]).decode()
HANDSHAKE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    f"Sec-WebSocket-Key: {_KEY}",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
    "Sec-WebSocket-Protocol: realtime",
    "OpenAI-Beta: realtime=v1",
)
PATHS = ("/v1/realtime?model=m", "/realtime", "/v1/responses", "/v1/chat/completions", "/socket")


async def shake(client: RawClient, target: str, *fields: str) -> Answer:
    await client.request("GET", target, None, *HANDSHAKE, *fields)
    return await client.answer()


async def shake_alone(router: Running, target: str, *fields: str) -> Answer:
    async with await router.client() as client:
        return await shake(client, target, *fields)


@pytest.mark.parametrize("passthrough", [None, "b0"])
@pytest.mark.parametrize("target", PATHS)
async def test_a_handshake_is_answered_at_once_with_what_to_do_instead(target: str, passthrough: str | None) -> None:
    async with ScriptedBackend() as backend, router_for(backend, passthrough=passthrough) as router:
        answer = await shake_alone(router, target)
        assert answer.status == 426
        assert answer.header("upgrade") == "HTTP/1.1"
        assert answer.header("connection") == "Upgrade"
        document = answer.json()
        assert isinstance(document, dict)
        error = document["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", "websocket_not_supported")
        assert "call over HTTP" in error["message"]
        assert backend.received == []


async def test_the_client_goes_on_over_http_on_the_same_connection() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router, await router.client() as client:
        assert (await shake(client, "/v1/responses")).status == 426
        await client.post("/v1/responses", {"model": "m", "input": "hi"})
        assert (await client.answer()).status == 200
        assert len(backend.received) == 1


async def test_strangers_are_asked_for_their_key_first() -> None:
    keys = [{"name": "editor", "key": "k0"}]
    async with ScriptedBackend() as backend, router_for(backend, keys=keys) as router:
        assert (await shake_alone(router, "/v1/realtime")).status == 401
        assert (await shake_alone(router, "/v1/realtime", "Authorization: Bearer k0")).status == 426


async def test_what_can_be_answered_without_an_upgrade_is() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        assert (await shake_alone(router, "/v1/models")).status == 200


async def test_a_handshake_is_counted_as_refused_and_nothing_stays_open() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        await shake_alone(router, "/v1/realtime")
        assert router.idle
        assert router.metric("twolane_calls_total", outcome="refused") == 1


async def test_the_realtime_path_without_a_handshake_is_like_any_that_is_not_served() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        assert (await router.get("/v1/realtime?model=m")).status == 404

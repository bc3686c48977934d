"""A27: what a backend or the router says about coming back later reaches the client unharmed."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tests.cases.apis import CHAT, Api, each_api
from tests.router.running import router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

BODY = b'{"error": {"message": "slow down",  "type": "rate_limit_error", "code": 1.0}}'


def limited(status: str, *fields: str, body: bytes = BODY, chunked: bool = False) -> ScriptedBackend:
    async def script(request: Received, peer: Peer) -> None:
        if chunked:
            await peer.head(status, "Content-Type: application/json", "Transfer-Encoding: chunked", *fields)
            await peer.chunk(body)
            await peer.last_chunk()
        else:
            await peer.head(status, "Content-Type: application/json", f"Content-Length: {len(body)}", *fields)
            await peer.send(body)

    return ScriptedBackend(script)


@each_api
@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable", "529 Overloaded"])
@pytest.mark.parametrize("retry_after", ["30", "Wed, 21 Oct 2026 07:28:00 GMT"], ids=["seconds", "date"])
async def test_a_backends_refusal_passes_as_it_came(api: Api, status: str, retry_after: str) -> None:
    told = {
        "retry-after": retry_after,
        "retry-after-ms": "30000",
        "x-ratelimit-remaining-requests": "0",
        "anthropic-ratelimit-requests-reset": "2026-10-21T07:28:00Z",
    }
    async with limited(status, *(f"{name}: {value}" for name, value in told.items())) as backend:
        backend.probes = api.probes
        async with router_for((backend, api.settings)) as router:
            for stream in (False, True):
                answer = await router.post(api.path, api.body(stream=stream))
                assert (answer.status, answer.body) == (int(status[:3]), BODY)
                assert {name: answer.header(name) for name in told} == told
            assert len(backend.received) == 2


async def test_a_refusal_without_a_length_passes_too() -> None:
    async with limited("429 Too Many Requests", "Retry-After: 7", chunked=True) as backend:
        async with router_for(backend) as router:
            answer = await router.post(CHAT.path, CHAT.body(stream=True))
            assert (answer.status, answer.body, answer.header("retry-after")) == (429, BODY, "7")
            assert answer.complete


async def test_being_busy_is_no_failure_and_no_reason_to_try_another_backend() -> None:
    async with limited("429 Too Many Requests", "Retry-After: 1") as busy, CHAT.backend() as other:
        lanes = (busy, (other, {"lane": "throughput"}))
        async with router_for(*lanes, health={"break_after": 1}) as router:
            for _ in range(10):
                answer = await router.post(CHAT.path, CHAT.body(stream=False), "X-Twolane-Class: interactive")
                assert answer.header("x-twolane-backend") == "b0"
            assert router.metric("twolane_backend_up", backend="b0") == 1
            assert router.metric("twolane_retries_total") == 0
            assert other.received == []


# --- the router's own refusals


async def silent(request: Received, peer: Peer) -> None:
    await peer.until_closed()


NO_WAIT = {name: {"max_wait": "20ms"} for name in ("ttft", "mixed", "throughput")}


@each_api
@pytest.mark.parametrize(
    ("settings", "status"), [({"line": {"max_waiting": 0}}, 429), ({"classes": NO_WAIT}, 503)], ids=["full", "late"]
)
async def test_the_routers_own_refusal_says_when_to_return(api: Api, settings: dict[str, Any], status: int) -> None:
    async with api.backend(silent) as backend:
        async with router_for((backend, {**api.settings, "max_inflight": 1}), **settings) as router:
            first = await router.client()
            await first.post(api.path, api.body(stream=True))
            await eventually(lambda: len(backend.received) == 1)
            for stream in (False, True):
                answer = await router.post(api.path, api.body(stream=stream))
                assert answer.status == status
                assert int(answer.header("retry-after") or 0) >= 1
                assert answer.header("content-type") == "application/json"
                error = orjson.loads(answer.body)["error"]
                assert isinstance(error, str) if api.engine == "ollama" else error["message"]
            assert len(backend.received) == 1
            first.close()


async def test_the_longer_the_line_the_later_the_return() -> None:
    gate = asyncio.Semaphore(0)

    async def slow(request: Received, peer: Peer) -> None:
        await gate.acquire()
        await peer.json(CHAT.whole)

    async with CHAT.backend(slow) as backend:
        async with router_for((backend, {"max_inflight": 1}), line={"max_waiting": 30}) as router:
            calls = [
                asyncio.get_running_loop().create_task(router.post(CHAT.path, CHAT.body(stream=False)))
                for _ in range(31)
            ]
            await eventually(lambda: len(router.app.line) == 30)
            told_s = int((await router.post(CHAT.path, CHAT.body(stream=False))).header("retry-after") or 0)
            assert told_s > 10  # nothing has ended yet, so one call a second is assumed
            for _ in range(31):
                gate.release()
            assert {answer.status for answer in await asyncio.gather(*calls)} == {200}

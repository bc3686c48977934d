"""Keys of clients through the whole router: what their calls may be, how many, and what is told to them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from router.settings.load import load
from tests.rawclient import Answer
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

CHAT = "/v1/chat/completions"
KEY = "Authorization: Bearer k0"


def chat(text: str = "hi", **rest: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **rest}


def keyed(**limits: Any) -> dict[str, Any]:
    """Settings with one key, `k0`."""
    return {"keys": [{"name": "editor", "key": "k0", **limits}]}


def left(answer: Answer, units: str) -> int:
    return int(answer.header(f"x-ratelimit-remaining-{units}") or -1)


class Held:
    """A script that answers when it is told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def __call__(self, request: Received, peer: Peer) -> None:
        await peer.stream_head()
        await peer.token("a")
        await self.go_on.wait()
        await peer.token("b")
        await peer.event({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 50}})
        await peer.last_chunk()


async def code(answer: Answer) -> str:
    document = answer.json()
    assert isinstance(document, dict)
    return str(document["error"]["code"])


async def test_a_key_in_the_log_line_of_its_call_is_a_name() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **keyed()) as router:
        assert (await router.post(CHAT, chat(), KEY)).status == 200
        assert (await router.post(CHAT, chat())).status == 401
        await eventually(lambda: router.metric("twolane_calls_total") == 2)
        assert router.metric("twolane_calls_total", outcome="denied") == 1
        assert router.metric("twolane_key_calls_total", key="editor", outcome="completed") == 1
        assert router.metric("twolane_key_tokens_total", key="editor", direction="out") == 2


async def test_calls_beyond_the_rate_are_answered_429_and_reach_no_backend() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **keyed(calls_per_minute=2)) as router:
        first, second, third = [await router.post(CHAT, chat(), KEY) for _ in range(3)]
        assert (first.status, second.status, third.status) == (200, 200, 429)
        assert (left(first, "requests"), left(second, "requests"), left(third, "requests")) == (1, 0, 0)
        assert third.header("x-ratelimit-limit-requests") == "2"
        assert 25 <= int(third.header("retry-after") or 0) <= 30
        assert await code(third) == "rate_limit_exceeded"
        assert third.header("x-ratelimit-limit-tokens") is None
        assert len(backend.received) == 2
        assert router.metric("twolane_key_calls_total", key="editor", outcome="limited") == 1


async def test_lists_of_models_need_the_key_and_cost_nothing() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **keyed(calls_per_minute=1, parallel=1)) as router:
        for _ in range(5):
            answer = await router.get("/v1/models", KEY)
            assert (answer.status, left(answer, "requests")) == (200, 1)


async def test_tokens_are_counted_as_the_engine_counts_them() -> None:
    held = Held()
    held.go_on.set()
    async with ScriptedBackend(held) as backend, router_for(backend, **keyed(tokens_per_minute=1000)) as router:
        estimated = left(await router.post(CHAT, chat("word " * 100, stream=True), KEY), "tokens")
        assert 600 < estimated < 980
        await eventually(lambda: not router.app.gateway.open_calls)
        assert left(await router.get("/v1/models", KEY), "tokens") in (850, 851)


async def test_a_call_that_no_backend_took_is_given_back() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **keyed(tokens_per_minute=1000)) as router:
        for document in (chat("word " * 500, model="unknown"), b"{"):
            assert (await router.post(CHAT, document, KEY)).status in (400, 404)
        assert left(await router.get("/v1/models", KEY), "tokens") == 1000


async def test_tokens_in_debt_keep_the_next_call_out() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **keyed(tokens_per_minute=4)) as router:
        assert (await router.post(CHAT, chat(), KEY)).status == 200  # five tokens, says the engine
        await eventually(lambda: not router.app.gateway.open_calls)
        answer = await router.post(CHAT, chat(), KEY)
        assert (answer.status, left(answer, "tokens")) == (429, 0)
        assert int(answer.header("retry-after") or 0) >= 1


async def test_calls_at_once_are_limited_and_each_end_makes_room() -> None:
    held = Held()
    async with ScriptedBackend(held) as backend, router_for(backend, **keyed(parallel=1)) as router:
        async with await router.client() as client:
            await client.post(CHAT, chat(stream=True), KEY)
            running = await client.answer(head_only=True)
            second = await router.post(CHAT, chat(), KEY)
            assert (second.status, second.header("retry-after")) == (429, "1")
            held.go_on.set()
            await client.rest(running)
            assert running.complete
        await eventually(lambda: not router.app.gateway.open_calls)
        assert (await router.post(CHAT, chat(stream=True), KEY)).status == 200


@pytest.mark.parametrize("phase", ["before the body is there", "while the answer comes"])
async def test_a_client_that_leaves_makes_room(phase: str) -> None:
    async with ScriptedBackend(Held()) as backend, router_for(backend, **keyed(parallel=1)) as router:
        async with await router.client() as client:
            if phase == "before the body is there":
                await client.send(f"POST {CHAT} HTTP/1.1\r\nHost: r\r\n{KEY}\r\nContent-Length: 9\r\n\r\n".encode())
                await eventually(lambda: router.app.gateway.open_calls == 1)
            else:
                await client.post(CHAT, chat(stream=True), KEY)
                await client.answer(head_only=True)
        await eventually(lambda: not router.app.gateway.open_calls)
        async with await router.client() as client:
            await client.post(CHAT, chat(stream=True), KEY)
            assert (await client.answer(head_only=True)).status == 200


async def test_a_key_is_held_to_its_classes_and_says_so() -> None:
    limits = keyed(classes=["throughput"])
    async with ScriptedBackend() as backend, router_for(backend, **limits) as router:
        answer = await router.post(CHAT, chat(), KEY, "X-Twolane-Class: interactive")
        assert answer.header("x-twolane-class") == "throughput"
        assert "held_by_key" in (answer.header("x-twolane-reason") or "")
        assert (await router.post(CHAT, chat(), KEY, "X-Twolane-Class: batch")).header(
            "x-twolane-class"
        ) == "throughput"


async def test_a_key_is_held_to_its_lanes() -> None:
    limits = keyed(lanes="throughput")
    async with ScriptedBackend() as desk, ScriptedBackend() as rack:
        async with router_for(desk, (rack, {"lane": "throughput"}), **limits) as router:
            for _ in range(4):
                answer = await router.post(CHAT, chat(), KEY, "X-Twolane-Class: interactive")
                assert answer.header("x-twolane-backend") == "b1"
        assert desk.received == []


async def test_paths_that_are_passed_through_keep_to_the_lanes_and_limits_of_the_key() -> None:
    keys = [{"name": "rack", "key": "k0", "lanes": "throughput"}, {"name": "desk", "key": "k1", "calls_per_minute": 1}]
    async with ScriptedBackend() as desk, router_for(desk, passthrough="b0", keys=keys) as router:
        answer = await router.post("/some/path", {}, KEY)
        assert (answer.status, await code(answer)) == (403, "not_allowed")
        assert (await router.post("/some/path", {}, "x-api-key: k1")).status == 200
        assert (await router.post("/some/path", {}, "x-api-key: k1")).status == 429
        assert len(desk.received) == 1


async def test_what_a_backend_says_of_its_own_limits_stays() -> None:
    async def limited(request: Received, peer: Peer) -> None:
        await peer.json({"error": {}}, "429 Too Many Requests", "x-ratelimit-remaining-requests: 7", "Retry-After: 30")

    async with ScriptedBackend(limited) as backend, router_for(backend, **keyed(calls_per_minute=9)) as router:
        answer = await router.post(CHAT, chat(), KEY)
        assert (answer.status, left(answer, "requests"), answer.header("retry-after")) == (429, 7, "30")


# --- reload


def write(path: Path, router: Running | None, backend: ScriptedBackend, **more: Any) -> None:
    document = {
        "listen": "127.0.0.1:0",
        "admin": "127.0.0.1:0",
        "backends": [{"name": "b0", "url": backend.url, "engine": "openai", "lane": "latency"}],
        **more,
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")


async def test_keys_come_and_go_while_it_runs_and_running_calls_do_not_notice(tmp_path: Path) -> None:
    held, path = Held(), tmp_path / "twolane.yaml"
    async with ScriptedBackend(held) as backend, router_for(backend, path=path, **keyed(parallel=1)) as router:
        async with await router.client() as client:
            await client.post(CHAT, chat(stream=True), KEY)
            running = await client.answer(head_only=True)
            write(path, router, backend, keys=[{"name": "other", "key": "k1"}])
            assert (await router.app.reload())["reloaded"]
            assert (await router.get("/v1/models", KEY)).status == 401
            assert (await router.get("/v1/models", "x-api-key: k1")).status == 200
            held.go_on.set()
            await client.rest(running)
            assert running.complete
        write(path, router, backend)
        assert (await router.app.reload())["reloaded"]
        assert (await router.get("/v1/models")).status == 200


async def test_a_changed_key_file_is_taken_over_by_itself(tmp_path: Path) -> None:
    path, key = tmp_path / "twolane.yaml", tmp_path / "editor.key"
    key.write_text("old\n", encoding="utf-8")
    async with ScriptedBackend() as backend:
        keys = [{"name": "editor", "key_file": str(key)}]
        write(path, None, backend, keys=keys)
        async with router_for(backend, path=path, digest=load(path, {}).digest, keys=keys) as router:
            assert (await router.get("/v1/models", "x-api-key: old")).status == 200
            key.write_text("new\n", encoding="utf-8")
            await eventually(lambda: router.metric("twolane_reloads_total", result="ok") >= 1)
            assert (await router.get("/v1/models", "x-api-key: old")).status == 401
            assert (await router.get("/v1/models", "x-api-key: new")).status == 200

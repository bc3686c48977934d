"""A36: a server that shows no figures serves as well as others; what it shows of prompts stays with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
import structlog.testing

from tests.cases.apis import CHAT
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

PROMPT = "my password is hunter2"
QUICK = {"interval": "20ms", "timeout": "300ms"}
Answers = Callable[[Received, Peer], Awaitable[None]]


def says(status: str, document: object) -> Answers:
    async def script(request: Received, peer: Peer) -> None:
        await peer.json(document, status)

    return script


async def silent(request: Received, peer: Peer) -> None:
    await peer.until_closed()


async def closes(request: Received, peer: Peer) -> None:
    peer.writer.close()


NOT_SUPPORTED = {
    "error": {
        "code": 501,
        "message": "This server does not support metrics endpoint. Start it with `--metrics`",
        "type": "not_supported_error",
    }
}
ABSENT: dict[str, dict[str, Answers]] = {
    "off": {"/metrics": says("501 Not Implemented", NOT_SUPPORTED), "/slots": says("404 Not Found", {"error": "File"})},
    "unauthorized": {"/metrics": says("401 Unauthorized", {}), "/slots": says("401 Unauthorized", {})},
    "empty": {"/metrics": says("200 OK", {}), "/slots": says("200 OK", [])},
    "broken": {"/metrics": closes, "/slots": closes},
    "hung": {"/metrics": silent, "/slots": silent},
    "crashing": {"/metrics": says("500 Oops", "x"), "/slots": says("500 Oops", "x")},
}


async def several_scrapes(backend: ScriptedBackend) -> None:
    begun = sum(request.target == "/health" for request in backend.probed)
    await eventually(lambda: sum(request.target == "/health" for request in backend.probed) > begun + 3)


@pytest.mark.parametrize(
    ("engine", "answers"),
    [
        pytest.param(engine, answers, id=f"{engine}-{how}")
        for engine in ("llamacpp", "vllm", "sglang")
        for how, answers in ABSENT.items()
        if engine == "llamacpp" or how != "hung"
    ],
)
async def test_without_figures_it_stays_in_rotation_and_says_so_once(engine: str, answers: dict[str, Answers]) -> None:
    with structlog.testing.capture_logs() as events:
        async with ScriptedBackend(probes=answers) as backend:
            settings = {"engine": engine, "max_inflight": 2}
            async with router_for((backend, settings), health={**QUICK, "timeout": "100ms"}) as router:
                await several_scrapes(backend)
                for _ in range(3):
                    assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 200
                await several_scrapes(backend)
                assert router.metric("twolane_backend_up") == 1
                assert router.metric("twolane_backend_foreign") == 0
    told = [event for event in events if event["event"] == "metrics_missing"]
    assert len(told) == 1
    assert told[0]["backend"] == "b0"
    assert [event for event in events if event["log_level"] in ("warning", "error")] == []


async def test_its_own_counts_keep_the_cap() -> None:
    gate = asyncio.Semaphore(0)

    async def script(request: Received, peer: Peer) -> None:
        await gate.acquire()
        await peer.json(CHAT.whole)

    async with ScriptedBackend(script, probes=ABSENT["off"]) as backend:
        async with router_for((backend, {"engine": "llamacpp", "max_inflight": 2}), health=QUICK) as router:
            loop = asyncio.get_running_loop()
            call, interactive = CHAT.body(stream=False), "X-Twolane-Class: interactive"
            calls = [loop.create_task(router.post(CHAT.path, call, interactive)) for _ in range(5)]
            await eventually(lambda: len(router.app.line) == 3)
            await several_scrapes(backend)
            assert len(backend.received) == 2
            for _ in range(5):
                gate.release()
            assert {answer.status for answer in await asyncio.gather(*calls)} == {200}


async def test_figures_that_come_later_are_taken_then() -> None:
    """A server is restarted with the flag, behind the same address."""
    async with ScriptedBackend(probes=ABSENT["off"]) as backend:
        async with router_for((backend, {"engine": "llamacpp"}), health={**QUICK, "down_after": 1}) as router:
            await several_scrapes(backend)
            await backend.stop()
            await eventually(lambda: router.metric("twolane_backend_up") == 0)

            async def metrics(request: Received, peer: Peer) -> None:
                text = b"llamacpp:requests_processing 3\nllamacpp:requests_deferred 0\n"
                await peer.head("200 OK", "Content-Type: text/plain", f"Content-Length: {len(text)}")
                await peer.send(text)

            async with ScriptedBackend(probes={"/metrics": metrics}, port=backend.port):
                await eventually(lambda: router.metric("twolane_backend_engine_running") == 3)


SLOTS = [
    {"id": 0, "is_processing": True, "prompt": PROMPT, "params": {"grammar": PROMPT}, "next_token": {"n_decoded": 3}},
    {"id": 1, "is_processing": False, "prompt": PROMPT},
]


async def everything_shown(router: Running) -> bytes:
    shown = [
        (await router.admin("GET", path)).body for path in ("/backends", "/metrics", "/config", "/health", "/ready")
    ]
    shown += [(await router.get(path)).body for path in ("/v1/models", "/api/tags", "/api/ps")]
    asked = orjson.dumps({"path": CHAT.path, "headers": {}, "body": CHAT.call})
    return b"".join([*shown, (await router.admin("POST", "/explain", asked)).body])


@pytest.mark.parametrize("slots", [SLOTS, {"error": PROMPT}, [PROMPT], [{"is_processing": PROMPT}]], ids=range(4))
async def test_prompts_in_slots_are_never_shown_again(slots: Any) -> None:
    with structlog.testing.capture_logs() as events:
        async with ScriptedBackend(probes={"/slots": slots}) as backend:
            async with router_for((backend, {"engine": "llamacpp"}), health=QUICK, log={"level": "debug"}) as router:
                await several_scrapes(backend)
                if slots is SLOTS:
                    await eventually(lambda: router.metric("twolane_backend_engine_running") == 1)
                assert PROMPT.encode() not in await everything_shown(router)
    assert PROMPT not in str(events)


async def test_clients_cannot_read_slots_through_the_router() -> None:
    async with ScriptedBackend(probes={"/slots": SLOTS}) as backend:
        async with router_for((backend, {"engine": "llamacpp"})) as router:
            for path in ("/slots", "/slots?fail_on_no_slot=1", "/slots/0", "/metrics", "/props"):
                answer = await router.get(path)
                assert answer.status == 404
                assert PROMPT.encode() not in answer.body

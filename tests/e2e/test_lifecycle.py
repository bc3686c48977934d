"""Starting, reloading, losing a backend, ending: with real servers and real signals."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import yaml

from bench.model_maker import ModelFiles
from bench.random_llama.recipe import follows_circle
from bench.servers.engines import LlamaCppServer
from bench.servers.process import answers
from bench.servers.router import RouterProcess
from tests.e2e.calls import CHAT, chat, post, running_streams
from tests.e2e.conftest import QUICK, Spawn, StartRouter, lanes
from tests.scripted import eventually

pytestmark = pytest.mark.llamacpp


def only_desk(desk: LlamaCppServer, **more: Any) -> dict[str, Any]:
    return {
        "backends": [{"name": "desk", "url": desk.url, "lane": "latency"}],
        "models": {"chat": {"desk": desk.name}},
        **QUICK,
        **more,
    }


async def rest_of(stream: aiohttp.ClientResponse) -> tuple[str, bytes]:
    """The text of a chat stream from here on, and its raw bytes."""
    raw = await stream.content.read()
    events = [line.removeprefix(b"data: ") for line in raw.splitlines() if line.startswith(b"data: {")]
    choices = [choice for event in events for choice in orjson.loads(event).get("choices", ())]
    return "".join(choice["delta"].get("content") or "" for choice in choices), raw


async def cut_off(stream: aiohttp.ClientResponse) -> bytes:
    """What came of a stream that must break off instead of ending."""
    seen = b""
    try:
        async for piece in stream.content.iter_any():
            seen += piece
    except aiohttp.ClientPayloadError:
        return seen
    raise AssertionError(f"it ended as if complete: {seen[-600:]!r}")


def new_tokens(max_tokens: int) -> bytes:
    return orjson.dumps(chat(max_tokens=max_tokens, stream=True))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_end_lets_running_calls_finish(
    desk: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession, number: int
) -> None:
    router = start_router(only_desk(desk))
    async with http.post(router.url + CHAT, data=new_tokens(1500)) as stream:
        await stream.content.readline()
        router.process.signal(number)
        await eventually(lambda: answers(f"{router.url}/v1/models") != 200)
        text, raw = await rest_of(stream)
    assert follows_circle(text)
    assert raw.rstrip().endswith(b"data: [DONE]")
    assert await asyncio.to_thread(router.process.wait, 5) == 0


async def test_calls_that_wait_are_sent_away_when_it_drains(
    desk: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession, spawn: Spawn
) -> None:
    router = start_router(only_desk(desk))
    async with running_streams(http, router.url, 2):
        waits = spawn(post(http, router.url, chat()))
        await eventually(lambda: router.metric("twolane_line_waiting") == 1)
        assert router.ask_admin("POST", "/drain")["draining"] is True
        reply = await waits
        assert answers(f"{router.admin}/ready") == 503
    assert (reply.status, reply.json()["error"]["code"]) == (503, "shutting_down")
    assert reply.headers["retry-after"]
    assert await asyncio.to_thread(router.process.wait, 5) == 0


async def test_after_the_grace_time_streams_end_with_an_error_that_the_client_can_read(
    desk: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    router = start_router(only_desk(desk, shutdown_grace="200ms"))
    async with running_streams(http, router.url, 1) as (stream,):
        router.process.signal(signal.SIGTERM)
        seen = await cut_off(stream)
        assert b"shutting_down" in seen[-600:]
    assert await asyncio.to_thread(router.process.wait, 5) == 0
    await eventually(lambda: desk.busy_slots() == 0)


async def test_a_hangup_signal_reloads_and_running_calls_do_not_notice(
    desk: LlamaCppServer, rack: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    router = start_router(only_desk(desk))
    async with http.post(router.url + CHAT, data=new_tokens(2000)) as stream:
        await stream.content.readline()
        router.write({**yaml.safe_load(router.file.read_text()), **lanes(desk, rack)})
        router.process.signal(signal.SIGHUP)
        await eventually(lambda: router.backends().get("rack", {}).get("health") == "up")
        reply = await post(http, router.url, chat(), headers={"x-twolane-class": "throughput"})
        assert reply.lane == "rack"
        text, _ = await rest_of(stream)
    assert follows_circle(text)


@pytest.mark.parametrize("how", ["renamed", "written in place"])
async def test_a_changed_file_is_taken_over(
    desk: LlamaCppServer, rack: LlamaCppServer, start_router: StartRouter, how: str
) -> None:
    router = start_router(only_desk(desk))
    wanted = {**yaml.safe_load(router.file.read_text()), **lanes(desk, rack)}
    if how == "renamed":
        router.write(wanted)
    else:
        router.file.write_text(yaml.safe_dump(wanted))
    await eventually(lambda: router.backends().get("rack", {}).get("health") == "up")


async def test_a_wrong_file_changes_nothing_and_is_told_with_its_line(
    desk: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    router = start_router(only_desk(desk))
    text = router.file.read_text()
    line = text[: text.index("lane: latency")].count("\n") + 1
    router.file.write_text(text.replace("lane: latency", "lane: fast"))
    answer = router.ask_admin("POST", "/reload")
    assert answer["reloaded"] is False
    assert f"{router.file.name}:{line}:" in answer["problems"][0]
    assert "backends[0].lane" in answer["problems"][0]
    assert (await post(http, router.url, chat())).status == 200


@pytest.fixture
def mortal(model: ModelFiles, tmp_path: Path) -> Any:
    """A server that a test may kill."""
    with LlamaCppServer(model.gguf, slots=2, ctx=8192, log=tmp_path / "mortal.log") as server:
        yield server


async def test_without_a_backend_calls_are_told_what_was_tried_and_when_to_come_back(
    mortal: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    router = start_router(only_desk(mortal))
    mortal.kill()
    for path in (CHAT, "/v1/messages"):
        reply = await post(http, router.url, chat(), path=path)
        assert reply.status == 503
        assert int(reply.headers["retry-after"]) >= 1
        assert "desk" in reply.json()["error"]["message"]
    await eventually(lambda: answers(f"{router.admin}/ready") == 503)
    assert answers(f"{router.admin}/health") == 200


async def test_the_other_lane_takes_over_and_gives_back(
    mortal: LlamaCppServer,
    rack: LlamaCppServer,
    model: ModelFiles,
    start_router: StartRouter,
    http: aiohttp.ClientSession,
    tmp_path: Path,
) -> None:
    router = start_router(lanes(mortal, rack))
    ttft = {"x-twolane-class": "ttft"}
    assert (await post(http, router.url, chat(), headers=ttft)).lane == "desk"
    mortal.kill()
    during = [await post(http, router.url, chat(), headers=ttft) for _ in range(5)]
    assert [(reply.status, reply.lane) for reply in during] == [(200, "rack")] * 5
    with LlamaCppServer(model.gguf, port=mortal.port, slots=2, ctx=8192, log=tmp_path / "again.log"):
        await eventually(lambda: router.backends()["desk"]["health"] == "up")
        assert (await post(http, router.url, chat(), headers=ttft)).lane == "desk"


async def test_a_backend_that_dies_under_a_stream_ends_it_with_an_error(
    mortal: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    router = start_router(only_desk(mortal))
    async with running_streams(http, router.url, 1) as (stream,):
        mortal.kill()
        seen = await cut_off(stream)
        assert b"backend_failed" in seen[-600:]
        assert b"[DONE]" not in seen
    await eventually(lambda: router.backends()["desk"]["own"] == 0)


async def test_it_starts_before_its_backend_and_serves_when_that_comes(
    model: ModelFiles, start_router: StartRouter, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    with LlamaCppServer(model.gguf, log=tmp_path / "first.log") as server:
        port = server.port
    settings = {"backends": [{"name": "desk", "url": f"http://127.0.0.1:{port}"}], **QUICK}
    router = start_router(settings, wait=False)
    refused = await post(http, router.url, chat(model="random-tiny"))
    assert refused.status == 503
    assert refused.headers["retry-after"]
    with LlamaCppServer(model.gguf, port=port, log=tmp_path / "second.log"):
        await eventually(router.ready)
        assert (await post(http, router.url, chat(model="random-tiny"))).status == 200


def test_no_process_is_left_when_it_ends(desk: LlamaCppServer, tmp_path: Path) -> None:
    with RouterProcess(only_desk(desk), folder=tmp_path) as router:
        pid = router.process.pid
    assert not Path(f"/proc/{pid}").exists()

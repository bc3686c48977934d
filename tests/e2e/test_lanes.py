"""Which lane a call takes, who waits for whom, and until when; on two real llama.cpp servers."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from bench.random_llama.recipe import follows_circle
from bench.servers.engines import LlamaCppServer
from bench.servers.router import RouterProcess
from tests.e2e.calls import CHAT, chat, gather_posts, post, running_streams
from tests.e2e.conftest import QUICK, Spawn, StartRouter, lanes
from tests.scripted import eventually

pytestmark = pytest.mark.llamacpp


def tagged(call_class: str) -> dict[str, str]:
    return {"x-twolane-class": call_class}


@pytest.mark.parametrize(
    ("word", "call_class", "lane"),
    [
        ("ttft", "ttft", "desk"),
        ("interactive", "ttft", "desk"),
        ("throughput", "throughput", "rack"),
        ("batch", "throughput", "rack"),
        ("bulk", "throughput", "rack"),
    ],
)
async def test_a_tagged_call_takes_the_lane_of_its_class(
    two_lanes: RouterProcess, http: aiohttp.ClientSession, word: str, call_class: str, lane: str
) -> None:
    reply = await post(http, two_lanes.url, chat(), headers=tagged(word))
    assert reply.status == 200
    assert (reply.headers["x-twolane-class"], reply.lane) == (call_class, lane)


async def test_an_untagged_stream_of_a_short_question_is_for_somebody_who_reads(
    two_lanes: RouterProcess, http: aiohttp.ClientSession
) -> None:
    reply = await post(http, two_lanes.url, chat(stream=True), headers={"User-Agent": "nobody before"})
    assert (reply.headers["x-twolane-class"], reply.lane) == ("ttft", "desk")


async def test_a_call_with_an_unknown_class_is_served_as_if_untagged(
    two_lanes: RouterProcess, http: aiohttp.ClientSession
) -> None:
    untagged = await post(http, two_lanes.url, chat(stream=True), headers={"User-Agent": "one"})
    odd = await post(http, two_lanes.url, chat(stream=True), headers={"User-Agent": "two", **tagged("urgent!!")})
    assert odd.status == 200
    assert odd.headers["x-twolane-class"] == untagged.headers["x-twolane-class"]


async def test_a_rule_decides_where_no_header_does(
    desk: LlamaCppServer, rack: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    rules = [{"if": {"header": {"x-team": "nightly"}}, "then": "throughput"}]
    router = start_router(lanes(desk, rack, classify={"rules": rules}))
    reply = await post(http, router.url, chat(stream=True), headers={"x-team": "nightly"})
    assert (reply.headers["x-twolane-class"], reply.lane) == ("throughput", "rack")
    both = await post(http, router.url, chat(stream=True), headers={"x-team": "nightly", **tagged("ttft")})
    assert both.headers["x-twolane-class"] == "ttft"


async def test_the_servers_are_recognised_with_slots_context_and_models(two_lanes: RouterProcess) -> None:
    rows = two_lanes.backends()
    assert {name: rows[name]["engine"] for name in ("desk", "rack")} == {"desk": "llamacpp", "rack": "llamacpp"}
    assert (rows["desk"]["slots"], rows["rack"]["slots"]) == (2, 4)
    assert rows["desk"]["context_tokens"] == 8192
    assert "random-tiny" in rows["desk"]["models"]


async def test_a_full_latency_lane_spills_over_to_the_other(
    two_lanes: RouterProcess, http: aiohttp.ClientSession
) -> None:
    async with running_streams(http, two_lanes.url, 3, headers=tagged("ttft")) as streams:
        assert [stream.headers["x-twolane-backend"] for stream in streams] == ["desk", "desk", "rack"]


async def test_bulk_leaves_a_slot_of_the_latency_lane_free(
    desk: LlamaCppServer, rack: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession, spawn: Spawn
) -> None:
    router = start_router(lanes(desk, rack))
    async with running_streams(http, router.url, 5, headers=tagged("throughput")) as streams:
        assert [stream.headers["x-twolane-backend"] for stream in streams] == ["rack"] * 4 + ["desk"]
        sixth = spawn(post(http, router.url, chat(), headers=tagged("throughput")))
        await eventually(lambda: waiting(router) == 1)
        quick = await post(http, router.url, chat(), headers=tagged("ttft"))
        assert quick.lane == "desk"
        assert not sixth.done()
    assert (await sixth).status == 200


async def test_four_calls_on_two_slots_wait_here_and_not_in_the_server(
    desk: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession, spawn: Spawn
) -> None:
    router = start_router({"backends": [{"name": "desk", "url": desk.url}], **QUICK})
    bodies = [chat(f"Say {number}", max_tokens=600, model=desk.name) for number in range(4)]
    calls = spawn(gather_posts(http, router.url, bodies, headers=tagged("ttft")))
    deferred = []
    while not calls.done():
        deferred.append(await asyncio.to_thread(deferred_in, desk))
    replies = await calls
    assert [reply.status for reply in replies] == [200] * 4
    assert all(follows_circle(reply.text) for reply in replies)
    assert sum(reply.queue_ms > 50 for reply in replies) == 2
    assert max(deferred) == 0


async def test_a_call_that_waited_too_long_is_told_when_to_come_back(
    desk: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    settings = {
        "backends": [{"name": "desk", "url": desk.url}],
        "classes": {"ttft": {"max_wait": "300ms"}},
        **QUICK,
    }
    router = start_router(settings)
    async with running_streams(http, router.url, 2, model=desk.name):
        reply = await post(http, router.url, chat(model=desk.name), headers=tagged("ttft"))
    assert reply.status == 503
    assert int(reply.headers["retry-after"]) >= 1
    assert reply.json()["error"]["code"] == "waited_too_long"
    assert "300ms" in reply.json()["error"]["message"] or "0.3 s" in reply.json()["error"]["message"]


async def test_a_line_that_is_full_says_so(
    desk: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession, spawn: Spawn
) -> None:
    router = start_router(
        {"backends": [{"name": "desk", "url": desk.url}], "line": {"max_waiting": 1}, **QUICK},
    )
    async with running_streams(http, router.url, 2, model=desk.name):
        waits = spawn(post(http, router.url, chat(model=desk.name)))
        await eventually(lambda: waiting(router) == 1)
        refused = await post(http, router.url, chat(model=desk.name))
        assert refused.status == 429
        assert int(refused.headers["retry-after"]) >= 1
    assert (await waits).status == 200


async def test_who_reads_overtakes_bulk_in_the_line(
    desk: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    router = start_router({"backends": [{"name": "desk", "url": desk.url, "max_inflight": 1}], **QUICK})
    ended: list[str] = []

    async def call(call_class: str) -> None:
        reply = await post(http, router.url, chat(model=desk.name), headers=tagged(call_class))
        assert reply.status == 200
        ended.append(call_class)

    async with asyncio.TaskGroup() as group, running_streams(http, router.url, 1, model=desk.name):
        for number, call_class in enumerate(("throughput", "throughput", "mixed", "ttft"), start=1):
            group.create_task(call(call_class))
            await eventually(lambda number=number: waiting(router) == number)  # type: ignore[misc]
    assert ended == ["ttft", "mixed", "throughput", "throughput"]


async def test_a_waiting_client_that_leaves_is_gone_from_the_line(
    desk: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession, spawn: Spawn
) -> None:
    router = start_router({"backends": [{"name": "desk", "url": desk.url}], **QUICK})
    async with running_streams(http, router.url, 2, model=desk.name):
        waits = spawn(post(http, router.url, chat(model=desk.name)))
        await eventually(lambda: waiting(router) == 1)
        waits.cancel()
        await eventually(lambda: waiting(router) == 0)
    await asyncio.gather(waits, return_exceptions=True)


async def test_calls_of_others_at_a_server_are_seen_as_foreign(
    two_lanes: RouterProcess, desk: LlamaCppServer, http: aiohttp.ClientSession
) -> None:
    async with running_streams(http, desk.url, 2, model=desk.name):
        await eventually(lambda: two_lanes.backends()["desk"]["foreign"] > 1.5)
        reply = await post(http, two_lanes.url, chat(), headers=tagged("ttft"))
        assert reply.lane == "rack"
    await eventually(lambda: two_lanes.backends()["desk"]["foreign"] < 0.5)


async def test_explain_decides_like_a_call_and_sends_nothing(
    two_lanes: RouterProcess, desk: LlamaCppServer, http: aiohttp.ClientSession
) -> None:
    before = two_lanes.backends()
    for call_class in ("ttft", "throughput"):
        asked = {"path": CHAT, "headers": tagged(call_class), "body": chat(stream=True)}
        told = two_lanes.ask_admin("POST", "/explain", asked)
        reply = await post(http, two_lanes.url, chat(max_tokens=1), headers=tagged(call_class))
        assert told["class"] == reply.headers["x-twolane-class"]
        assert told["source"] == "header"
        assert told["decision"]["action"] == "dispatch"
        assert told["decision"]["backend"] == reply.lane
        assert {row["backend"] for row in told["considered"] if row["usable"]} == {"desk", "rack"}
    after = two_lanes.backends()
    assert after["desk"]["dispatched"] == before["desk"]["dispatched"] + 1


def waiting(router: RouterProcess) -> int:
    """Calls in the router's line."""
    return round(router.metric("twolane_line_waiting"))


def deferred_in(server: LlamaCppServer) -> int:
    """Calls that wait inside llama.cpp."""
    (line,) = (row for row in server.get("/metrics").splitlines() if row.startswith("llamacpp:requests_deferred "))
    return round(float(line.split()[1]))

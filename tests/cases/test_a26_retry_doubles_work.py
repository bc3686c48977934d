"""A26: a call is sent again only where the first backend certainly did not begin on it, and not without end."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from router.engines.api import Ready
from tests.cases.apis import CHAT, Api, each_api
from tests.rawclient import Answer
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, echo, eventually

INTERACTIVE = "X-Twolane-Class: interactive"
"""Goes to the latency lane while there is room."""

Fails = Callable[[Api], Callable[[Received, Peer], Awaitable[None]]]
each_stream = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def reads_and_closes(api: Api) -> Callable[[Received, Peer], Awaitable[None]]:
    async def script(request: Received, peer: Peer) -> None:
        peer.writer.close()

    return script


def reads_and_resets(api: Api) -> Callable[[Received, Peer], Awaitable[None]]:
    async def script(request: Received, peer: Peer) -> None:
        _reset(peer)

    return script


def never_answers(api: Api) -> Callable[[Received, Peer], Awaitable[None]]:
    async def script(request: Received, peer: Peer) -> None:
        await peer.until_closed()

    return script


def says_500(api: Api) -> Callable[[Received, Peer], Awaitable[None]]:
    async def script(request: Received, peer: Peer) -> None:
        await peer.json({"error": {"message": "out of memory"}}, "500 Internal Server Error")

    return script


def half_a_head(api: Api) -> Callable[[Received, Peer], Awaitable[None]]:
    async def script(request: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Ty")
        peer.writer.close()

    return script


def says_503(api: Api) -> Callable[[Received, Peer], Awaitable[None]]:
    async def script(request: Received, peer: Peer) -> None:
        await peer.json({"error": {"message": "overloaded"}}, "503 Service Unavailable")

    return script


def one_token_then_reset(api: Api) -> Callable[[Received, Peer], Awaitable[None]]:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head(content_type=api.content_type)
        await peer.chunk(api.token("a"))
        await asyncio.sleep(0.01)  # a reset overtakes what was not read yet
        _reset(peer)

    return script


def a_head_then_close(api: Api) -> Callable[[Received, Peer], Awaitable[None]]:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head(content_type=api.content_type)
        peer.writer.close()

    return script


def _reset(peer: Peer) -> None:
    linger = struct.pack("ii", 1, 0)
    peer.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    peer.writer.transport.abort()


def two(api: Api, first: ScriptedBackend, second: ScriptedBackend) -> tuple[Any, Any]:
    return (first, api.settings), (second, {**api.settings, "lane": "throughput"})


# --- (a) certainly not begun


@each_api
@each_stream
async def test_a_refused_connection_is_served_by_the_other_backend(api: Api, stream: bool) -> None:
    async with api.backend() as gone, api.backend() as other:
        async with router_for(*two(api, gone, other)) as router:
            await gone.stop()
            answer = await router.post(api.path, api.body(stream=stream), INTERACTIVE)
            assert (answer.status, answer.header("x-twolane-backend")) == (200, "b1")
            assert len(other.received) == 1
            assert router.metric("twolane_retries_total", backend="b1") == 1


# --- (b) to (e): perhaps begun


@each_api
@pytest.mark.parametrize(
    ("fails", "status"),
    [
        (reads_and_closes, 502),
        (reads_and_resets, 502),
        (never_answers, 504),
        (half_a_head, 502),
        (says_500, 500),
        (says_503, 503),
    ],
)
async def test_what_may_have_begun_is_never_sent_again(api: Api, fails: Fails, status: int) -> None:
    async with api.backend(fails(api)) as first, api.backend() as second:
        async with router_for(*two(api, first, second), timeouts={"first_byte": "50ms"}) as router:
            for count, stream in enumerate((False, True), start=1):
                answer = await router.post(api.path, api.body(stream=stream), INTERACTIVE)
                assert answer.status == status
                assert len(first.received) + len(second.received) == count
            assert router.metric("twolane_retries_total") == 0


@each_api
@pytest.mark.parametrize("fails", [one_token_then_reset, a_head_then_close])
async def test_a_stream_that_broke_is_never_begun_again(api: Api, fails: Fails) -> None:
    async with api.backend(fails(api)) as first, api.backend() as second:
        async with router_for(*two(api, first, second)) as router:
            answer = await router.post(api.path, api.body(stream=True), INTERACTIVE)
            assert answer.status == 200
            assert not answer.complete
            assert len(first.received) + len(second.received) == 1


async def test_at_the_limit_the_backend_is_left_before_the_client_is_told() -> None:
    async with CHAT.backend(never_answers(CHAT)) as first, CHAT.backend() as second:
        async with router_for(*two(CHAT, first, second), timeouts={"first_byte": "100ms"}) as router:
            client = await router.client()
            await client.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)
            answer = await client.answer()
            assert answer.status == 504
            await eventually(lambda: first.peers[0].closed_s is not None)
            # The client asks again: that is a new call, and the old one holds no slot any more.
            assert router.metric("twolane_backend_inflight", backend="b0") == 0
            await client.post(CHAT.path, CHAT.body(stream=False), "X-Twolane-Class: batch")
            assert (await client.answer()).status == 200
            client.close()
        assert (len(first.received), len(second.received)) == (1, 1)


@pytest.mark.parametrize("fails", [reads_and_closes, reads_and_resets, never_answers, says_500, one_token_then_reset])
async def test_no_number_is_generated_twice_in_a_mix_of_failures(fails: Fails) -> None:
    """On kept connections too, where a death before the request was read may be made good on a fresh one."""
    count = 0

    async def now_and_then(request: Received, peer: Peer) -> None:
        nonlocal count
        count += 1
        await (fails(CHAT) if count % 3 == 0 else echo)(request, peer)

    async with CHAT.backend(now_and_then) as first, CHAT.backend() as second:
        limits = {"first_byte": "100ms"}
        async with router_for(first, second, timeouts=limits, health={"break_after": 1000}) as router:
            await asyncio.gather(
                *(router.post(CHAT.path, CHAT.body(stream=False, user=f"call-{number}")) for number in range(60))
            )
            seen = Counter(request.body for request in first.received + second.received)
            assert len(seen) == 60
            assert set(seen.values()) == {1}


# --- the budget


async def _storm(router: Running, calls: int) -> list[Answer]:
    """So many calls that all go to the first backend, which is gone though the router does not know it yet."""
    down = router.app.fleet.backends()[0].health
    answers = []
    for number in range(calls):
        down.probed(Ready(), traffic_flows=False)  # as if it had just gone, after a probe that it answered
        answers.append(await router.post(CHAT.path, CHAT.body(stream=False, user=str(number)), INTERACTIVE))
    return answers


async def test_retries_are_kept_to_their_budget() -> None:
    async with CHAT.backend() as gone, CHAT.backend() as other:
        limits = {"share": 0.2, "per_second": 0}
        async with router_for(*two(CHAT, gone, other), retries=limits, health={"interval": "1h"}) as router:
            await gone.stop()
            answers = await _storm(router, 50)
            served = [answer for answer in answers if answer.status == 200]
            assert 5 <= len(served) <= 10
            assert len(other.received) == len(served)
            refused = next(answer for answer in answers if answer.status != 200)
            assert refused.status == 503
            assert refused.header("retry-after") is not None
            assert b"retries" in refused.body
            assert router.metric("twolane_retries_total") == len(served)
            assert router.metric("twolane_retries_denied_total") == 50 - len(served)


@pytest.mark.parametrize(("limits", "status"), [({"share": 0, "per_second": 0}, 503), ({}, 200)])
async def test_without_a_budget_nothing_is_sent_again_and_with_the_usual_one_a_burst_is_served(
    limits: dict[str, Any], status: int
) -> None:
    async with CHAT.backend() as gone, CHAT.backend() as other:
        async with router_for(*two(CHAT, gone, other), retries=limits, health={"interval": "1h"}) as router:
            await gone.stop()
            assert {answer.status for answer in await _storm(router, 20)} == {status}


async def test_a_refusal_that_another_backend_could_cure_passes_as_it_came_when_the_budget_is_spent() -> None:
    async def too_long(request: Received, peer: Peer) -> None:
        error = {"code": 400, "type": "exceed_context_size_error", "message": "too long"}
        await peer.json({"error": error}, "400 Bad Request")

    none = {"share": 0, "per_second": 0}
    async with CHAT.backend(too_long) as small, CHAT.backend() as large:
        async with router_for(
            (small, {"engine": "llamacpp", "context_tokens": 4096}),
            (large, {"engine": "llamacpp", "context_tokens": 32768, "lane": "throughput"}),
            retries=none,
        ) as router:
            answer = await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)
            assert answer.status == 400
            assert b"exceed_context_size_error" in answer.body
            assert large.received == []


# --- a backend that was taken out comes back by single trial calls


async def test_one_call_at_a_time_tries_a_backend_that_failed_and_the_herd_follows_only_its_success() -> None:
    ill = asyncio.Event()
    ill.set()
    hold = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        if ill.is_set():
            await says_500(CHAT)(request, peer)
        else:
            await hold.wait()
            await echo(request, peer)

    async with CHAT.backend(script) as backend:
        quick = {"break_after": 3, "retry_after": "150ms", "interval": "20ms"}
        async with router_for(backend, health=quick) as router:
            for _ in range(3):
                assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 500
            backend.received.clear()
            ill.clear()
            calls = [
                asyncio.get_running_loop().create_task(router.post(CHAT.path, CHAT.body(stream=False)))
                for _ in range(20)
            ]
            await eventually(lambda: len(backend.received) == 1)
            await eventually(lambda: len(router.app.line) == 19)
            for _ in range(10):  # probes succeed and change nothing
                await asyncio.sleep(0.02)
                assert len(backend.received) == 1
            hold.set()
            answers = await asyncio.gather(*calls)
            assert {answer.status for answer in answers} == {200}


async def test_counting_tokens_proves_nothing_about_an_engine_that_failed() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await (echo if request.target == "/tokenize" else says_500(CHAT))(request, peer)

    async with CHAT.backend(script) as backend:
        quick = {"break_after": 3, "retry_after": "20ms"}
        async with router_for((backend, {"engine": "vllm"}), health=quick) as router:
            for _ in range(3):
                await router.post("/tokenize", {"model": "m", "prompt": "x"})
                assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 500
            assert router.metric("twolane_backend_up") == 0
            await asyncio.sleep(0.03)
            assert (await router.post("/tokenize", {"model": "m", "prompt": "x"})).status == 200
            assert router.metric("twolane_backend_up") == 0


async def test_a_trial_that_fails_costs_one_call_and_the_next_waits_its_time() -> None:
    async with CHAT.backend(says_500(CHAT)) as ill, CHAT.backend() as well:
        quick = {"break_after": 2, "retry_after": "200ms", "interval": "20ms"}
        async with router_for(*two(CHAT, ill, well), health=quick) as router:
            statuses = Counter[int]()
            began_s = asyncio.get_running_loop().time()
            while (passed_s := asyncio.get_running_loop().time() - began_s) < 1.0:
                statuses[(await router.post(CHAT.path, CHAT.body(stream=False), INTERACTIVE)).status] += 1
            assert statuses[500] == len(ill.received)
            assert 2 < len(ill.received) <= 2 + passed_s / 0.2 + 1
            assert statuses[200] > len(ill.received)

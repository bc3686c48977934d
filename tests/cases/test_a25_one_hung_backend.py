"""A25: one backend hangs. It costs the calls that are on it, and nobody else."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.cases.apis import CHAT, Api, each_api
from tests.rawclient import Answer
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, Script, ScriptedBackend, eventually, nobody_accepts

INTERACTIVE = "X-Twolane-Class: interactive"
SOON_S = 1.0
"""For what must not wait for the hung one; that is silent for seconds."""


async def silent(request: Received, peer: Peer) -> None:
    await peer.until_closed()


HUNG_PROBES = {path: silent for path in ("/health", "/v1/models", "/metrics", "/props", "/api/version", "/api/tags")}


async def soon(work: Any) -> Answer:
    answer: Answer = await asyncio.wait_for(work, SOON_S)
    return answer


async def the_router_itself_answers(router: Running) -> None:
    for target in ("/health", "/ready", "/metrics", "/backends"):
        assert (await soon(router.admin("GET", target))).status == 200
    for target in ("/v1/models", "/api/tags", "/api/version"):
        assert (await soon(router.get(target))).status == 200


async def test_fifty_calls_at_once() -> None:
    async with CHAT.backend(silent) as hung, CHAT.backend() as healthy:
        limits = {"first_byte": "1500ms"}
        async with router_for(hung, healthy, policy="round_robin", timeouts=limits) as router:
            ended: list[Answer] = []

            async def call(number: int) -> None:
                ended.append(await router.post(CHAT.path, CHAT.body(stream=False, user=str(number))))

            calls = asyncio.gather(*(call(number) for number in range(50)))
            await eventually(lambda: len(hung.received) + len(healthy.received) == 50)
            held = len(hung.received)
            assert 5 <= held <= 45
            await eventually(lambda: len(ended) == 50 - held, within_s=SOON_S)
            await the_router_itself_answers(router)
            assert [answer.status for answer in ended] == [200] * (50 - held)
            await calls
            assert [answer.status for answer in ended[50 - held :]] == [504] * held
            await eventually(lambda: all(peer.closed_s is not None for peer in hung.peers))
            assert len(healthy.received) == 50 - held  # none was sent a second time
            answers = [await router.post(CHAT.path, CHAT.body(stream=False)) for _ in range(10)]
            assert {answer.header("x-twolane-backend") for answer in answers} == {"b1"}


def frozen(api: Api) -> Script:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head(content_type=api.content_type)
        await peer.chunk(api.token("a"))
        await peer.until_closed()

    return script


@each_api
async def test_a_stream_that_freezes_leaves_others_alone(api: Api) -> None:
    async with api.backend(frozen(api)) as hung, api.backend() as healthy:
        one_each = {**api.settings, "max_inflight": 1}
        async with router_for((hung, one_each), (healthy, {**one_each, "lane": "throughput"})) as router:
            client = await router.client()
            await client.post(api.path, api.body(stream=True), INTERACTIVE)
            await client.answer(head_only=True)
            assert len(hung.received) == 1
            for _ in range(5):
                answer = await soon(router.post(api.path, api.body(stream=False), INTERACTIVE))
                assert answer.header("x-twolane-backend") == "b1"
            client.close()


@each_api
async def test_a_stream_that_freezes_ends_at_the_idle_limit(api: Api) -> None:
    async with api.backend(frozen(api)) as hung, router_for((hung, api.settings), timeouts={"idle": "100ms"}) as router:
        answer = await router.post(api.path, api.body(stream=True))
        assert not answer.complete
        assert answer.body.startswith(api.token("a"))
        assert b"timeouts.idle" in answer.body
        await eventually(lambda: hung.peers[0].closed_s is not None)


async def test_one_that_accepts_no_connections_any_more_is_left_out() -> None:
    async with CHAT.backend() as hung, CHAT.backend() as healthy:
        async with router_for(hung, healthy, timeouts={"connect": "200ms"}) as router:
            await hung.stop()
            with nobody_accepts(hung.port):
                calls = (router.post(CHAT.path, CHAT.body(stream=False, user=str(number))) for number in range(20))
                answers = await asyncio.gather(*calls)
                assert {(answer.status, answer.header("x-twolane-backend")) for answer in answers} == {(200, "b1")}
                assert router.metric("twolane_retries_total") > 0
                assert router.metric("twolane_backend_up", backend="b0") == 0
                await soon(router.post(CHAT.path, CHAT.body(stream=False)))


async def test_one_that_reads_nothing_of_a_large_body_ends_at_the_first_byte_limit() -> None:
    gate = asyncio.Event()

    async def accepts_and_reads_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await gate.wait()
        writer.close()

    async with CHAT.backend() as hung:
        async with router_for((hung, {"models": ["m"]}), timeouts={"first_byte": "300ms"}) as router:
            await hung.stop()
            server = await asyncio.start_server(accepts_and_reads_nothing, "127.0.0.1", hung.port)
            body = CHAT.body(stream=False, padding="x" * 20_000_000)
            answer = await router.post(CHAT.path, body)
            assert answer.status == 504
            await eventually(lambda: router.idle)
            gate.set()
            server.close()


async def test_one_whose_probes_hang_as_well_is_taken_out_and_the_others_serve() -> None:
    frozen = asyncio.Event()

    async def health(request: Received, peer: Peer) -> None:
        if frozen.is_set():
            await peer.until_closed()
        else:
            await peer.json({"object": "list", "data": [{"id": "m"}]})

    probes = {"/v1/models": health}
    quick = {"interval": "50ms", "timeout": "100ms"}
    async with ScriptedBackend(silent, probes=probes) as hung, CHAT.backend() as healthy:
        async with router_for(hung, healthy, health=quick) as router:
            frozen.set()
            await eventually(lambda: router.metric("twolane_backend_up", backend="b0") == 0)
            await the_router_itself_answers(router)
            answers = [await soon(router.post(CHAT.path, CHAT.body(stream=False))) for _ in range(10)]
            assert {answer.header("x-twolane-backend") for answer in answers} == {"b1"}
            frozen.clear()
            await eventually(lambda: router.metric("twolane_backend_up", backend="b0") == 1)


async def test_one_that_hangs_when_the_router_starts_delays_it_no_more_than_a_moment() -> None:
    began_s = asyncio.get_running_loop().time()
    async with ScriptedBackend(silent, probes=HUNG_PROBES) as hung, CHAT.backend() as healthy:
        async with router_for((hung, {"engine": "auto"}), healthy) as router:
            assert asyncio.get_running_loop().time() - began_s < 5.0
            await the_router_itself_answers(router)
            answer = await soon(router.post(CHAT.path, CHAT.body(stream=False)))
            assert answer.header("x-twolane-backend") == "b1"

"""A real llama.cpp beside a real vLLM, on the same weights: what the router is for.

Run by `make check-vllm`. Both answer a greedy call with the same text, so a test can tell who served it from the
headers alone, and whether anything was lost on the way from the text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import anthropic
import openai
import pytest
from langchain_openai import ChatOpenAI

from bench.model_maker import ModelFiles
from bench.random_llama.recipe import follows_circle
from bench.servers.engines import LlamaCppServer, VllmServer, vllm_python
from bench.servers.router import RouterProcess
from tests.e2e.calls import CHAT, ENDLESS_TOKENS, QUESTION, WEATHER_TOOL, chat, gather_posts, get, post, running_streams
from tests.e2e.conftest import QUICK, Spawn, StartRouter
from tests.scripted import eventually

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(300)]

TTFT, BULK = {"x-twolane-class": "ttft"}, {"x-twolane-class": "throughput"}
LANES = {"desk": TTFT, "gpu": BULK}
ON_GPU = "chat-on-gpu"


@pytest.fixture(scope="session")
def gpu(model: ModelFiles, logs: Path) -> Iterator[VllmServer]:
    """vLLM (on the CPU), working on four calls at once."""
    if "TWOLANE_VLLM_PYTHON" not in os.environ and not vllm_python().exists():
        pytest.skip("no vLLM here; `make check-vllm` installs it")
    with VllmServer(model.hf, alias="org/random-tiny", max_seqs=4, ctx=8192, log=logs / "vllm.log") as server:
        yield server


@pytest.fixture(scope="session")
def fleet(busy_desk: LlamaCppServer, gpu: VllmServer, logs: Path) -> Iterator[RouterProcess]:
    settings = {
        # Engines and lanes are what the router finds out by itself.
        "backends": [{"name": "desk", "url": busy_desk.url}, {"name": "gpu", "url": gpu.url}],
        # On few cores it may be so slow that bulk calls spill over; what is asked of it alone has a name of its own.
        "models": {"chat": {"desk": busy_desk.name, "gpu": gpu.name}, ON_GPU: {"gpu": gpu.name}},
        **QUICK,
    }
    folder = logs / "mixed"
    folder.mkdir()
    with RouterProcess(settings, folder=folder) as router:
        router.process.wait_until(
            lambda: all(row["health"] == "up" for row in router.backends().values()), timeout_s=20, what="two backends"
        )
        yield router


def test_both_engines_are_recognised_with_lane_capacity_and_context(fleet: RouterProcess) -> None:
    rows = fleet.backends()
    assert (rows["desk"]["engine"], rows["desk"]["lane"], rows["desk"]["slots"]) == ("llamacpp", "latency", 2)
    assert (rows["gpu"]["engine"], rows["gpu"]["lane"]) == ("vllm", "throughput")
    assert rows["desk"]["context_tokens"] == rows["gpu"]["context_tokens"] == 8192
    assert rows["gpu"]["models"] == ["org/random-tiny"]
    assert rows["gpu"]["version"].startswith("0.32")


@pytest.mark.parametrize("lane", LANES)
async def test_both_lanes_give_the_same_greedy_text_under_one_name(
    fleet: RouterProcess, http: aiohttp.ClientSession, lane: str
) -> None:
    replies = {name: await post(http, fleet.url, chat(QUESTION, max_tokens=24), headers=LANES[name]) for name in LANES}
    assert replies[lane].lane == lane
    assert follows_circle(replies[lane].text)
    assert len(replies[lane].text.split()) == 24
    assert replies["desk"].text == replies["gpu"].text


async def test_models_are_listed_under_the_public_and_the_own_names(
    fleet: RouterProcess, http: aiohttp.ClientSession
) -> None:
    names = [model["id"] for model in (await get(http, fleet.url, "/v1/models")).json()["data"]]
    assert {"chat", "random-tiny", "org/random-tiny"} <= set(names)


async def test_the_queue_inside_vllm_is_seen(
    fleet: RouterProcess, gpu: VllmServer, http: aiohttp.ClientSession, spawn: Spawn
) -> None:
    long = chat(QUESTION, model=gpu.name, max_tokens=ENDLESS_TOKENS)
    directly = spawn(gather_posts(http, gpu.url, [long] * 6))

    def seen() -> bool:
        row = fleet.backends()["gpu"]  # at one moment: what a scrape said of others fades until the next one
        return (row["running"], row["waiting"], row["own"]) == (4, 2, 0) and bool(row["foreign"] > 4)

    await eventually(seen, within_s=20)
    directly.cancel()
    await eventually(lambda: fleet.backends()["gpu"]["running"] == 0, within_s=20)


async def test_a_flood_of_bulk_calls_leaves_who_reads_unharmed(
    fleet: RouterProcess, http: aiohttp.ClientSession, spawn: Spawn
) -> None:
    bulk = [chat(f"Row {number}", max_tokens=60) for number in range(16)]
    flood = spawn(gather_posts(http, fleet.url, bulk, headers=BULK))
    await eventually(lambda: fleet.backends()["gpu"]["own"] > 0)
    reader = await post(http, fleet.url, chat(QUESTION, stream=True), headers=TTFT)
    assert (reader.status, reader.lane) == (200, "desk")
    assert reader.queue_ms < 500
    replies = await flood
    assert {reply.status for reply in replies} == {200}
    assert all(follows_circle(reply.text) for reply in replies)
    assert sum(reply.lane == "gpu" for reply in replies) >= 12


@pytest.mark.parametrize("lane", LANES)
async def test_openai_streams_from_both(fleet: RouterProcess, lane: str) -> None:
    async with openai.AsyncOpenAI(base_url=f"{fleet.url}/v1", api_key="any", max_retries=0) as client:
        stream = await client.chat.completions.create(
            model="chat",
            messages=[{"role": "user", "content": QUESTION}],
            max_tokens=40,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
            extra_headers=LANES[lane],
        )
        assert stream.response.headers["x-twolane-backend"] == lane
        chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert len(text.split()) == 40
    assert follows_circle(text)
    assert chunks[-1].usage
    assert chunks[-1].usage.completion_tokens == 40


@pytest.mark.parametrize("lane", LANES)
async def test_anthropic_streams_from_both(fleet: RouterProcess, lane: str) -> None:
    async with (
        anthropic.AsyncAnthropic(base_url=fleet.url, api_key="any", max_retries=0) as client,
        client.messages.stream(
            model="chat", messages=[{"role": "user", "content": QUESTION}], max_tokens=30, extra_headers=LANES[lane]
        ) as stream,
    ):
        assert stream.response.headers["x-twolane-backend"] == lane
        text = "".join([piece async for piece in stream.text_stream])
        message = await stream.get_final_message()
    assert follows_circle(text)
    assert message.usage.output_tokens == 30


@pytest.mark.parametrize("lane", LANES)
def test_langchain_streams_from_both(fleet: RouterProcess, lane: str) -> None:
    model = ChatOpenAI(
        model="chat",
        base_url=f"{fleet.url}/v1",
        api_key="any",
        max_retries=0,
        temperature=0,
        default_headers=LANES[lane],
    )
    text = "".join(chunk.text for chunk in model.stream(QUESTION, max_tokens=20))
    assert len(text.split()) == 20
    assert follows_circle(text)


async def test_vllm_calls_a_tool_when_told_to(fleet: RouterProcess) -> None:
    async with openai.AsyncOpenAI(base_url=f"{fleet.url}/v1", api_key="any", max_retries=0) as client:
        raw = await client.chat.completions.with_raw_response.create(
            model=ON_GPU,
            messages=[{"role": "user", "content": QUESTION}],
            max_tokens=150,
            temperature=0,
            tools=[WEATHER_TOOL],
            tool_choice={"type": "function", "function": {"name": "get_weather"}},
            extra_headers=BULK,
        )
    assert raw.headers["x-twolane-backend"] == "gpu"
    (call,) = raw.parse().choices[0].message.tool_calls or []
    assert call.type == "function"
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city": "Paris"}')


async def test_a_follow_up_goes_to_the_server_that_holds_the_response(fleet: RouterProcess) -> None:
    async with openai.AsyncOpenAI(base_url=f"{fleet.url}/v1", api_key="any", max_retries=0) as client:
        first = await client.responses.create(
            model=ON_GPU, input=QUESTION, max_output_tokens=12, temperature=0, extra_headers=BULK
        )
        assert follows_circle(first.output_text)
        again = await client.responses.retrieve(first.id)
        assert again.output_text == first.output_text
        # The class says the other lane; the id knows better.
        raw = await client.responses.with_raw_response.create(
            model="chat", input="and now?", max_output_tokens=8, previous_response_id=first.id, extra_headers=TTFT
        )
        assert raw.headers["x-twolane-backend"] == "gpu"
        assert follows_circle(raw.parse().output_text)


async def test_hanging_up_frees_both(
    fleet: RouterProcess, desk: LlamaCppServer, gpu: VllmServer, http: aiohttp.ClientSession
) -> None:
    async with (
        running_streams(http, fleet.url, 1, headers=TTFT) as (first,),
        running_streams(http, fleet.url, 1, headers=BULK) as (second,),
    ):
        assert [first.headers["x-twolane-backend"], second.headers["x-twolane-backend"]] == ["desk", "gpu"]
        assert desk.busy_slots() == 1
        await eventually(lambda: gpu.metric("num_requests_running") == 1)
    await eventually(lambda: desk.busy_slots() == 0)
    await eventually(lambda: gpu.metric("num_requests_running") == 0)
    assert [row["own"] for row in fleet.backends().values()] == [0, 0]


async def test_an_error_of_vllm_reaches_the_client_as_vllm_wrote_it(
    fleet: RouterProcess, gpu: VllmServer, http: aiohttp.ClientSession
) -> None:
    wrong = chat(QUESTION, model=gpu.name, n=0)
    direct = await post(http, gpu.url, wrong)
    routed = await post(http, fleet.url, wrong)
    assert (routed.status, routed.json()) == (direct.status, direct.json())
    assert routed.status == 400


async def test_an_aliased_call_names_the_model_as_each_server_does(
    fleet: RouterProcess, gpu: VllmServer, http: aiohttp.ClientSession
) -> None:
    # vLLM refuses any other name with 404, so a wrong splice would show.
    reply = await post(http, fleet.url, chat(QUESTION), headers=BULK, path=CHAT)
    assert (reply.status, reply.lane) == (200, "gpu")
    assert reply.json()["model"] == gpu.name


async def test_bulk_spills_over_when_vllm_is_full(
    desk: LlamaCppServer, gpu: VllmServer, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    settings = {
        "backends": [
            {"name": "desk", "url": desk.url},
            {"name": "gpu", "url": gpu.url, "max_inflight": 2},
        ],
        "models": {"chat": {"desk": desk.name, "gpu": gpu.name}},
        **QUICK,
    }
    router = start_router(settings)
    router.process.wait_until(
        lambda: all(row["health"] == "up" for row in router.backends().values()), timeout_s=20, what="two backends"
    )
    async with running_streams(http, router.url, 3, headers=BULK) as streams:
        assert [stream.headers["x-twolane-backend"] for stream in streams] == ["gpu", "gpu", "desk"]

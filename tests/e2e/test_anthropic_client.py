"""The `anthropic` package through the router, on real llama.cpp."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anthropic
import pytest

from bench.random_llama.recipe import follows_circle
from bench.servers.engines import LlamaCppServer
from bench.servers.router import RouterProcess
from tests.e2e.calls import ENDLESS_TOKENS, WEATHER_PARAMETERS
from tests.scripted import eventually

pytestmark = pytest.mark.llamacpp

HELLO: list[anthropic.types.MessageParam] = [{"role": "user", "content": "Say hello"}]
TOOL: anthropic.types.ToolParam = {
    "name": "get_weather",
    "description": "Weather of a city",
    "input_schema": WEATHER_PARAMETERS,
}


@pytest.fixture
async def client(two_lanes: RouterProcess) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=two_lanes.url, api_key="any", max_retries=0) as client:
        yield client


def said(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


async def test_a_message_is_answered(client: anthropic.AsyncAnthropic) -> None:
    message = await client.messages.create(model="chat", messages=HELLO, max_tokens=16)
    assert follows_circle(said(message))
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 16


async def test_a_streamed_message_arrives_token_by_token(client: anthropic.AsyncAnthropic) -> None:
    async with client.messages.stream(model="chat", messages=HELLO, max_tokens=40) as stream:
        pieces = [text async for text in stream.text_stream]
        message = await stream.get_final_message()
    assert len(pieces) == 40
    assert follows_circle("".join(pieces))
    assert said(message) == "".join(pieces)
    assert message.usage.output_tokens == 40


async def test_content_in_blocks_is_read_like_plain_text(client: anthropic.AsyncAnthropic) -> None:
    blocks: list[anthropic.types.MessageParam] = [
        {"role": "user", "content": [{"type": "text", "text": "Say"}, {"type": "text", "text": " hello"}]}
    ]
    message = await client.messages.create(model="chat", system="Be brief", messages=blocks, max_tokens=8)
    assert follows_circle(said(message))


async def test_tokens_are_counted_without_a_slot(client: anthropic.AsyncAnthropic) -> None:
    short = await client.messages.count_tokens(model="chat", messages=HELLO)
    longer: list[anthropic.types.MessageParam] = [{"role": "user", "content": "Say hello to the river"}]
    long = await client.messages.count_tokens(model="chat", messages=longer)
    assert 0 < short.input_tokens < long.input_tokens


@pytest.mark.parametrize("stream", [False, True])
async def test_a_forced_tool_is_used(client: anthropic.AsyncAnthropic, stream: bool) -> None:
    if stream:
        async with client.messages.stream(
            model="caller", messages=HELLO, max_tokens=100, tools=[TOOL], tool_choice={"type": "any"}
        ) as events:
            message: anthropic.types.Message = await events.get_final_message()
    else:
        message = await client.messages.create(
            model="caller", messages=HELLO, max_tokens=100, tools=[TOOL], tool_choice={"type": "any"}
        )
    (block,) = [block for block in message.content if block.type == "tool_use"]
    assert block.name == "get_weather"
    assert block.input in ({"city": "Paris"}, {"city": "Rome"})
    assert message.stop_reason == "tool_use"


async def test_the_class_header_chooses_the_lane(client: anthropic.AsyncAnthropic) -> None:
    for call_class, lane in (("ttft", "desk"), ("throughput", "rack")):
        raw = await client.messages.with_raw_response.create(
            model="chat", messages=HELLO, max_tokens=4, extra_headers={"x-twolane-class": call_class}
        )
        assert raw.headers["x-twolane-backend"] == lane


async def test_an_unknown_model_is_refused_in_the_shape_of_this_api(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as refused:
        await client.messages.create(model="claude-nobody", messages=HELLO, max_tokens=4)
    assert isinstance(refused.value.body, dict)
    assert refused.value.body["type"] == "error"
    assert refused.value.body["error"]["type"] == "not_found_error"
    assert "random-tiny" in refused.value.body["error"]["message"]


async def test_a_prompt_beyond_the_context_gets_the_servers_own_error(client: anthropic.AsyncAnthropic) -> None:
    too_long: list[anthropic.types.MessageParam] = [{"role": "user", "content": "x " * 9000}]
    with pytest.raises(anthropic.BadRequestError, match="context"):
        await client.messages.create(model="chat", messages=too_long, max_tokens=4)


async def test_a_client_that_hangs_up_frees_the_slot_at_once(
    client: anthropic.AsyncAnthropic, two_lanes: RouterProcess, desk: LlamaCppServer
) -> None:
    async with client.messages.stream(
        model="chat", messages=HELLO, max_tokens=ENDLESS_TOKENS, extra_headers={"x-twolane-class": "ttft"}
    ) as stream:
        async for _ in stream.text_stream:
            break
        assert desk.busy_slots() == 1
    await eventually(lambda: desk.busy_slots() == 0 and two_lanes.backends()["desk"]["own"] == 0, within_s=1.5)

"""The `openai` package through the router, on real llama.cpp."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam
from openai.types.shared_params import ResponseFormatJSONSchema

from bench.random_llama.recipe import follows_circle
from bench.servers.engines import LlamaCppServer
from bench.servers.router import RouterProcess
from tests.e2e.calls import ENDLESS_TOKENS, QUESTION, WEATHER_PARAMETERS, WEATHER_TOOL
from tests.scripted import eventually

pytestmark = pytest.mark.llamacpp

ASK: list[ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]


@pytest.fixture
async def client(two_lanes: RouterProcess) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{two_lanes.url}/v1", api_key="any", max_retries=0) as client:
        yield client


async def test_a_chat_answer_is_what_the_server_says_when_asked_directly(
    client: openai.AsyncOpenAI, rack: LlamaCppServer
) -> None:
    async with openai.AsyncOpenAI(base_url=f"{rack.url}/v1", api_key="any", max_retries=0) as direct:
        expected = await direct.chat.completions.create(model=rack.name, messages=ASK, max_tokens=20, temperature=0)
    answer = await client.chat.completions.create(model="chat", messages=ASK, max_tokens=20, temperature=0)
    assert answer.choices[0].message.content == expected.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage
    assert answer.usage.completion_tokens == 20


async def test_a_streamed_chat_arrives_token_by_token_and_in_order(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(model="chat", messages=ASK, max_tokens=64, temperature=0, stream=True)
    chunks = [chunk async for chunk in stream]
    words = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(words) == 64
    assert follows_circle("".join(words))
    assert chunks[-1].choices[0].finish_reason == "length"


async def test_usage_comes_in_a_stream_when_it_was_asked_for_and_only_then(client: openai.AsyncOpenAI) -> None:
    asked = await client.chat.completions.create(
        model="chat", messages=ASK, max_tokens=5, stream=True, stream_options={"include_usage": True}
    )
    usages = [chunk.usage for chunk in [chunk async for chunk in asked] if chunk.usage]
    assert [usage.completion_tokens for usage in usages] == [5]
    unasked = await client.chat.completions.create(model="chat", messages=ASK, max_tokens=5, stream=True)
    assert not [chunk async for chunk in unasked if chunk.usage]


async def test_the_decision_is_told_in_the_headers(client: openai.AsyncOpenAI) -> None:
    raw = await client.chat.completions.with_raw_response.create(
        model="chat", messages=ASK, max_tokens=4, extra_headers={"x-twolane-class": "throughput"}
    )
    assert raw.headers["x-twolane-class"] == "throughput"
    assert raw.headers["x-twolane-backend"] == "rack"
    assert raw.headers["x-twolane-reason"]
    assert raw.headers["x-request-id"]
    for entry in ("classify;dur=", "queue;dur=", "upstream;dur="):
        assert entry in raw.headers["server-timing"]


async def test_a_forced_tool_call_comes_back_whole(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(
        model="caller", messages=ASK, max_tokens=100, tools=[WEATHER_TOOL], tool_choice="required"
    )
    (call,) = answer.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert call.function.arguments in ('{"city":"Paris"}', '{"city":"Rome"}')
    assert answer.choices[0].finish_reason == "tool_calls"


async def test_a_forced_tool_call_can_be_streamed(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="caller", messages=ASK, max_tokens=100, tools=[WEATHER_TOOL], tool_choice="required", stream=True
    )
    name, arguments = "", ""
    async for chunk in stream:
        for delta in chunk.choices[0].delta.tool_calls or []:
            assert delta.function
            name += delta.function.name or ""
            arguments += delta.function.arguments or ""
    assert name == "get_weather"
    assert arguments in ('{"city":"Paris"}', '{"city":"Rome"}')


async def test_a_json_schema_is_honoured(client: openai.AsyncOpenAI) -> None:
    schema: ResponseFormatJSONSchema = {
        "type": "json_schema",
        "json_schema": {"name": "weather", "schema": WEATHER_PARAMETERS, "strict": True},
    }
    answer = await client.chat.completions.create(
        model="chat", messages=ASK, max_tokens=60, temperature=0, response_format=schema
    )
    assert answer.choices[0].message.content in ('{"city":"Paris"}', '{"city":"Rome"}')


async def test_a_client_that_hangs_up_frees_the_slot_at_once(
    client: openai.AsyncOpenAI, two_lanes: RouterProcess, desk: LlamaCppServer
) -> None:
    stream = await client.chat.completions.create(
        model="chat",
        messages=ASK,
        max_tokens=ENDLESS_TOKENS,
        stream=True,
        extra_headers={"x-twolane-class": "ttft"},
    )
    assert stream.response.headers["x-twolane-backend"] == "desk"
    received = 0
    async for _ in stream:
        received += 1
        if received == 5:
            break
    assert desk.busy_slots() == 1
    assert two_lanes.backends()["desk"]["own"] == 1
    left_s = time.monotonic()
    await stream.close()
    await eventually(lambda: desk.busy_slots() == 0 and two_lanes.backends()["desk"]["own"] == 0)
    assert time.monotonic() - left_s < 1.5, "the generation ran on after its client had left"


async def test_completions_are_served_whole_and_streamed(client: openai.AsyncOpenAI) -> None:
    answer = await client.completions.create(model="chat", prompt="the river was", max_tokens=12, temperature=0)
    assert follows_circle("was" + answer.choices[0].text)
    stream = await client.completions.create(
        model="chat", prompt="the river was", max_tokens=12, temperature=0, stream=True
    )
    streamed = "".join([chunk.choices[0].text async for chunk in stream])
    assert streamed == answer.choices[0].text


async def test_several_prompts_in_one_completion_call_are_answered_each(client: openai.AsyncOpenAI) -> None:
    answer = await client.completions.create(
        model="chat", prompt=["go to the river", "under the old bridge"], max_tokens=6, temperature=0
    )
    assert sorted(choice.index for choice in answer.choices) == [0, 1]
    assert all(follows_circle(choice.text) for choice in answer.choices)


async def test_embeddings_go_to_the_server_that_makes_them(client: openai.AsyncOpenAI) -> None:
    answer = await client.embeddings.create(model="embedder", input=["one river", "two rivers"])
    assert len(answer.data) == 2
    assert len(answer.data[0].embedding) == 256


async def test_responses_are_served_whole_and_streamed(client: openai.AsyncOpenAI) -> None:
    answer = await client.responses.create(model="chat", input=QUESTION, max_output_tokens=16, temperature=0)
    assert follows_circle(answer.output_text)
    events = []
    async for event in await client.responses.create(
        model="chat", input=QUESTION, max_output_tokens=16, temperature=0, stream=True
    ):
        events.append(event)
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == answer.output_text


async def test_a_follow_up_that_the_server_cannot_do_gets_the_servers_own_answer(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="chat", input=QUESTION, max_output_tokens=8)
    with pytest.raises(openai.BadRequestError, match="does not support"):
        await client.responses.create(
            model="chat", input="and now?", max_output_tokens=8, previous_response_id=first.id
        )
    with pytest.raises(openai.NotFoundError, match="File Not Found"):
        await client.responses.retrieve(first.id)


async def test_a_response_that_nobody_made_is_not_found(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="resp_nobody"):
        await client.responses.retrieve("resp_nobody")


async def test_models_are_merged_with_aliases_and_in_a_stable_order(client: openai.AsyncOpenAI) -> None:
    lists = [[model.id async for model in client.models.list()] for _ in range(3)]
    assert {"chat", "random-tiny", "caller", "embedder"} <= set(lists[0])
    assert len(lists[0]) == len(set(lists[0]))
    assert lists[0] == lists[1] == lists[2]


async def test_an_unknown_model_is_refused_with_the_known_ones(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        await client.chat.completions.create(model="gpt-nobody", messages=ASK)
    assert refused.value.code == "model_not_found"
    assert refused.value.param == "model"
    assert "random-tiny" in refused.value.message


async def test_a_prompt_beyond_the_context_gets_the_servers_own_error(client: openai.AsyncOpenAI) -> None:
    too_long: list[ChatCompletionMessageParam] = [{"role": "user", "content": "x " * 9000}]
    with pytest.raises(openai.BadRequestError) as refused:
        await client.chat.completions.create(model="chat", messages=too_long, max_tokens=4)
    assert refused.value.type == "exceed_context_size_error"


async def test_what_only_the_server_can_judge_gets_the_servers_own_error(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        await client.chat.completions.create(
            model="chat", messages=ASK, max_tokens=4, extra_body={"grammar": "root ::= nowhere"}
        )
    assert 400 <= refused.value.status_code < 500
    assert "x-twolane-backend" in refused.value.response.headers

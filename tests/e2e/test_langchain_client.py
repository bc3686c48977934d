"""`langchain-openai` through the router, on real llama.cpp."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

from bench.random_llama.recipe import follows_circle
from bench.servers.router import RouterProcess
from tests.e2e.calls import QUESTION, WEATHER_TOOL

pytestmark = pytest.mark.llamacpp


def chat_model(router: RouterProcess, model: str = "chat", **more: object) -> ChatOpenAI:
    options: dict[str, object] = {"max_tokens": 20, "temperature": 0, "max_retries": 0, **more}
    return ChatOpenAI(model=model, base_url=f"{router.url}/v1", api_key="any", **options)


def test_invoke_answers(two_lanes: RouterProcess) -> None:
    answer = chat_model(two_lanes).invoke(QUESTION)
    assert follows_circle(answer.text)
    assert answer.response_metadata["finish_reason"] == "length"


def test_stream_yields_what_invoke_returns(two_lanes: RouterProcess) -> None:
    model = chat_model(two_lanes)
    pieces = [chunk.text for chunk in model.stream(QUESTION) if chunk.text]
    assert len(pieces) == 20
    assert "".join(pieces) == model.invoke(QUESTION).text


def test_a_tool_is_called_and_its_result_is_answered(two_lanes: RouterProcess) -> None:
    question = HumanMessage("Weather?")
    asking = chat_model(two_lanes, "caller", max_tokens=100).bind_tools([dict(WEATHER_TOOL)], tool_choice="required")
    call = asking.invoke([question])
    assert isinstance(call, AIMessage)
    assert call.tool_calls[0]["name"] == "get_weather"
    assert call.tool_calls[0]["args"]["city"] in ("Paris", "Rome")
    result = ToolMessage("18 degrees", tool_call_id=call.tool_calls[0]["id"])
    answer = chat_model(two_lanes).invoke([question, call, result])
    assert follows_circle(answer.text)


def test_a_batch_is_answered_in_its_own_order(two_lanes: RouterProcess) -> None:
    # Each with another first answer word, and each of those by a wide margin.
    words = ("found", "cause", "gray", "child", "feather", "just", "join", "king")
    prompts = [f"Say {word}" for word in words]
    model = chat_model(two_lanes, default_headers={"x-twolane-class": "batch"})
    expected = [model.invoke(prompt).text for prompt in prompts]
    assert [answer.text for answer in model.batch(list(prompts))] == expected


def test_calls_at_once_are_spread_over_both_lanes(two_lanes: RouterProcess) -> None:
    model = chat_model(two_lanes, max_tokens=300, include_response_headers=True)
    answers = model.batch([f"Step {number}" for number in range(6)])
    assert all(follows_circle(answer.text) for answer in answers)
    served_by = {answer.response_metadata["headers"]["x-twolane-backend"] for answer in answers}
    assert served_by == {"desk", "rack"}

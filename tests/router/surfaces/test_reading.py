"""Features of chats: every shape of content, and what counts as what."""

from __future__ import annotations

import pytest

from classifiers.estimate import estimate_tokens
from tests.router.surfaces.streams import chat, read

TEXT = "How long does a swallow take to cross the Channel with a coconut?"
BASE64 = "data:image/png;base64," + "iVBORw0KGgo" * 20_000
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome", "unit": "C"}'}}


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def parts(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


def test_a_plain_chat_is_read() -> None:
    features = chat(
        {"role": "system", "content": "Be brief."}, user("hi"), {"role": "assistant", "content": "yes?"}, user(TEXT)
    )
    assert features.surface == "openai_chat"
    assert features.model == "m"
    assert (features.turns, features.last_role, features.stream) == (4, "user", False)
    assert features.system_tokens == estimate_tokens("Be brief.")
    assert features.last_tokens == estimate_tokens(TEXT)
    assert features.last_tokens < features.prompt_tokens < features.last_tokens + 30


def test_content_counts_the_same_as_a_string_and_as_parts() -> None:
    assert chat(user(TEXT)).prompt_tokens == chat(user(parts(TEXT))).prompt_tokens


@pytest.mark.parametrize("message", [user(None), {"role": "user"}, user([]), user(""), {}])
def test_a_message_may_be_without_content(message: dict[str, object]) -> None:
    assert chat(message).last_tokens == 0


def test_the_shapes_of_the_field_are_read_together() -> None:
    features = chat(
        {"role": "system", "content": parts("s")},
        user([*parts("hi"), {"type": "image_url", "image_url": {"url": BASE64}}]),
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "..."},
        {"role": "user"},
    )
    assert (features.turns, features.media, features.last_role, features.tool_results) == (5, 1, "user", 1)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": BASE64}},
        {"type": "input_audio", "input_audio": {"data": BASE64, "format": "wav"}},
        {"type": "file", "file": {"file_data": BASE64}},
        {"type": "video_url", "video_url": {"url": BASE64}},
        {"type": "image", "source": {"type": "base64", "data": BASE64}},
    ],
)
def test_what_is_encoded_is_counted_as_media_and_not_as_text(part: dict[str, object]) -> None:
    features = chat(user([*parts(TEXT), part]))
    assert features.media == 1
    assert features.prompt_tokens == chat(user(TEXT)).prompt_tokens


def test_parts_of_an_unknown_type_count_as_far_as_they_hold_text() -> None:
    unknown = {"type": "hologram", "text": TEXT, "blob": BASE64}
    assert chat(user([unknown, 5, None, {"type": {"odd": 1}}])).last_tokens == estimate_tokens(TEXT)


def test_arguments_of_tool_calls_count() -> None:
    with_call = chat(user(TEXT), {"role": "assistant", "content": None, "tool_calls": [CALL]}, user("go on"))
    without = chat(user(TEXT), {"role": "assistant", "content": None}, user("go on"))
    assert with_call.prompt_tokens >= without.prompt_tokens + 10


def test_odd_tool_calls_are_passed_over() -> None:
    for calls in ("x", [None], [{"function": "f"}], [{"function": {"arguments": 5}}], {"a": 1}):
        chat({"role": "assistant", "tool_calls": calls, "function_call": "x"}, user("a"))


def test_definitions_of_tools_count() -> None:
    tool = {"type": "function", "function": {"name": "weather", "description": TEXT, "parameters": {"type": "object"}}}
    features = chat(user("hi"), tools=[tool, tool])
    assert features.tools == 2
    assert features.prompt_tokens > 2 * estimate_tokens(TEXT)
    assert features.last_tokens == estimate_tokens("hi")


def test_reasoning_that_is_sent_back_counts() -> None:
    answer = {"role": "assistant", "content": "yes", "reasoning_content": TEXT}
    assert chat(answer, user("a")).prompt_tokens > estimate_tokens(TEXT)


def test_only_results_that_the_model_has_not_answered_yet_make_a_hop() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "21"}
    asked = {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]}
    assert chat(user("a"), asked, result, result).tool_results == 2
    assert chat(user("a"), asked, result, {"role": "assistant", "content": "21 degrees"}, user("b")).tool_results == 0


def test_the_limit_on_output_has_two_names() -> None:
    assert chat(user("a"), max_tokens=5).max_tokens == 5
    assert chat(user("a"), max_completion_tokens=7, max_tokens=5).max_tokens == 7
    assert chat(user("a")).max_tokens is None
    assert chat(user("a"), max_tokens=-1).max_tokens is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ""),
        ({"response_format": {"type": "text"}}, ""),
        ({"response_format": {"type": "json_object"}}, "json_object"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "json_schema"),
        ({"guided_json": {"type": "object"}}, "json_schema"),
        ({"grammar": "root ::= [0-9]"}, "grammar"),
        ({"grammar": ""}, ""),
    ],
)
def test_the_form_of_the_answer_is_read(fields: dict[str, object], expected: str) -> None:
    assert chat(user("a"), **fields).response_format == expected


def test_hints_in_the_body_are_read() -> None:
    features = chat(
        user("a"), stream=True, n=3, service_tier="flex", priority=0, prompt_cache_key="k", previous_response_id="r"
    )
    assert (features.stream, features.choices, features.service_tier, features.priority) == (True, 3, "flex", 0)
    assert (features.prompt_cache_key, features.previous_response_id) == ("k", "r")


def test_a_priority_that_is_no_whole_number_is_none() -> None:
    assert chat(user("a"), priority=True).priority is None
    assert chat(user("a"), priority="1").priority is None


def test_a_model_may_be_missing() -> None:
    assert read("/v1/chat/completions", {"messages": [user("a")]}).model is None
    assert read("/v1/chat/completions", {"model": "", "messages": [user("a")]}).model is None


def test_plain_and_other_texts_are_counted_apart() -> None:
    mixed = chat({"role": "system", "content": TEXT}, user(TEXT), user("Zażółć gęślą jaźń"), user("a"))
    assert mixed.prompt_tokens > estimate_tokens(TEXT) * 2

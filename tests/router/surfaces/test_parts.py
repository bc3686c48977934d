"""Messages that are made of parts are read in the order in which they were written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from classifiers.api import Features
from classifiers.blocks import common
from router.surfaces.parts import MOST_MESSAGES, MOST_PARTS
from tests.router.surfaces.streams import read

CHAT = "/v1/chat/completions"
LINES = st.lists(
    st.sampled_from(
        ["Summarise the text in one word.", "You are a pirate.", "what for?", "Ann: 7", "- a", "", "no. 12 é", "}"]
    ),
    min_size=1,
    max_size=8,
)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def nested(said: str) -> list[Any]:
    return [text(said)]


def result(said: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t1", "content": [text(line) for line in said.split("\n")]}


def asked(system: object, content: object, path: str = CHAT) -> Features:
    user = {"role": "user", "content": content}
    if path == CHAT:
        return read(path, {"model": "m", "messages": [{"role": "system", "content": system}, user]})
    return read(path, {"model": "m", "system": system, "messages": [user]})


def split(lines: list[str], places: set[int], part: Any = text) -> list[Any]:
    """In parts that end before these lines."""
    found: list[list[str]] = [[]]
    for number, line in enumerate(lines):
        if number in places and found[-1]:
            found.append([])
        found[-1].append(line)
    return [part("\n".join(each)) for each in found]


@given(
    LINES,
    LINES,
    st.sets(st.integers(0, 8)),
    st.sampled_from([text, str, nested]),
    st.sampled_from([CHAT, "/v1/messages"]),
)
def test_a_text_is_the_same_whole_and_in_parts(
    system: list[str], said: list[str], places: set[int], part: Any, path: str
) -> None:
    assume(any(said) and any(system))
    whole = asked("\n".join(system), "\n".join(said), path)
    parts = asked(split(system, places), split(said, places, part), path)
    assert parts.opening_key == whole.opening_key
    assert parts.looked_at() == whole.looked_at()
    assert parts.recognised_by() == whole.recognised_by()
    assert parts.blocks() == whole.blocks()
    assert (parts.turns, parts.last_role) == (whole.turns, whole.last_role)
    assert abs(parts.prompt_tokens - whole.prompt_tokens) <= len(said) + len(system)


def test_what_stands_in_parts_of_parts_keeps_its_order() -> None:
    flat = asked("s", [text("one"), text("two"), text("three"), text("four")])
    deep = asked("s", [text("one"), [[text("two"), "three"], [{"type": "x", "content": [text("four")]}]]])
    assert deep.recognised_by() == flat.recognised_by()
    assert deep.blocks() == flat.blocks()


def test_results_of_tools_keep_the_order_of_their_lines() -> None:
    one = asked("s", [result("a\nb"), result("c"), text("Go on?")], "/v1/messages")
    other = asked("s", "a\nb\nc\nGo on?", "/v1/messages")
    assert one.tool_results == 2
    assert one.looked_at() == other.looked_at()


@pytest.mark.parametrize("path", [CHAT, "/v1/messages"])
def test_an_instruction_before_a_document_opens_the_message(path: str) -> None:
    document = "The committee met on Tuesday. " * 80
    order = "Summarise the following article."
    first = asked("s", [text(order), text(document)], path).looked_at()
    last = asked("s", [text(document), text(order)], path).looked_at()
    assert first is not None
    assert last is not None
    assert (first.text.opens_task, last.text.opens_task) == (True, False)


def test_screenshots_are_media_and_no_two_are_taken_for_one() -> None:
    def shot(data: str) -> Features:
        image = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{data * 1000}"}
        output = {"type": "computer_call_output", "call_id": "c1", "output": image}
        return read("/v1/responses", {"model": "m", "input": [{"role": "user", "content": "Click OK."}, output]})

    assert (shot("A").media, shot("A").blocks().whole) == (1, False)


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        ({"type": "text", "data": "word " * 1000}, True),
        ({"type": "content", "content": "word " * 1000}, True),
        ({"type": "content", "content": [{"type": "text", "text": "word " * 1000}]}, True),
        (
            {"type": "content", "content": [{"type": "image", "source": {"type": "base64", "data": "word" * 1000}}]},
            False,
        ),
        ({"type": "base64", "data": "word" * 1000}, False),
        ({"type": "url", "url": "word" * 1000}, False),
        ({"type": ["content"], "content": "word " * 1000}, False),
        ("word " * 1000, False),
    ],
)
def test_the_text_of_a_document_counts_and_what_is_encoded_does_not(source: object, counts: bool) -> None:
    document = {"type": "document", "title": "d", "source": source}
    features = asked("s", [document, text("Who?")], "/v1/messages")
    assert (features.last_tokens > 900) is counts
    assert features.media >= 1


def conversation(turns: int, text: str = "") -> list[dict[str, Any]]:
    return [
        {"role": ("user", "assistant")[number % 2], "content": text or f"This is turn {number} of a conversation."}
        for number in range(turns)
    ]


@pytest.mark.parametrize("turns", [MOST_MESSAGES + 1, 20_000, 100_001])
@pytest.mark.parametrize(
    ("path", "field"), [(CHAT, "messages"), ("/v1/messages", "messages"), ("/v1/responses", "input")]
)
def test_of_very_many_messages_the_rest_is_counted_by_its_size(path: str, field: str, turns: int) -> None:
    messages = conversation(turns, "The train leaves at seven in the morning, from the same place.")
    features = read(path, {"model": "m", field: messages})
    each = read(path, {"model": "m", field: messages[:2]})
    shorter = read(path, {"model": "m", field: messages[:MOST_MESSAGES]})
    assert features.turns == turns
    assert features.last_tokens == each.last_tokens
    assert features.last_role == messages[-1]["role"]
    assert features.opening_key == each.opening_key
    assert features.prompt_tokens == pytest.approx(shorter.prompt_tokens * turns / MOST_MESSAGES, rel=0.15)


def test_a_conversation_of_any_real_length_is_read_whole() -> None:
    one, other = conversation(MOST_MESSAGES), conversation(MOST_MESSAGES)
    other[MOST_MESSAGES // 2]["content"] = "Something else."
    mine, yours = (read(CHAT, {"model": "m", "messages": messages}).blocks() for messages in (one, other))
    assert mine.whole
    assert 0 < common(mine.hashes, yours.hashes) < len(mine.hashes)


def test_very_many_messages_are_compared_as_far_as_they_were_read() -> None:
    one, other = conversation(MOST_MESSAGES + 1), conversation(MOST_MESSAGES + 1)
    other[-3]["content"] = "Something else."
    mine, yours = (read(CHAT, {"model": "m", "messages": messages}) for messages in (one, other))
    assert not mine.blocks().whole
    assert mine.blocks().hashes == yours.blocks().hashes
    assert mine.blocks().chars == pytest.approx(sum(len(message["content"]) for message in one), abs=9)
    assert mine.recognised_by() != yours.recognised_by()


def test_of_very_many_parts_the_first_and_the_newest_message_are_read() -> None:
    page = [text("The train leaves at seven in the morning.")] * (2 * MOST_PARTS)
    user, answer = {"role": "user", "content": page}, {"role": "assistant", "content": page}
    features = read(CHAT, {"model": "m", "messages": [user, answer, {"role": "user", "content": [text("And now?")]}]})
    whole = read(CHAT, {"model": "m", "messages": [{"role": "user", "content": page[:1024]}]})
    assert features.last_tokens == asked("s", "And now?").last_tokens
    assert features.opening_key
    assert not features.blocks().whole
    assert features.prompt_tokens == pytest.approx(whole.prompt_tokens * 4 * MOST_PARTS / 1024, rel=0.15)


@pytest.mark.parametrize("row", ["The train leaves at seven in the morning.", list(range(10))])
def test_of_very_many_inputs_the_rest_is_counted_by_its_size(row: object) -> None:
    few, many = (read("/v1/embeddings", {"model": "m", "input": [row] * count}) for count in (1_000, 50_000))
    assert many.prompts == 50_000
    assert many.prompt_tokens == pytest.approx(50 * few.prompt_tokens, rel=0.15)

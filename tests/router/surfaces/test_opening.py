"""What the turns of a conversation have in common, in each API."""

from __future__ import annotations

from typing import Any

import pytest

from router.surfaces.opening import opening_key
from tests.router.surfaces.streams import read

SYSTEM = "You are a careful assistant. " * 100
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
FIRST = "Please look at the file that I sent."


def chat(system: object, *texts: object, **more: Any) -> dict[str, Any]:
    turns = [{"role": "user" if number % 2 == 0 else "assistant", "content": text} for number, text in enumerate(texts)]
    return {"model": "m", "messages": [{"role": "system", "content": system}, *turns], **more}


def key(path: str, body: dict[str, Any]) -> str:
    return read(path, body).opening_key


CHAT = "/v1/chat/completions"


def test_later_turns_change_nothing() -> None:
    first = key(CHAT, chat(SYSTEM, FIRST, tools=TOOLS))
    assert first
    assert first == key(CHAT, chat(SYSTEM, FIRST, "I see.", "And now?", tools=TOOLS))
    assert first == key(CHAT, chat(SYSTEM, FIRST, "I see.", "And now?", "Well.", "x" * 5000, tools=TOOLS))


def test_whatever_stands_first_makes_another_conversation() -> None:
    keys = [
        key(CHAT, chat(SYSTEM, FIRST)),
        key(CHAT, chat(SYSTEM, FIRST, tools=TOOLS)),
        key(CHAT, chat(SYSTEM + "!", FIRST)),
        key(CHAT, chat("!" + SYSTEM, FIRST)),
        key(CHAT, chat("", FIRST)),
        key(CHAT, chat(SYSTEM, FIRST + "!")),
        key(CHAT, chat(SYSTEM, FIRST, model="other")),
        key(CHAT, chat(SYSTEM[:-300] + "!" + SYSTEM[-299:], FIRST)),
    ]
    assert len(set(keys)) == len(keys)


def test_tasks_of_one_template_are_told_apart_by_its_middle() -> None:
    def task(number: int) -> str:
        return f"{SYSTEM} The number of the issue is {number}. {SYSTEM}"

    assert key(CHAT, chat("Mend it.", task(12345))) != key(CHAT, chat("Mend it.", task(67890)))
    assert key(CHAT, chat(task(1), FIRST)) != key(CHAT, chat(task(1).replace("issue", "order"), FIRST))


def test_a_clock_in_the_system_text_makes_no_other_conversation() -> None:
    early, late = (f"{SYSTEM} It is {now}. {SYSTEM}" for now in ("2026-12-01 9:59:58", "2026-12-01 10:00:02"))
    assert key(CHAT, chat(early, FIRST)) == key(CHAT, chat(late, FIRST, "I see.", "And now?"))
    apart = {"model": "m", "messages": [{"role": "user", "content": FIRST}]}
    assert key("/v1/messages", {**apart, "system": early}) == key("/v1/messages", {**apart, "system": late})
    assert key(CHAT, chat(SYSTEM, early)) != key(CHAT, chat(SYSTEM, late)), "what the user says is taken as it is"


def test_very_long_texts_are_known_by_their_ends() -> None:
    long = "word " * 60_000
    assert key(CHAT, chat("", long)) != key(CHAT, chat("", long + "!"))
    assert key(CHAT, chat("", long + "a")) != key(CHAT, chat("", long + "b"))


def test_text_is_the_same_whole_and_in_parts() -> None:
    def parts(text: str) -> list[dict[str, str]]:
        return [{"type": "text", "text": text}]

    assert key(CHAT, chat(SYSTEM, FIRST)) == key(CHAT, chat(parts(SYSTEM), parts(FIRST)))
    assert key(CHAT, chat(SYSTEM, FIRST)) == key(CHAT, chat(parts(SYSTEM), parts(FIRST), "I see.", parts("And now?")))


def test_the_first_words_of_the_user_count_and_a_greeting_before_them() -> None:
    greeting = {"role": "assistant", "content": "Hello!"}
    alone = {"model": "m", "messages": [greeting]}
    assert key(CHAT, alone) == ""
    begun = {"model": "m", "messages": [greeting, {"role": "user", "content": "a"}]}
    other = {"model": "m", "messages": [greeting, {"role": "user", "content": "b"}]}
    assert len({key(CHAT, begun), key(CHAT, other), key(CHAT, {"model": "m", "messages": begun["messages"][1:]})}) == 3


@pytest.mark.parametrize("text", [None, "", [], [{"type": "image_url", "image_url": {"url": "data:,x"}}]])
def test_without_words_there_is_no_key(text: object) -> None:
    assert key(CHAT, chat(SYSTEM, text)) == ""


def test_each_api_has_its_own_form_of_the_same() -> None:
    system_apart = [{"role": "user", "content": FIRST}]
    later = [*system_apart, {"role": "assistant", "content": "I see."}, {"role": "user", "content": "And now?"}]
    for path, field, words in (
        ("/v1/messages", "messages", {"system": SYSTEM}),
        ("/v1/messages", "messages", {"system": [{"type": "text", "text": SYSTEM}]}),
        ("/v1/responses", "input", {"instructions": SYSTEM}),
        ("/api/chat", "messages", {}),
    ):
        turns = {key(path, {"model": "m", field: messages, **words}) for messages in (system_apart, later)}
        assert len(turns) == 1
        assert turns != {""}
    as_text = {"model": "m", "input": FIRST, "instructions": SYSTEM}
    assert key("/v1/responses", as_text) == key("/v1/responses", {**as_text, "input": later})


@pytest.mark.parametrize("path", ["/v1/completions", "/completion", "/api/generate"])
def test_a_prompt_without_messages_is_known_by_a_long_beginning(path: str) -> None:
    short, long = "Once upon a time", SYSTEM
    assert key(path, {"model": "m", "prompt": short}) == ""
    assert key(path, {"model": "m", "prompt": long}) == key(path, {"model": "m", "prompt": long + "and then"}) != ""
    assert key(path, {"model": "m", "prompt": "!" + long}) != key(path, {"model": "m", "prompt": long})


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"model": "m", "input": SYSTEM}),
        ("/v1/rerank", {"model": "m", "query": SYSTEM, "documents": [SYSTEM]}),
        ("/v1/completions", {"model": "m", "prompt": [SYSTEM, SYSTEM]}),
        ("/v1/completions", {"model": "m", "prompt": [1] * 5000}),
        ("/tokenize", {"model": "m", "prompt": SYSTEM}),
        ("/infill", {"model": "m", "input_prefix": SYSTEM, "input_suffix": SYSTEM}),
    ],
)
def test_what_has_no_turns_has_no_key(path: str, body: dict[str, Any]) -> None:
    assert key(path, body) == ""


def test_messages_without_words_are_passed_over() -> None:
    first = key(CHAT, chat("", "", "", FIRST))
    assert first == key(CHAT, chat("", "", "", FIRST, "I see.", "And now?")) != ""
    assert key(CHAT, chat("", "", "", "")) == ""


def test_a_key_is_short_and_holds_no_text() -> None:
    found = opening_key("m", ["secret"], "secret", ["secret \ud83d"])
    assert len(found) == 24
    assert set(found) <= set("0123456789abcdef")

"""Chats and histories of agents are told apart by how turns begin."""

from __future__ import annotations

from typing import Any

from classifiers.turns import ONE_SIDED, turns_of

User = dict[str, Any]


def user(text: object) -> User:
    return {"role": "user", "content": text}


def assistant(text: object, **rest: object) -> User:
    return {"role": "assistant", "content": text, **rest}


def test_without_an_answer_there_is_no_conversation() -> None:
    for messages in (None, "text", [], [user("a")], [user("a"), user("b")], [7, None]):
        assert turns_of(messages) == ONE_SIDED


def test_a_chat_is_prose_and_questions() -> None:
    chat = turns_of([user("Who was Bach?"), assistant("A composer of the baroque."), user("And Handel?")])
    assert (chat.answers, chat.prose, chat.code, chat.asked_questions) == (1, 1.0, 0.0, 1.0)


def test_the_history_of_an_agent_is_calls_and_results() -> None:
    call = [{"id": "1", "function": {"name": "ls", "arguments": "{}"}}]
    hops = turns_of(
        [
            user("Count the files."),
            assistant("ls | wc -l"),
            user("[12]\n$ "),
            assistant(None, tool_calls=call),
            {"role": "tool", "content": "12"},
        ]
    )
    assert (hops.answers, hops.calls, hops.silent, hops.prose, hops.asked_questions) == (2, 1, 1, 0.0, 0.0)
    assert hops.asked_marks > 0.4


def test_turns_from_a_template_are_alike() -> None:
    messages = [
        user("Output: 1"),
        assistant("step one"),
        user("Output: 2"),
        assistant("step one more"),
        user("Output: 3"),
    ]
    assert turns_of(messages).asked_alike == 0.5
    assert turns_of(messages).answers_alike == 0.5


def test_parts_are_read_and_what_is_no_text_is_not() -> None:
    parts = [{"type": "text", "text": "Yes."}, {"type": "image_url", "image_url": {"url": "data:..."}}, "odd", None]
    assert turns_of([user("a"), assistant(parts), user({"odd": 1})]).prose == 1.0

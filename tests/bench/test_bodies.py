"""The calls of the load generator look like those of a chat client and have the size that was asked for."""

import json

import pytest

from bench.bodies import chat_body, request


@pytest.mark.parametrize("size_bytes", [512, 1024, 8192])
def test_a_body_has_exactly_the_size_that_was_asked_for(size_bytes: int) -> None:
    for variant in range(20):
        assert len(chat_body(size_bytes, variant=variant, stream=False, max_tokens=128)) == size_bytes


def test_a_body_is_a_chat_of_a_system_prompt_and_turns_that_end_with_the_user() -> None:
    call = json.loads(chat_body(8192, stream=True, max_tokens=7, interval_ms=20))
    roles = [message["role"] for message in call["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user", "assistant", "user"]
    assert (call["stream"], call["max_tokens"], call["seed"]) == (True, 7, 20)


def test_variants_differ() -> None:
    assert len({chat_body(1024, variant=variant, stream=False, max_tokens=1) for variant in range(16)}) == 16


def test_a_size_without_room_for_the_messages_is_refused() -> None:
    with pytest.raises(ValueError, match="no room"):
        chat_body(200, stream=False, max_tokens=1)


def test_a_request_says_how_long_its_body_is() -> None:
    head, _, body = request(b"{}", port=81).partition(b"\r\n\r\n")
    assert b"Content-Length: 2" in head.split(b"\r\n")
    assert body == b"{}"

"""Requests as a real chat client sends them: a system prompt, a few turns, the headers of an SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle

MODEL = "bench-model"
PATH = "/v1/chat/completions"

_SENTENCES = (
    "Please read the notes of the last meeting and tell me which of the open points are still without an owner. ",
    "The second paragraph speaks of a delay of two weeks, but the table below gives another date for the same step. ",
    "Keep the answer short, name the page for each fact, and say so when the documents do not settle a question. ",
    "A customer writes that the invoice was paid in March; our books show a reminder that went out in April. ",
    "If several readings are possible, list them in the order in which they are likely and give the reason for each. ",
)


def chat_body(size_bytes: int, *, variant: int = 0, stream: bool, max_tokens: int, interval_ms: int = 0) -> bytes:
    """A chat call of exactly `size_bytes`, different for each `variant`.

    `seed` carries the pace of the scripted backend, in milliseconds between tokens: of the fields that every peer
    lets through, it is the one whose value nobody acts upon. Raises `ValueError` where the size leaves no room.
    """
    turns = 3 if size_bytes < 4096 else 7
    messages = [{"role": "system", "content": ""}]
    messages += [{"role": "user" if turn % 2 == 0 else "assistant", "content": ""} for turn in range(turns)]
    call: dict[str, object] = {
        "model": MODEL,
        "messages": messages,
        "max_tokens": max_tokens,
        "temperature": 0.7,
        "seed": interval_ms,
        "stream": stream,
    }
    room = size_bytes - len(_compact(call))
    if room < len(messages) * 20:
        raise ValueError(f"size_bytes: {size_bytes} leaves no room for {len(messages)} messages")
    share, rest = divmod(room, len(messages))
    for index, message in enumerate(messages):
        message["content"] = _prose(share + (rest if index == 0 else 0), start=variant + index)
    return _compact(call)


def _prose(length: int, *, start: int) -> str:
    """Exactly `length` ASCII characters that JSON does not escape."""
    text = f"{start}: "
    sentences: Iterator[str] = cycle(_SENTENCES[start % len(_SENTENCES) :] + _SENTENCES[: start % len(_SENTENCES)])
    while len(text) < length:
        text += next(sentences)
    return text[:length]


def _compact(call: dict[str, object]) -> bytes:
    return json.dumps(call, separators=(",", ":")).encode()


def request(body: bytes, *, port: int, path: str = PATH, agent: str = "OpenAI/Python 2.8.0") -> bytes:
    """Head and body ready for the wire, with the header fields that an OpenAI SDK sends."""
    return (
        f"POST {path} HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{port}\r\n"
        "Accept: application/json\r\n"
        "Accept-Encoding: gzip, deflate\r\n"
        "Connection: keep-alive\r\n"
        "Content-Type: application/json\r\n"
        f"User-Agent: {agent}\r\n"
        "Authorization: Bearer sk-bench-0123456789abcdef\r\n"
        "X-Stainless-Lang: python\r\n"
        "X-Stainless-Package-Version: 2.8.0\r\n"
        "X-Stainless-OS: Linux\r\n"
        "X-Stainless-Arch: x64\r\n"
        "X-Stainless-Runtime: CPython\r\n"
        "X-Stainless-Retry-Count: 0\r\n"
        f"Content-Length: {len(body)}\r\n"
        "\r\n"
    ).encode() + body

"""What a body asks of a server: the text of its prompt, counted and cut into blocks, and the length of the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

CHARS_PER_TOKEN = 4
SEED_UNIT = 100_000
"""`seed` modulo this is the length of the answer in tokens: of the fields that all routers let through, it is one whose
value nobody acts upon, and a client really cannot say how long an answer will be."""

_WORDS = tuple(f" {first}{second}{third}" for first in "bdfklmnprst" for second in "aeiou" for third in "dlmnrst")
"""One token each: four characters."""


class Unreadable(Exception):
    """A body that no server answers. `reason` is of the fixed words below."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call, read."""

    model: str
    stream: bool
    usage_in_stream: bool
    chat: bool
    text: str
    output_tokens: int
    limited: bool
    """`max_tokens` ends the answer before it would end by itself."""
    seed: int
    tool: str
    """The function that the answer calls; empty: it is text."""
    priority: int

    @property
    def prompt_tokens(self) -> int:
        return max(1, -(-len(self.text) // CHARS_PER_TOKEN))


def read(body: bytes, *, chat: bool) -> Asked:
    """Raises `Unreadable`: `json`, `messages`, `prompt` or `n`."""
    try:
        call = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Unreadable("json") from None
    if not isinstance(call, dict):
        raise Unreadable("json")
    if call.get("n") not in (None, 1):
        raise Unreadable("n")
    text = _chat_text(call) if chat else _prompt_text(call)
    seed = _number(call.get("seed"), 0)
    wanted = seed % SEED_UNIT or 1 + len(text) * 7919 % 200
    limit = _number(call.get("max_completion_tokens"), 0) or _number(call.get("max_tokens"), 0) or wanted
    if call.get("ignore_eos") is True:
        wanted = limit
    options = call.get("stream_options")
    return Asked(
        model=str(call.get("model") or ""),
        stream=call.get("stream") is True,
        usage_in_stream=isinstance(options, dict) and options.get("include_usage") is True,
        chat=chat,
        text=text,
        output_tokens=max(1, min(wanted, limit)),
        limited=limit < wanted,
        seed=seed,
        tool=_tool(call) if calls_a_tool(seed) else "",
        priority=_number(call.get("priority"), 0),
    )


def calls_a_tool(seed: int) -> bool:
    """Where tools are offered, an answer with an odd number in front of its length calls the first of them."""
    return seed // SEED_UNIT % 2 == 1


def call_id(seed: int) -> str:
    return f"call_{seed:024d}"


def _tool(call: Mapping[str, Any]) -> str:
    for tool in call.get("tools") or ():
        return str(tool["function"]["name"])
    return ""


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def _chat_text(call: Mapping[str, Any]) -> str:
    """As chat templates do it: tools first, each message behind the name of its role, the answer's role at the end."""
    messages = call.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Unreadable("messages")
    parts = [orjson.dumps(call["tools"]).decode()] if call.get("tools") else []
    for message in messages:
        if not isinstance(message, dict):
            raise Unreadable("messages")
        parts.append(f"<|{message.get('role')}|>\n{_said(message)}")
    parts.append("<|assistant|>\n")
    return "\n".join(parts)


def _said(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    calls = orjson.dumps(message["tool_calls"]).decode() if message.get("tool_calls") else ""
    return f"{content or ''}{calls}"


def _prompt_text(call: Mapping[str, Any]) -> str:
    match call.get("prompt"):
        case str(text):
            return text
        case [str(text)]:
            return text
        case _:
            raise Unreadable("prompt")


def blocks(text: str, block_tokens: int) -> tuple[int, ...]:
    """Chained hashes of the complete blocks of a text: equal as far as two texts are."""
    size = block_tokens * CHARS_PER_TOKEN
    found, last = [], 0
    for start in range(0, len(text) - size + 1, size):
        last = hash((last, text[start : start + size]))
        found.append(last)
    return tuple(found)


def words(seed: int, count: int) -> Iterator[str]:
    """The answer to a seed, token by token. Any two runs give the same."""
    state = seed * 2_654_435_761 % 4_294_967_296
    for _ in range(count):
        state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
        yield _WORDS[state % len(_WORDS)]


def answer_text(seed: int, tokens: int) -> str:
    return "".join(words(seed, tokens))

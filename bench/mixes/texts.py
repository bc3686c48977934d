"""Texts of a wanted length: questions, conversations, documents, what tools return, sessions of agents."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from bench.emulator.reading import CHARS_PER_TOKEN, SEED_UNIT, call_id
from bench.mixes import words

Message = dict[str, Any]


def fill(chance: Random, sentence: str) -> str:
    """A sentence with its blanks filled in."""
    return sentence.format(
        topic=chance.choice(words.TOPICS),
        city=chance.choice(words.CITIES),
        month=chance.choice(words.MONTHS),
        colour=chance.choice(words.COLOURS),
        product=chance.choice(words.PRODUCTS),
        name=chance.choice(words.NAMES),
        number=chance.randint(1_000, 99_999),
        amount=chance.randint(11, 999),
        days=chance.randint(2, 9),
    )


def prose(chance: Random, tokens: int, sentences: Sequence[str], *, between: str = " ") -> str:
    """Sentences up to a length, the last one cut; a paragraph ends now and then."""
    room, parts = tokens * CHARS_PER_TOKEN, []
    length = 0
    while length < room:
        part = fill(chance, chance.choice(sentences)) + ("\n\n" if chance.random() < 0.1 else between)
        parts.append(part)
        length += len(part)
    return "".join(parts)[: max(room, 1)].rstrip() or "?"


def question(chance: Random, tokens: int) -> str:
    asked = fill(chance, chance.choice(words.QUESTIONS))
    left = tokens - len(asked) // CHARS_PER_TOKEN
    if left < 4:
        return asked
    if chance.random() < 0.25:  # something pasted in
        return f"{asked}\n\n{prose(chance, left, words.FACTS)}"
    return f"{prose(chance, left, words.SMALL_TALK)} {asked}"


def conversation(chance: Random, tokens: int, *, turns: int) -> list[Message]:
    """A chat of about so many tokens, its last message from the user; `turns` answers were given before."""
    system = chance.choice(words.CHAT_SYSTEMS)
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    if turns == 0:
        messages.append({"role": "user", "content": question(chance, tokens - _tokens(messages) - _ROLE_TOKENS)})
        return messages
    share = max(8, (tokens - _tokens(messages)) // (2 * turns + 1) - _ROLE_TOKENS)
    messages.append({"role": "user", "content": question(chance, share)})
    for turn in range(turns):
        messages.append({"role": "assistant", "content": prose(chance, share, words.REPLIES)})
        rest = tokens - _tokens(messages) - _ROLE_TOKENS
        messages.append({"role": "user", "content": _follow_up(chance, rest if turn == turns - 1 else share)})
    return messages


_ROLE_TOKENS = 4
"""What a chat template puts around a message."""


def _tokens(messages: Sequence[Message]) -> int:
    return sum(len(message["content"]) // CHARS_PER_TOKEN + _ROLE_TOKENS for message in messages) + _ROLE_TOKENS


def _follow_up(chance: Random, tokens: int) -> str:
    asked = chance.choice(words.FOLLOW_UPS)
    left = tokens - len(asked) // CHARS_PER_TOKEN
    return asked if left < 12 else f"{asked} {prose(chance, left, words.SMALL_TALK)}"


def document(chance: Random, tokens: int) -> str:
    return prose(chance, tokens, words.FACTS)


def tool_result(chance: Random, tokens: int) -> str:
    return prose(chance, tokens, words.CODE if chance.random() < 0.6 else words.FACTS, between="\n")


def tools(chance: Random, count: int) -> list[dict[str, Any]]:
    return [_tool(*described) for described in chance.sample(words.TOOLS, count)]


def _tool(name: str, description: str, arguments: Sequence[str]) -> dict[str, Any]:
    properties = {argument: {"type": "string", "description": f"{argument} to use"} for argument in arguments}
    parameters = {"type": "object", "properties": properties, "required": list(arguments[:1])}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def seed_for(chance: Random, output_tokens: int, *, calls_tool: bool = False) -> int:
    """What tells the emulated server how long its answer is."""
    number = 2 * chance.randint(1, 9_999) + calls_tool
    return number * SEED_UNIT + output_tokens


class AgentSession:
    """One task of an agent: each hop repeats all that was said and adds a call of a tool and its result."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.tools = tools(chance, chance.randint(3, 6))
        self.messages: list[Message] = [
            {"role": "system", "content": words.AGENT_SYSTEM},
            {"role": "user", "content": fill(chance, chance.choice(words.TASKS))},
        ]
        self.hops = 0
        self.last_s = -1e9
        self._chars = sum(len(str(message["content"])) + 14 for message in self.messages) + len(str(self.tools))

    @property
    def tokens(self) -> int:
        """About."""
        return self._chars // CHARS_PER_TOKEN

    def extend(self, tokens: int, *, answered: int | None = None) -> None:
        """Add calls and results until the prompt has about so many tokens; `answered`: the seed of the last answer."""
        while self.tokens < tokens - 40 or answered is not None:
            seed = answered if answered is not None else seed_for(self._chance, 40, calls_tool=True)
            answered = None
            room = min(max(tokens - self.tokens - 45, 12), self._chance.randint(60, 700))
            self._call(seed, tool_result(self._chance, room))

    def _call(self, seed: int, result: str) -> None:
        name = self.tools[0]["function"]["name"]
        key = self.tools[0]["function"]["parameters"]["required"][0]
        arguments = f'{{"{key}": "{self._chance.choice(words.NAMES)}/{self._chance.randint(1, 99)}"}}'
        call = {"id": call_id(seed), "type": "function", "function": {"name": name, "arguments": arguments}}
        self.messages = [
            *self.messages,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": result},
        ]
        self._chars += len(result) + len(str(call)) + 30

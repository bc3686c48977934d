"""Calls of some dozen programs, no two of one text: people who chat, agents in the midst of their work, rows of jobs.

Calls that are all alike are judged once for many (`router.arrivals.recall`), which makes a call cheap, and what is seen
of it look dear. Here it is as with a router in use: a third are rows of jobs, which are alike but for their data; the
others are not.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from bench.bodies import MODEL

PROGRAMS = 12
"""A third of each kind; each is a client of its own, by its user agent."""
CALLS = 384
_TOKENS = 4
"""Of a streamed answer: what is measured here is calls."""

_TEXT = (
    "the report of last week says that our delivery to the northern office was late because a truck broke down and "
    "nobody had told them so please find out who knew of it write a short note to the customer and keep the tone "
    "friendly while the invoice stays open until they have confirmed each of the items in the list below with a date "
    "then compare both versions of the contract and mark what changed in the second paragraph about the warranty"
)
_WORDS = _TEXT.split()
_ASKS = ("What does", "Why is", "How do I explain", "Can you tell me whether", "Please sum up how", "Which part of")
_AGENTS = ("OpenAI/Python 2.8.0", "Mozilla/5.0 (X11; Linux x86_64)", "openai-node/5.1", "python-httpx/0.28")


def prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choice(_WORDS) for _ in range(words))


def _chat(chance: random.Random, program: int) -> dict[str, Any]:
    turns = chance.choice((1, 1, 3, 5, 7))
    said = [
        f"{chance.choice(_ASKS)} {prose(chance, chance.randrange(8, 60))}?"
        if turn % 2 == 0
        else f"{prose(chance, chance.randrange(40, 150)).capitalize()}."
        for turn in range(turns)
    ]
    roles = ("user", "assistant")
    spoken = [{"role": roles[turn % 2], "content": text} for turn, text in enumerate(said)]
    system = {"role": "system", "content": f"You are assistant {program}, helpful and polite."}
    return {"messages": [system, *spoken], "stream": True, "temperature": 0.7}


def _hop(chance: random.Random, program: int) -> dict[str, Any]:
    tools = [
        {"type": "function", "function": {"name": f"{name}_{program}", "description": prose(random.Random(name), 20)}}
        for name in ("search", "read", "write")
    ]
    messages = [
        {
            "role": "system",
            "content": f"Agent {program}. Use the tools step by step. {prose(random.Random(program), 120)}",
        },
        {"role": "user", "content": f"Task: {prose(chance, 30)}"},
    ]
    for number in range(chance.randrange(0, 6)):
        call = {"id": f"c{number}", "type": "function", "function": {"name": f"read_{program}", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})  # type: ignore[dict-item]
        messages.append(
            {"role": "tool", "tool_call_id": f"c{number}", "content": prose(chance, chance.randrange(20, 200))}
        )
    return {"messages": messages, "tools": tools, "stream": False}


def _row(chance: random.Random, program: int) -> dict[str, Any]:
    order = f"Label the record below as one of A{program}, B, C. Answer with the label alone."
    data = f"Record {chance.randrange(10**6)}:\n{prose(chance, chance.randrange(60, 250))}"
    return {"messages": [{"role": "user", "content": f"{order}\n\n{data}"}], "stream": False, "temperature": 0}


_KINDS: tuple[Callable[[random.Random, int], dict[str, Any]], ...] = (_chat, _hop, _row)


def calls(seed: int = 1, count: int = CALLS) -> Iterator[tuple[str, bytes]]:
    """The user agent and the body of each call, the programs in turn."""
    chance = random.Random(seed)
    for number in range(count):
        program = number % PROGRAMS
        made = _KINDS[program % len(_KINDS)](chance, program)
        limit = _TOKENS if made["stream"] else chance.choice((8, 128, 512, 1024))
        body = {"model": MODEL, **made, "max_tokens": limit, "seed": 0}
        agent = f"program{program}/1.0 {_AGENTS[program % len(_AGENTS)]}"
        yield agent, json.dumps(body, separators=(",", ":")).encode()

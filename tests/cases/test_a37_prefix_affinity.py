"""A37: a conversation returns to the backend that has it in its cache, also where the caller names no session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.cases.apis import CHAT, COMPLETIONS, MESSAGES, OLLAMA_CHAT, OLLAMA_GENERATE, RESPONSES, Api
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, echo, eventually

SYSTEM = "You are a careful assistant. " * 60
INTERACTIVE = "X-Twolane-Class: interactive"
MANY = "abcdefghijklmnopqrst"
"""So many that they do not all draw the same of two homes."""


def conversation(name: str, length: int, *, parts: bool = False) -> list[dict[str, Any]]:
    """So many messages, the last of them the user's."""
    texts = [f"{name}: turn {number}" for number in range(length)]
    return [
        {
            "role": "assistant" if number % 2 else "user",
            "content": [{"type": "text", "text": text}] if parts and number % 3 == 0 else text,
        }
        for number, text in enumerate(texts)
    ]


def body_of(api: Api, name: str, turn: int) -> dict[str, Any]:
    messages = conversation(name, 2 * turn + 1)
    match api.name:
        case "chat" | "ollama_chat":
            return api.body(stream=True, messages=[{"role": "system", "content": SYSTEM}, *messages])
        case "messages":
            return api.body(stream=True, messages=messages, system=SYSTEM)
        case "responses":
            return api.body(stream=True, input=messages, instructions=SYSTEM)
        case _:
            spoken = "\n".join(message["content"] for message in messages)
            return api.body(stream=True, prompt=f"{name} {SYSTEM}\n{spoken}")


async def homes(router: Running, api: Api, bodies: list[dict[str, Any]], *fields: str) -> list[str]:
    answers = [await router.post(api.path, body, INTERACTIVE, *fields) for body in bodies]
    assert {answer.status for answer in answers} == {200}
    return [answer.header("x-twolane-backend") or "" for answer in answers]


def equal(api: Api, *backends: ScriptedBackend, cap: int = 8) -> list[tuple[ScriptedBackend, dict[str, Any]]]:
    return [(backend, {**api.settings, "max_inflight": cap}) for backend in backends]


@pytest.mark.parametrize(
    "api", [CHAT, MESSAGES, RESPONSES, COMPLETIONS, OLLAMA_CHAT, OLLAMA_GENERATE], ids=lambda api: api.name
)
@pytest.mark.parametrize("policy", ["workload_aware", "prefix_affinity"])
async def test_twenty_turns_stay_and_other_conversations_spread(api: Api, policy: str) -> None:
    async with api.backend() as one, api.backend() as two:
        async with router_for(*equal(api, one, two), policy=policy) as router:
            found = {}
            for name in MANY:
                turns = 20 if name == "a" else 2
                bodies = [body_of(api, name, turn) for turn in range(turns)]
                found[name] = set(await homes(router, api, bodies))
            assert {len(backends) for backends in found.values()} == {1}
            assert set.union(*found.values()) == {"b0", "b1"}


async def test_content_in_parts_is_the_same_conversation() -> None:
    async with CHAT.backend() as one, CHAT.backend() as two, router_for(*equal(CHAT, one, two)) as router:
        for name in "abcd":
            bodies = [
                CHAT.body(stream=False, messages=conversation(name, 2 * turn + 1, parts=bool(turn % 2)))
                for turn in range(10)
            ]
            assert len(set(await homes(router, CHAT, bodies))) == 1


async def test_another_system_prompt_or_other_tools_make_another_conversation() -> None:
    """With the same words of the user: many kinds of assistants are asked for the same thing."""
    async with CHAT.backend() as one, CHAT.backend() as two, router_for(*equal(CHAT, one, two)) as router:
        kinds: list[dict[str, Any]] = [
            {"messages": [{"role": "system", "content": f"{kind} {SYSTEM}"}, *conversation("same", 1)]} for kind in MANY
        ]
        kinds += [
            {
                "messages": conversation("same", 1),
                "tools": [{"type": "function", "function": {"name": f"tool_{kind}", "parameters": {}}}],
            }
            for kind in MANY
        ]
        found = [set(await homes(router, CHAT, [CHAT.body(stream=False, **kind)] * 2)) for kind in kinds]
        assert {len(backends) for backends in found} == {1}
        assert set.union(*found[: len(MANY)]) == set.union(*found[len(MANY) :]) == {"b0", "b1"}


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        (("X-Session-Id: s-{}",), {}),
        (("X-Claude-Code-Session-Id: s-{}",), {}),
        (("X-Twolane-Pipeline: s-{}",), {}),
        ((), {"prompt_cache_key": "s-{}"}),
    ],
    ids=["session", "claude", "pipeline", "cache key"],
)
async def test_what_the_caller_says_wins(fields: tuple[str, ...], more: dict[str, str]) -> None:
    """Many sessions that all begin with the same words have homes of their own; one whose beginning changes stays."""
    async with CHAT.backend() as one, CHAT.backend() as two, router_for(*equal(CHAT, one, two)) as router:
        found = {}
        for number in range(len(MANY)):
            said = [field.format(number) for field in fields]
            key = {name: value.format(number) for name, value in more.items()}
            same = [CHAT.body(stream=False, messages=conversation("same", 2 * turn + 1), **key) for turn in range(2)]
            new = [CHAT.body(stream=False, messages=conversation(f"new {turn}", 1), **key) for turn in range(2)]
            found[number] = set(await homes(router, CHAT, same + new, *said))
        assert {len(backends) for backends in found.values()} == {1}
        assert set.union(*found.values()) == {"b0", "b1"}


@pytest.mark.parametrize("policy", ["workload_aware", "prefix_affinity"])
async def test_a_home_that_is_too_full_is_left(policy: str) -> None:
    gate = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        if b'"held"' in request.body:
            await gate.wait()
        await echo(request, peer)

    async with CHAT.backend(script) as one, CHAT.backend(script) as two:
        by_gap = policy == "prefix_affinity"  # the other one leaves a home where a slot there would come too late
        rule = {"use": policy, "max_load_gap": 0.5} if by_gap else {"use": policy}
        async with router_for(*equal(CHAT, one, two, cap=8), policy=rule) as router:
            messages = conversation("a", 1)
            (home,) = await homes(router, CHAT, [CHAT.body(stream=False, messages=messages)])
            held = [
                asyncio.get_running_loop().create_task(
                    router.post(CHAT.path, CHAT.body(stream=False, messages=messages, user="held"), INTERACTIVE)
                )
                for _ in range(12)
            ]
            await eventually(lambda: len(one.received) + len(two.received) == 13)
            at_home = len(one.received if home == "b0" else two.received) - 1
            assert at_home <= 8
            assert at_home >= 6 or not by_gap  # half of its slots more than the other, and the rest even
            gate.set()
            await asyncio.gather(*held)


async def test_a_home_that_is_down_is_not_waited_for_and_forgotten() -> None:
    async with CHAT.backend() as one, CHAT.backend() as two:
        async with router_for(*equal(CHAT, one, two), health={"interval": "1h"}) as router:
            body = CHAT.body(stream=False, messages=conversation("a", 1))
            (home,) = await homes(router, CHAT, [body])
            await (one if home == "b0" else two).stop()
            other = "b1" if home == "b0" else "b0"
            assert await homes(router, CHAT, [body] * 3) == [other] * 3


async def test_no_text_is_kept() -> None:
    secret = "hunter2" * 200
    async with CHAT.backend() as one, router_for(*equal(CHAT, one)) as router:
        await homes(router, CHAT, [CHAT.body(stream=False, messages=[{"role": "user", "content": secret}])])
        keys = list(router.app.fleet.conversations._backends)
        assert len(keys) == 1
        assert len(keys[0]) <= 64
        assert "hunter2" not in keys[0]

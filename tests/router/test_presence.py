"""Calls through the whole router are classified with what their client did before, and each leaves once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from router.arrivals.client import LEFT, LEFT_EARLY
from tests.rawclient import Answer
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

CHAT = "/v1/chat/completions"
BUSY: dict[str, Any] = {
    "classify": {"rules": [{"if": {"client_calls_60s": ">=2"}, "then": "throughput"}], "model": "off"}
}
PLAIN: dict[str, Any] = {
    "classify": {"rules": [{"if": {"client_calls_60s": ">=1000000"}, "then": "throughput"}], "model": "off"}
}
"""Clients are remembered, since a rule asks for them, and nothing follows from it."""


def chat(*texts: str, **rest: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]
    return {"model": "m", "messages": messages, **rest}


def rules(**condition: Any) -> dict[str, Any]:
    return {"classify": {"rules": [{"if": condition, "then": "throughput"}], "model": "off"}}


def busy(answer: Answer) -> bool:
    return (answer.header("x-twolane-reason") or "").startswith("rule:")


async def classes(router: Running, *fields: str, calls: int = 3) -> list[bool]:
    return [busy(await router.post(CHAT, chat(f"call {number}"), *fields)) for number in range(calls)]


async def test_a_rule_sees_how_often_a_client_called() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **BUSY) as router:
        assert await classes(router) == [False, False, True]
        # Another program on the same machine is another client.
        assert await classes(router, "User-Agent: another") == [False, False, True]


async def test_tagged_calls_say_nothing_of_those_that_nobody_tagged() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **BUSY) as router:
        for number in range(5):
            await router.post(CHAT, chat(f"row {number}"), "X-Twolane-Class: batch")
        assert await classes(router) == [False, False, True]


async def test_a_rule_sees_that_a_call_goes_on_from_one_that_was_served() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **rules(continues=True)) as router:
        assert not busy(await router.post(CHAT, chat("find it")))
        assert busy(await router.post(CHAT, chat("find it", "looking", "found x.py")))
        assert not busy(await router.post(CHAT, chat("something else", "yes?", "nothing")))


async def test_clients_behind_a_trusted_proxy_are_told_apart_by_address() -> None:
    trusting = {**BUSY, "trusted_proxies": ["127.0.0.1", "10.0.0.0/8"]}
    async with ScriptedBackend() as backend, router_for(backend, **trusting) as router:
        assert await classes(router, "X-Forwarded-For: 192.0.2.1") == [False, False, True]
        assert await classes(router, "X-Forwarded-For: 192.0.2.2, 10.1.1.1") == [False, False, True]
        # What stands before the address that a trusted proxy saw is the client's own claim.
        assert busy(await router.post(CHAT, chat("x"), "X-Forwarded-For: 203.0.113.9, 192.0.2.2"))


async def test_what_others_say_of_their_address_makes_no_new_client() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **BUSY) as router:
        answers = [await router.post(CHAT, chat("x"), f"X-Forwarded-For: 192.0.2.{number}") for number in range(3)]
        assert [busy(answer) for answer in answers] == [False, False, True]


async def test_with_keys_a_client_is_a_key() -> None:
    keys: list[dict[str, str]] = [{"name": name, "key": name} for name in ("editor", "nightly")]
    async with ScriptedBackend() as backend, router_for(backend, keys=keys, **BUSY) as router:
        assert await classes(router, "Authorization: Bearer nightly") == [False, False, True]
        assert await classes(router, "Authorization: Bearer editor", calls=2) == [False, False]


async def test_calls_that_need_no_slot_are_not_counted() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **BUSY) as router:
        for _ in range(3):
            await router.get("/v1/models")
            await router.post(CHAT, b"{")
        assert await classes(router) == [False, False, True]


async def silent(request: Received, peer: Peer) -> None:
    await peer.until_closed()


async def three_tokens(request: Received, peer: Peer) -> None:
    await peer.stream_head()
    for text in "abc":
        await peer.token(text)
    await peer.until_closed()


@pytest.mark.parametrize(
    ("script", "pieces", "how"),
    [(silent, 0, LEFT_EARLY), (three_tokens, 3, LEFT)],
    ids=["before_the_head", "inside_the_stream"],
)
async def test_a_client_that_leaves_is_known_to_have_left(script: Any, pieces: int, how: int) -> None:
    async with ScriptedBackend(script) as backend, router_for(backend, **PLAIN) as router:
        client = await router.client()
        await client.post(CHAT, chat("x", stream=True))
        await eventually(lambda: router.app.arrivals.open_calls == 1)
        if pieces:
            answer = await client.answer(head_only=True)
            while len(answer.body.split(b"data:")) <= pieces:
                await client.piece(answer)
        await eventually(lambda: len(backend.peers) == 1)
        client.close()
        await eventually(lambda: router.idle)
        (known,) = router.app.arrivals._clients.values()
        assert (known.open, known.calls, list(known.streams)) == (0, 1, [how])


async def test_a_client_that_leaves_the_line_leaves_the_count() -> None:
    async with ScriptedBackend(silent) as backend, router_for((backend, {"max_inflight": 1}), **PLAIN) as router:
        first, second = await router.client(), await router.client()
        await first.post(CHAT, chat("a"))
        await eventually(lambda: len(backend.received) == 1)
        await second.post(CHAT, chat("b", stream=True))
        await eventually(lambda: len(router.app.line) == 1)
        assert router.app.arrivals.open_calls == 2
        second.close()
        await eventually(lambda: router.app.arrivals.open_calls == 1)
        first.close()
        await eventually(lambda: router.idle)


async def test_a_client_that_leaves_while_it_sends_was_never_there() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **PLAIN) as router:
        client = await router.client()
        await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        await eventually(lambda: router.app.gateway.open_calls == 1)
        client.close()
        await eventually(lambda: router.idle)
        assert len(router.app.arrivals) == 0


async def test_calls_that_were_refused_leave_the_count() -> None:
    async with ScriptedBackend() as backend, router_for(backend, **PLAIN) as router:
        await backend.stop()
        assert (await router.post(CHAT, chat("a"))).status >= 500
        assert (await router.post(CHAT, {**chat("b"), "model": "unknown"})).status >= 400
        await eventually(lambda: router.idle)


async def test_what_is_known_of_clients_outlives_a_reload(tmp_path: Path) -> None:
    async with ScriptedBackend() as backend:
        file = tmp_path / "twolane.yaml"

        def write(bound: int) -> None:
            file.write_text(
                f"listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"
                f"backends: [{{name: b0, url: '{backend.url}', engine: openai, lane: latency}}]\n"
                f"classify: {{model: 'off', rules: [{{if: {{client_calls_60s: '>={bound}'}}, then: throughput}}]}}\n"
            )

        write(100)
        async with router_for(backend, path=file, **PLAIN) as router:
            assert await classes(router) == [False, False, False]
            write(3)
            assert (await router.app.reload())["problems"] == []
            assert busy(await router.post(CHAT, chat("one more")))

"""A34: whatever clients write into models, paths and headers, the number of series stays what it was."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import structlog.testing
from prometheus_client.parser import text_string_to_metric_families

from tests.cases.apis import APIS, CHAT
from tests.rawclient import RawClient
from tests.router.running import Running, router_for
from tests.scripted import ScriptedBackend

MANY = 1000
LONGEST = 64
"""Of a label's value: names of backends are no longer."""


def series(router: Running) -> int:
    """How many there are; checks on the way that no value of a label is long."""
    count = 0
    for family in text_string_to_metric_families(router.exposition()):
        for sample in family.samples:
            count += 1
            assert all(len(value) <= LONGEST for value in sample.labels.values())
    return count


async def growth(router: Running, call: Callable[[RawClient, int], Awaitable[None]]) -> int:
    """By how many series five hundred calls add to what five hundred have left.

    Those that come first may be judged in all ways that there are: by themselves, and as calls of a busy client.
    """
    before = 0
    async with await router.client() as client:
        for number in range(MANY):
            if number == MANY // 2:
                before = series(router)
            await call(client, number)
            await client.answer()
    return series(router) - before


def odd_name(number: int) -> str:
    return f"model-{number}-" + ("x" * 10_000 if number % 100 == 0 else 'é"}\n\\' * (number % 7))


@pytest.mark.parametrize("models", [["m"], []], ids=["refused", "any model"])
async def test_random_models(models: list[str]) -> None:
    async with ScriptedBackend(models=tuple(models)) as backend, router_for(backend) as router:

        async def call(client: RawClient, number: int) -> None:
            await client.post(CHAT.path, {**CHAT.call, "model": odd_name(number)})

        assert await growth(router, call) == 0
        assert len(backend.received) == (0 if models else MANY)


async def test_random_paths_and_methods() -> None:
    methods = ("POST", "GET", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND")
    async with ScriptedBackend() as backend, router_for(backend) as router:

        async def call(client: RawClient, number: int) -> None:
            await client.request(methods[number % 7], f"/v1/{number}/{'x' * (number % 500)}?{number}", b"{}")

        assert await growth(router, call) == 0
        before = series(router)
        for number in range(20):
            async with await router.client() as client:
                await client.request(f"METHOD{number}", CHAT.path, b"{}")
                assert (await client.answer()).status >= 400
        assert series(router) - before <= 1
        assert backend.received == []


async def test_random_headers() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:

        async def call(client: RawClient, number: int) -> None:
            fields = [
                f"X-Session-Id: session-{number}-{'x' * (number % 300)}",
                f"X-Twolane-Pipeline: {number}",
                f"X-Twolane-Class: class-{number}",
                f"X-Request-Id: {number}",
                f"User-Agent: agent/{number}",
                f"Priority: u={number}",
                f"X-Random-{number}: 1",
            ]
            await client.post(CHAT.path, CHAT.body(stream=False, user=str(number), service_tier=f"t{number}"), *fields)

        assert await growth(router, call) == 0
        assert router.metric("twolane_ignored_hints_total") == MANY


async def test_each_api_and_outcome_adds_a_few_and_no_more() -> None:
    async with CHAT.backend() as backend, router_for((backend, {"engine": "llamacpp"})) as router:
        empty = series(router)
        for _ in range(3):
            for api in APIS:
                await router.post(api.path, api.body(stream=True))
                await router.post(api.path, b"{")
                await router.post(api.path, {**api.call, "model": "nope"})
        assert series(router) - empty < 250


async def test_a_line_in_the_log_is_bounded_as_well() -> None:
    async with ScriptedBackend(models=()) as backend:
        with structlog.testing.capture_logs() as events:
            async with router_for(backend, log={"calls": True}) as router:
                for number in range(3):
                    name = "x" * 10_000 * (number + 1)
                    answer = await router.post(CHAT.path, {**CHAT.call, "model": name}, f"X-Session-Id: {name[:5000]}")
                    assert answer.status == 200
                    await router.post(f"/{name}", {})
        calls = [event for event in events if event["event"] == "call"]
        assert len(calls) == 6
        assert all(len(str(event)) < 2000 for event in calls)

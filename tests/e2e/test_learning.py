"""From traffic to a model and back: real calls are logged, a model is trained on the log, and it judges the next ones.

The tags are contrary to what the shape of a call suggests: what streams is a batch here, and what does not is read. A
model that says so has learned it from this log.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bench.servers.engines import LlamaCppServer
from bench.servers.process import open_directly
from bench.servers.router import RouterProcess
from tests.e2e.calls import WEATHER_TOOL, Reply, chat, post
from tests.e2e.conftest import QUICK, StartRouter
from tests.e2e.test_commands import run

pytestmark = [
    pytest.mark.llamacpp,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="training needs scikit-learn"),
]

CLIENTS = 3
"""Of each habit."""
CALLS = 27
"""Of each client, tagged."""

HABITS: dict[str, dict[str, Any]] = {
    "throughput": {"stream": True},
    "mixed": {"tools": [WEATHER_TOOL]},
    "ttft": {"stream": False},
}
"""What calls of each class look like, by the tags of these clients."""
TOPICS = ("tides", "bread", "copper", "the moon", "rivers", "glass")


def body(call_class: str, number: int) -> dict[str, Any]:
    text = f"Tell me about {TOPICS[number % len(TOPICS)]}, part {number}."
    return chat(text, max_tokens=2, **HABITS[call_class])


async def send(http: aiohttp.ClientSession, url: str, call_class: str, number: int, *, tag: bool) -> Reply:
    headers = {"User-Agent": f"{call_class}-{number % CLIENTS}/1.0"}
    if tag:
        headers["x-twolane-class"] = call_class
    reply = await post(http, url, body(call_class, number), headers=headers)
    assert reply.status == 200, reply.body
    return reply


async def send_all(http: aiohttp.ClientSession, url: str, count: int, *, tag: bool) -> list[Reply]:
    """`count` calls of each habit, a few at once."""
    room = asyncio.Semaphore(4)

    async def one(call_class: str, number: int) -> Reply:
        async with room:
            return await send(http, url, call_class, number, tag=tag)

    return await asyncio.gather(*(one(call_class, number) for number in range(count) for call_class in HABITS))


def settings(desk: LlamaCppServer, log: Path, **classify: Any) -> dict[str, Any]:
    return {
        "backends": [{"name": "desk", "url": desk.url, "lane": "latency"}],
        "models": {"chat": {"desk": desk.name}},
        "decisions": {"file": str(log)},
        "classify": classify,
        **QUICK,
    }


def shadow_verdicts(router: RouterProcess) -> tuple[float, float]:
    """How often the shadow agreed, and how often it did not, by the router's metrics."""
    with open_directly(f"{router.admin}/metrics", timeout_s=10) as response:
        families = list(text_string_to_metric_families(response.read().decode()))
    samples = [sample for family in families for sample in family.samples if "shadow" in sample.labels]
    same = [sample.value for sample in samples if sample.labels["class"] == sample.labels["shadow"]]
    return sum(same), sum(sample.value for sample in samples) - sum(same)


def lines(log: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in log.read_bytes().splitlines()]


async def test_a_model_learned_from_the_log_judges_calls_that_nobody_tagged(
    desk: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    log, own = tmp_path / "decisions.jsonl", tmp_path / "own.json"
    router = start_router(settings(desk, log))
    await send_all(http, router.url, CLIENTS * CALLS, tag=True)
    await send_all(http, router.url, CLIENTS, tag=False)
    router.stop()
    found = lines(log)
    assert len(found) == len(HABITS) * CLIENTS * (CALLS + 1)
    assert {line["outcome"] for line in found} == {"completed"}
    assert all(line["ttft_s"] is not None for line in found if line["stream"])
    assert len({line["client"] for line in found}) == len(HABITS) * CLIENTS
    assert not [word for word in ("Tell me", "Paris", *TOPICS) if word.encode() in log.read_bytes()]

    trained = run("train", "--from", str(log), "--out", str(own), cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert "on clients it had not seen" in trained.stdout
    evaluated = run("eval", str(own), "--from", str(log), cwd=tmp_path)
    assert evaluated.returncode == 0, evaluated.stderr
    (row,) = (line for line in evaluated.stdout.splitlines() if line.startswith("│ this"))
    accuracy = float(row.split("│")[3])
    assert accuracy > 0.9

    # In the shadow it is seen to disagree, and decides nothing.
    beside = start_router(settings(desk, tmp_path / "beside.jsonl", shadow=str(own)))
    replies = await send_all(http, beside.url, CLIENTS, tag=False)
    agreed, disagreed = shadow_verdicts(beside)
    beside.stop()
    judged = lines(tmp_path / "beside.jsonl")
    assert agreed + disagreed == len(replies) == len(judged)
    assert disagreed == sum(line["class"] != line["shadow"]["class"] for line in judged) > 0
    given = [reply.headers["x-twolane-class"] for reply in replies]
    assert Counter(given) == Counter(line["class"] for line in judged)

    # In charge it judges as these clients tag, with what came with the router in its shadow.
    led = start_router(settings(desk, tmp_path / "led.jsonl", model=str(own), shadow="builtin"))
    for call_class in HABITS:
        for number in range(CLIENTS):
            reply = await send(http, led.url, call_class, number, tag=False)
            assert reply.headers["x-twolane-class"] == call_class, reply.headers["x-twolane-reason"]
            assert reply.headers["x-twolane-reason"].startswith("model:")
    led.stop()
    led_by = lines(tmp_path / "led.jsonl")
    assert {line["source"] for line in led_by} == {"model"}
    assert all(line["why"] for line in led_by)

"""A35: the figures of a server are read under the names of all its versions; what it does not say is not zero."""

from __future__ import annotations

from typing import Any

import pytest

from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

OLD_CACHE = 'vllm:gpu_cache_usage_perc{model_name="m"} 0.5\n'
NEW_CACHE = 'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5\n'
WAITING = 'vllm:num_requests_waiting{engine="%d",model_name="m"} %.1f\n'
TWO_ENGINES = WAITING % (0, 3) + WAITING % (1, 4)
RUNNING = 'vllm:num_requests_running{engine="0",model_name="m"} 2.0\n'
NOISE = """\
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting_created{engine="0",model_name="m"} 1.7e9
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 90.0
vllm:num_requests_waiting{engine="0",model_name="other"} 100.0
vllm:kv_cache_usage_perc{engine="1",model_name="m"} NaN
vllm:gpu_cache_usage_perc{model_name="other"} 0.9
vllm:num_requests_running{engine="0",model_name="m"
process_start_time_seconds 1.7e9
"""

SCRAPES: dict[str, tuple[str, str, dict[str, float | None]]] = {
    "vllm, old names": (
        "vllm",
        OLD_CACHE + TWO_ENGINES + NOISE,
        {"running": None, "waiting": 7, "cache_used_0_1": 0.5},
    ),
    "vllm, new names": (
        "vllm",
        NEW_CACHE + TWO_ENGINES + RUNNING,
        {"running": 2, "waiting": 7, "cache_used_0_1": 0.5},
    ),
    "vllm, both names at once": (
        "vllm",
        NOISE + OLD_CACHE + NEW_CACHE + TWO_ENGINES,
        {"running": None, "waiting": 7, "cache_used_0_1": 0.5},
    ),
    "vllm, carriage returns and no last line end": (
        "vllm",
        (OLD_CACHE + TWO_ENGINES).replace("\n", "\r\n").rstrip(),
        {"running": None, "waiting": 7, "cache_used_0_1": 0.5},
    ),
    "llama.cpp": (
        "llamacpp",
        "llamacpp:requests_processing 2\nllamacpp:requests_deferred 5\nllamacpp:requests_deferred_created 1\n",
        {"running": 2, "waiting": 5, "cache_used_0_1": None},
    ),
    "llama.cpp, one of two": (
        "llamacpp",
        "llamacpp:requests_deferred 5\n",
        {"running": None, "waiting": 5, "cache_used_0_1": None},
    ),
    "sglang": (
        "sglang",
        'sglang:num_running_reqs{model_name="m"} 3.0\nsglang:num_queue_reqs{model_name="m"} 4.0\n'
        'sglang:token_usage{model_name="m"} 0.25\nsglang:num_queue_reqs_created{model_name="m"} 1.7e9\n',
        {"running": 3, "waiting": 4, "cache_used_0_1": 0.25},
    ),
    "sglang, other spelling": (
        "sglang",
        'sglang_num_queue_reqs{model_name="m"} 4.0\n',
        {"running": None, "waiting": 4, "cache_used_0_1": None},
    ),
    "nothing known": ("vllm", NOISE, {"running": None, "waiting": None, "cache_used_0_1": None}),
    "only NaN": (
        "vllm",
        'vllm:num_requests_waiting{model_name="m"} NaN\n',
        {"running": None, "waiting": None, "cache_used_0_1": None},
    ),
    "names of the next version": (
        "vllm",
        'vllm_v2:queue_depth{model_name="m"} 9\n',
        {"running": None, "waiting": None, "cache_used_0_1": None},
    ),
}


def scraped(text: str) -> ScriptedBackend:
    async def metrics(request: Received, peer: Peer) -> None:
        body = text.encode()
        await peer.head("200 OK", "Content-Type: text/plain; version=0.0.4", f"Content-Length: {len(body)}")
        await peer.send(body)

    return ScriptedBackend(probes={"/metrics": metrics})


async def figures(router: Running) -> dict[str, Any]:
    document: Any = (await router.admin("GET", "/backends")).json()
    entry: dict[str, Any] = document["backends"][0]
    return entry


@pytest.mark.parametrize(("engine", "text", "expected"), SCRAPES.values(), ids=SCRAPES)
async def test_scrapes(engine: str, text: str, expected: dict[str, float | None]) -> None:
    async with scraped(text) as backend:
        async with router_for((backend, {"engine": engine}), health={"interval": "20ms"}) as router:
            await eventually(lambda: sum(request.target == "/health" for request in backend.probed) >= 3)
            found = await figures(router)
            assert {name: found[name] for name in expected} == expected
            assert found["health"] == "up"
            known = sum(value or 0 for name, value in expected.items() if name != "cache_used_0_1")
            assert found["foreign"] == pytest.approx(known, abs=0.5)
            # What is not known is no series, rather than one that says 0.
            exposed = router.exposition()
            for name, series in (("running", "engine_running"), ("waiting", "engine_waiting")):
                assert (f"twolane_backend_{series}{{" in exposed) is (expected[name] is not None)


async def test_a_server_that_says_nothing_is_not_taken_for_an_idle_one() -> None:
    """Its own calls count, so of two equal backends the one that is known to be busy is not preferred to it."""
    async with scraped(NOISE) as quiet, scraped(TWO_ENGINES + RUNNING) as busy:
        as_vllm = {"engine": "vllm"}
        async with router_for((busy, as_vllm), (quiet, as_vllm), health={"interval": "20ms"}) as router:
            await eventually(lambda: router.metric("twolane_backend_foreign", backend="b0") > 5)
            for _ in range(5):
                body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
                answer = await router.post("/v1/chat/completions", body)
                assert answer.header("x-twolane-backend") == "b1"

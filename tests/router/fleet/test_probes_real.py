"""Probes and discovery against the real llama.cpp server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest

from bench.model_maker import ModelFiles
from bench.servers.engines import LlamaCppServer
from router.engines import ENGINES
from router.engines.api import Answer, Load, Ready
from router.fleet.discover import discover, suggest_yaml
from router.fleet.probes import Prober
from router.settings.backend import Backend
from router.settings.load import parse

pytestmark = pytest.mark.llamacpp


@pytest.fixture(scope="module")
def server(model: ModelFiles) -> Iterator[LlamaCppServer]:
    with LlamaCppServer(model.gguf, slots=2, ctx=2048) as running:
        yield running


@pytest.fixture
async def prober(server: LlamaCppServer) -> AsyncIterator[Prober]:
    asking = Prober(Backend(name="desk", url=server.url + "/v1"), clock=time.monotonic)
    yield asking
    await asking.close()


async def test_it_tells_its_kind_slots_context_and_model(server: LlamaCppServer, prober: Prober) -> None:
    probe = await prober.check()
    assert (probe.readiness, probe.load) == (Ready(), Load(running=0.0, waiting=0.0))
    identity = prober.identity
    assert identity is not None
    assert (identity.engine, identity.slots, identity.models) == ("llamacpp", 2, (server.name,))
    assert identity.context_tokens is not None
    assert identity.version


async def test_running_and_waiting_calls_of_others_show(server: LlamaCppServer, prober: Prober) -> None:
    body = {"prompt": "one two three", "max_tokens": 900, "ignore_eos": True, "stream": True}

    async def call(http: aiohttp.ClientSession) -> None:
        async with http.post(f"{server.url}/v1/completions", json=body) as response:
            await response.read()

    async def load_is(wanted: Load) -> None:
        while (await prober.check()).load != wanted:
            pass

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as http:
        calls = asyncio.gather(*(call(http) for _ in range(6)))
        async with asyncio.timeout(60):
            await load_is(Load(running=2.0, waiting=4.0))
        calls.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls
        async with asyncio.timeout(60):
            await load_is(Load(running=0.0, waiting=0.0))


async def test_a_prompt_that_does_not_fit_is_recognised_as_such(server: LlamaCppServer) -> None:
    body = {"prompt": "word " * 5000, "max_tokens": 1}
    async with aiohttp.ClientSession() as http, http.post(f"{server.url}/v1/completions", json=body) as response:
        answer = Answer(response.status, await response.read())
    assert ENGINES["llamacpp"].context_overflow(answer)


async def test_it_is_found_on_its_port_and_its_settings_are_valid(server: LlamaCppServer) -> None:
    (found,) = await discover([server.port])
    assert (found.url, found.identity.engine) == (server.url, "llamacpp")
    (backend,) = parse(suggest_yaml([found]), "twolane.yaml", env={}).backends
    assert backend.name == f"llamacpp-{server.port}"

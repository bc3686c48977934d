"""Real servers and the real router, as child processes; the servers live as long as the test session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bench.model_maker import ModelFiles
from bench.servers.engines import LlamaCppServer
from bench.servers.router import RouterProcess
from router.tasks import Tasks

QUICK = {"health": {"interval": "200ms", "timeout": "2s"}}
"""Probes often enough for a test to see a change soon."""

StartRouter = Callable[..., RouterProcess]
Spawn = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="session")
def busy_desk(model: ModelFiles, logs: Path) -> Iterator[LlamaCppServer]:
    with LlamaCppServer(model.gguf, slots=2, ctx=8192, log=logs / "desk.log") as server:
        yield server


@pytest.fixture(scope="session")
def busy_rack(model: ModelFiles, logs: Path) -> Iterator[LlamaCppServer]:
    with LlamaCppServer(model.gguf, slots=4, ctx=8192, log=logs / "rack.log") as server:
        yield server


def idle(server: LlamaCppServer) -> LlamaCppServer:
    """The server, once it has noticed that the clients of an earlier test have left."""
    server.process.wait_until(lambda: server.busy_slots() == 0, timeout_s=20, what="idle server")
    return server


@pytest.fixture
def desk(busy_desk: LlamaCppServer) -> LlamaCppServer:
    """llama.cpp with two slots: the latency lane."""
    return idle(busy_desk)


@pytest.fixture
def rack(busy_rack: LlamaCppServer) -> LlamaCppServer:
    """llama.cpp with four slots: the throughput lane."""
    return idle(busy_rack)


@pytest.fixture(scope="session")
def caller(model: ModelFiles, logs: Path) -> Iterator[LlamaCppServer]:
    """llama.cpp with the weights that call a tool whenever a call is required."""
    with LlamaCppServer(model.caller, slots=2, alias="caller", log=logs / "caller.log") as server:
        yield server


@pytest.fixture(scope="session")
def embedder(model: ModelFiles, logs: Path) -> Iterator[LlamaCppServer]:
    """llama.cpp that serves embeddings."""
    extra = ["--embeddings"]
    with LlamaCppServer(model.gguf, slots=1, alias="embedder", extra=extra, log=logs / "embedder.log") as server:
        yield server


def lanes(desk: LlamaCppServer, rack: LlamaCppServer, **more: Any) -> dict[str, Any]:
    """Settings of one server per lane; both know the model by one name, clients may call it `chat` too."""
    return {
        "backends": [
            {"name": "desk", "url": desk.url, "lane": "latency"},
            {"name": "rack", "url": rack.url, "lane": "throughput"},
        ],
        "models": {"chat": {"desk": desk.name, "rack": rack.name}},
        **QUICK,
        **more,
    }


@pytest.fixture(scope="session")
def lasting_router(
    busy_desk: LlamaCppServer, busy_rack: LlamaCppServer, caller: LlamaCppServer, embedder: LlamaCppServer, logs: Path
) -> Iterator[RouterProcess]:
    settings = lanes(busy_desk, busy_rack)
    settings["backends"] += [{"name": "caller", "url": caller.url}, {"name": "embedder", "url": embedder.url}]
    folder = logs / "router"
    folder.mkdir()
    with RouterProcess(settings, folder=folder) as router:
        router.process.wait_until(
            lambda: all(row["health"] == "up" for row in router.backends().values()), timeout_s=20, what="four backends"
        )
        yield router


@pytest.fixture
def two_lanes(lasting_router: RouterProcess, desk: LlamaCppServer, rack: LlamaCppServer) -> RouterProcess:
    """A router that no test changes: desk, rack, and two servers for what these cannot do. All is idle at first."""
    lasting_router.process.wait_until(
        lambda: all(row["own"] + row["foreign"] < 0.1 for row in lasting_router.backends().values()),
        timeout_s=20,
        what="idle router",
    )
    return lasting_router


@pytest.fixture
def start_router(tmp_path: Path) -> Iterator[StartRouter]:
    """Start a router with the given settings; it ends with the test."""
    with ExitStack() as running:

        def start(settings: dict[str, Any] | None = None, **options: Any) -> RouterProcess:
            folder = tmp_path / f"router-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            return running.enter_context(RouterProcess(settings, folder=folder, **options))

        yield start


@pytest.fixture
async def spawn() -> AsyncIterator[Spawn]:
    """Run a coroutine beside the test; it ends with the test at the latest."""
    tasks = Tasks()
    yield lambda work: tasks.spawn(work, name="beside the test")
    await tasks.close()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        yield session
        await asyncio.sleep(0)  # lets closed transports say so

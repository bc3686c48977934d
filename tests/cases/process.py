"""The router as a process of its own, in front of scripted backends: where memory or signals matter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.servers.router import RouterProcess
from tests.rawclient import RawClient
from tests.scripted import ScriptedBackend

_PAGE_BYTES = 4096


@asynccontextmanager
async def router_process(
    folder: Path, *backends: ScriptedBackend, env: Mapping[str, str] | None = None, **rest: Any
) -> AsyncIterator[RouterProcess]:
    """A router with these backends (b0, b1, ...), one of which it has found usable."""
    entries = [
        {"name": f"b{number}", "url": backend.url, "engine": "openai", "lane": "latency"}
        for number, backend in enumerate(backends)
    ]
    # Started in a thread, since the backends answer its probes from this event loop.
    process = await asyncio.to_thread(RouterProcess, {"backends": entries, **rest}, folder=folder, env=env)
    try:
        yield process
    finally:
        await asyncio.to_thread(process.stop)


async def connect(router: RouterProcess) -> RawClient:
    return await RawClient.connect(int(router.url.rpartition(":")[2]))


def resident_bytes(router: RouterProcess) -> int:
    """Memory that the process holds."""
    return int(Path(f"/proc/{router.process.pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES

"""A whole router inside the test's event loop, on free ports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from router.app import App
from router.settings.model import Settings
from tests.rawclient import Answer, RawClient
from tests.scripted import ScriptedBackend, eventually

FREE_PORT = "127.0.0.1:0"


@dataclass
class Running:
    """The router and its ports."""

    app: App
    port: int
    admin_port: int

    async def client(self) -> RawClient:
        return await RawClient.connect(self.port)

    async def post(self, target: str, document: object, *fields: str) -> Answer:
        async with await self.client() as client:
            await client.post(target, document, *fields)
            return await client.answer()

    async def get(self, target: str, *fields: str) -> Answer:
        async with await self.client() as client:
            await client.request("GET", target, None, *fields)
            return await client.answer()

    async def admin(self, method: str, target: str, body: bytes | None = None, *fields: str) -> Answer:
        async with await RawClient.connect(self.admin_port) as client:
            await client.request(method, target, body, *fields)
            return await client.answer()

    def exposition(self) -> str:
        """What a scraper would be given now."""
        return b"".join(self.app.exposed(openmetrics=False)).decode()

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the samples of that name with these labels; 0 where there is none."""
        families = text_string_to_metric_families(self.exposition())
        samples = (sample for family in families for sample in family.samples if sample.name == name)
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())

    @property
    def idle(self) -> bool:
        """Nothing is open, nothing waits."""
        app = self.app
        open_calls = app.gateway.open_calls + app.arrivals.open_calls
        return not (len(app.fleet.ledger) or len(app.line) or open_calls)


def settings_for(*backends: ScriptedBackend | tuple[ScriptedBackend, dict[str, Any]], **rest: Any) -> Settings:
    """Settings for scripted backends, named b0, b1, ...; options per backend in a tuple."""
    entries = []
    for number, given in enumerate(backends):
        backend, options = given if isinstance(given, tuple) else (given, {})
        entries.append({"name": f"b{number}", "url": backend.url, "engine": "openai", "lane": "latency", **options})
    return Settings.model_validate({"listen": FREE_PORT, "admin": FREE_PORT, "backends": entries, **rest})


@asynccontextmanager
async def router_for(
    *backends: ScriptedBackend | tuple[ScriptedBackend, dict[str, Any]],
    path: Path | None = None,
    digest: str | None = None,
    **rest: Any,
) -> AsyncIterator[Running]:
    """A running router in front of these backends; checks at the end that nothing was left open.

    `path` is read on reload, and when it has another digest than this one (None: than when the router had started).
    """
    app = App(settings_for(*backends, **rest), path, digest)
    listen, admin = await app.start()
    assert admin is not None
    running = Running(app, listen.port, admin.port)
    try:
        yield running
        await eventually(lambda: running.idle)
    finally:
        await app.close()

"""The admin port: figures, explain, reload, drain. An aiohttp application: nothing here is on the hot path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS
from pydantic import SecretStr

from router.admin.guard import KNOWN, Guard, is_page
from router.admin.page import PageHandlers, Shown, index, json_response, read_json
from router.errors import RouterError, Unauthorized
from router.explain import error_document
from router.observe.steps import Steps, in_turns
from router.pipelines.overview import Overview
from router.pipelines.pages import Pages

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Operations(Protocol):
    """What the admin port may ask of the application and make it do."""

    def exposed(self, *, openmetrics: bool) -> Iterator[bytes]: ...

    def health(self) -> dict[str, Any]: ...

    def ready(self) -> tuple[bool, dict[str, Any]]: ...

    def backends(self) -> list[dict[str, Any]]: ...

    def config(self) -> dict[str, Any]: ...

    def explain(self, asked: object) -> dict[str, Any]: ...

    async def reload(self) -> dict[str, Any]: ...

    def start_drain(self) -> dict[str, Any]: ...

    def admin_key(self) -> SecretStr | None: ...


class Admin:
    """The handlers; `application` wires them to their paths."""

    def __init__(self, operations: Operations, shown: Shown) -> None:
        self._operations = operations
        self._page = PageHandlers(shown)
        self._guard = Guard(operations.admin_key)

    def application(self, pipelines: Overview | None = None) -> web.Application:
        app = web.Application(middlewares=[_errors_as_json, self._guarded])
        app.router.add_get("/", self._index)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/health", self._health)
        app.router.add_get("/ready", self._ready)
        app.router.add_get("/backends", self._backends)
        app.router.add_get("/config", self._config)
        app.router.add_post("/explain", self._explain)
        app.router.add_post("/reload", self._reload)
        app.router.add_post("/drain", self._drain)
        self._page.add_to(app)
        if pipelines is not None:
            Pages(pipelines).add_to(app)
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._guard.check(request)
        return await handler(request)

    async def _index(self, request: web.Request) -> web.StreamResponse:
        if is_page(request):
            return index(request)
        paths = sorted(
            f"{route.method} {route.resource.canonical}"
            for route in request.app.router.routes()
            if route.resource is not None and route.method != "HEAD" and route.resource.canonical != "/"
        )
        return json_response({"service": "twolane admin", "paths": paths})

    async def _metrics(self, request: web.Request) -> web.Response:
        """OpenMetrics where the scraper asks for it: only there trace ids stand beside the figures."""
        openmetrics = "application/openmetrics-text" in request.headers.get("Accept", "")
        # Many series take milliseconds, and streams do not wait for them.
        text = await in_turns(_joined(self._operations.exposed(openmetrics=openmetrics)))
        content_type = OPENMETRICS if openmetrics else CONTENT_TYPE_LATEST
        return web.Response(body=text, headers={"Content-Type": content_type})

    async def _health(self, request: web.Request) -> web.Response:
        document = self._operations.health()
        return json_response(document if request[KNOWN] else {"status": document["status"]})

    async def _ready(self, request: web.Request) -> web.Response:
        ready, document = self._operations.ready()
        return json_response(document if request[KNOWN] else {"ready": ready}, status=200 if ready else 503)

    async def _backends(self, request: web.Request) -> web.Response:
        return json_response({"backends": self._operations.backends()})

    async def _config(self, request: web.Request) -> web.Response:
        return json_response(self._operations.config())

    async def _explain(self, request: web.Request) -> web.Response:
        asked = read_json(await request.read())
        return json_response(self._operations.explain(asked))

    async def _reload(self, request: web.Request) -> web.Response:
        document = await self._operations.reload()
        return json_response(document, status=200 if document["reloaded"] else 422)

    async def _drain(self, request: web.Request) -> web.Response:
        return json_response(self._operations.start_drain(), status=202)


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except RouterError as error:
        answer = json_response(error_document(error), status=error.status)
        if isinstance(error, Unauthorized):
            answer.headers["WWW-Authenticate"] = "Bearer"
        return answer
    except web.HTTPException as error:
        hint = "GET / lists what exists" if error.status == 404 else (error.reason or "")
        return json_response({"error": {"code": error.status, "message": hint}}, status=error.status)


def _joined(parts: Iterator[bytes]) -> Steps[bytes]:
    found = []
    for part in parts:
        found.append(part)
        yield
    return b"".join(found)

"""The page at the admin port: its files, its stream of figures, and what its buttons do."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import orjson
from aiohttp import web

from router.admin.guard import ASSETS
from router.dashboard.assets import HEADERS, Asset, assets
from router.dashboard.events import Page
from router.errors import BadRequest

_STREAM = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_LONGEST_NAME = 200


class Tried(Protocol):
    """Other settings against the last hour."""

    async def document(self) -> dict[str, Any]: ...

    async def try_out(self, text: object) -> dict[str, Any]: ...


class Shown(Protocol):
    """What the page may ask for and do."""

    async def figures(self) -> dict[str, Any]: ...

    def decisions(self, after: int) -> dict[str, Any]: ...

    async def past(self, hours: float) -> dict[str, Any]: ...

    def page(self) -> AbstractAsyncContextManager[Page]: ...

    def drain(self, name: str, drained: bool) -> dict[str, Any]: ...

    @property
    def what_if(self) -> Tried: ...


def json_response(document: object, *, status: int = 200) -> web.Response:
    body = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return web.Response(
        body=body, status=status, content_type="application/json", headers={"Cache-Control": "no-store"}
    )


def index(request: web.Request) -> web.StreamResponse:
    return _file(request, assets()["index.html"])


class PageHandlers:
    """`add_to` wires them to their paths."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def add_to(self, app: web.Application) -> None:
        app.router.add_get(ASSETS + "{name}", self._asset)
        app.router.add_get("/events", self._events, allow_head=False)
        app.router.add_get("/figures", self._figures)
        app.router.add_get("/history", self._history)
        app.router.add_get("/decisions", self._decisions)
        app.router.add_post("/backends/{name}/drain", self._drain)
        app.router.add_post("/backends/{name}/undrain", self._undrain)
        app.router.add_get("/what-if", self._what_if)
        app.router.add_post("/what-if", self._try_out)

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        asset = assets().get(request.match_info["name"])
        if asset is None:
            raise web.HTTPNotFound
        return _file(request, asset)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        async with self._shown.page() as page:
            response = web.StreamResponse(headers=_STREAM)
            await response.prepare(request)
            try:
                while (frame := await page.frame()) is not None:
                    await response.write(frame)
            except ConnectionError:
                pass
            return response

    async def _figures(self, request: web.Request) -> web.Response:
        return json_response(await self._shown.figures())

    async def _history(self, request: web.Request) -> web.Response:
        return json_response(await self._shown.past(_number(request, "hours", 24.0)))

    async def _decisions(self, request: web.Request) -> web.Response:
        return json_response(self._shown.decisions(int(_number(request, "after", 0.0))))

    async def _drain(self, request: web.Request) -> web.Response:
        return json_response(self._shown.drain(request.match_info["name"][:_LONGEST_NAME], True))

    async def _undrain(self, request: web.Request) -> web.Response:
        return json_response(self._shown.drain(request.match_info["name"][:_LONGEST_NAME], False))

    async def _what_if(self, request: web.Request) -> web.Response:
        return json_response(await self._shown.what_if.document())

    async def _try_out(self, request: web.Request) -> web.Response:
        """`{"yaml": TEXT}`; the answer comes when the replay has ended."""
        asked = read_json(await request.read())
        return json_response(await self._shown.what_if.try_out(asked.get("yaml") if isinstance(asked, dict) else None))


def read_json(body: bytes) -> Any:
    """Raises `BadRequest`."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from error


def _number(request: web.Request, name: str, default: float) -> float:
    """Of the query. Raises `BadRequest`."""
    text = request.query.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e12:
        raise BadRequest(f"{name} has to be a number from 0", param=name)
    return value


def _file(request: web.Request, asset: Asset) -> web.StreamResponse:
    headers = {**HEADERS, "ETag": asset.etag}
    if request.headers.get("If-None-Match") == asset.etag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=asset.body, content_type=asset.content_type, charset="utf-8", headers=headers)

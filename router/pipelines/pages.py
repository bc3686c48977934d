"""`GET /pipelines` and what is below it on the admin port."""

from __future__ import annotations

import orjson
from aiohttp import web

from router.pipelines.gantt import gantt
from router.pipelines.overview import Overview


class Pages:
    """The handlers."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/pipelines", self._all)
        app.router.add_get("/pipelines/{id}.svg", self._picture)
        app.router.add_get("/pipelines/{id}", self._one)

    async def _all(self, request: web.Request) -> web.Response:
        return _json(self._overview.document())

    async def _one(self, request: web.Request) -> web.Response:
        document = self._overview.detail(request.match_info["id"])
        return _json(document) if document is not None else _unknown()

    async def _picture(self, request: web.Request) -> web.Response:
        document = self._overview.detail(request.match_info["id"])
        if document is None:
            return _unknown()
        return web.Response(text=gantt(document), content_type="image/svg+xml")


def _json(document: object, status: int = 200) -> web.Response:
    body = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return web.Response(body=body, status=status, content_type="application/json")


def _unknown() -> web.Response:
    why = "no pipeline with this id is known (any more); GET /pipelines lists those that are"
    return _json({"error": {"code": 404, "message": why}}, 404)

"""The proxy that one writes in Python in an afternoon, for comparison: aiohttp's server and client on uvloop.

`python -m bench.plain_proxy --port PORT --backend http://HOST:PORT`. It reads the request, sends it on with a shared
`ClientSession` and streams the answer back. It classifies nothing, chooses nothing and counts nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator

import uvloop
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web

BACKEND = web.AppKey("BACKEND", str)
SESSION = web.AppKey("SESSION", ClientSession)
HOP_BY_HOP = frozenset({"host", "connection", "keep-alive", "transfer-encoding", "content-length", "te", "upgrade"})


async def relay(request: web.Request) -> web.StreamResponse:
    headers = [(name, value) for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP]
    async with request.app[SESSION].request(
        request.method, request.app[BACKEND] + request.path_qs, headers=headers, data=await request.read()
    ) as answer:
        kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP]
        response = web.StreamResponse(status=answer.status)
        response.headers.extend(kept)
        if answer.content_length is not None:
            response.content_length = answer.content_length
        await response.prepare(request)
        async for piece in answer.content.iter_any():
            await response.write(piece)
        await response.write_eof()
        return response


async def _session(app: web.Application) -> AsyncIterator[None]:
    async with ClientSession(
        connector=TCPConnector(limit=0),
        timeout=ClientTimeout(total=None),
        auto_decompress=False,
        cookie_jar=DummyCookieJar(),
    ) as session:
        app[SESSION] = session
        yield


def application(backend: str) -> web.Application:
    app = web.Application(client_max_size=2**26)
    app[BACKEND] = backend
    app.cleanup_ctx.append(_session)
    app.router.add_route("*", "/{path:.*}", relay)
    return app


def main() -> None:
    options = argparse.ArgumentParser(description="A plain aiohttp proxy for comparison.")
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--backend", required=True)
    given = options.parse_args()
    web.run_app(
        application(given.backend),
        host="127.0.0.1",
        port=given.port,
        access_log=None,
        print=None,
        loop=uvloop.new_event_loop(),
    )


if __name__ == "__main__":
    main()

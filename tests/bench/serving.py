"""Servers for the tests of this folder that leave no connection open behind them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bench.scripted_backend import ScriptedServer


class Always(asyncio.Protocol):
    """Says the same to every piece of a request, and hangs up afterwards if told so."""

    def __init__(self, response: bytes, *, hang_up: bool = False) -> None:
        self._response = response
        self._hang_up = hang_up

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._response)
        if self._hang_up:
            self._transport.close()


@asynccontextmanager
async def serving(make: Callable[[], asyncio.Protocol] = ScriptedServer) -> AsyncIterator[int]:
    """The port of a server whose connections are handled by what `make` makes."""
    transports: dict[asyncio.BaseTransport, asyncio.Event] = {}

    def tracked() -> asyncio.Protocol:
        protocol = make()
        made, lost = protocol.connection_made, protocol.connection_lost
        ended = asyncio.Event()

        def connection_made(transport: asyncio.BaseTransport) -> None:
            transports[transport] = ended
            made(transport)

        def connection_lost(exc: Exception | None) -> None:
            lost(exc)
            ended.set()

        protocol.connection_made = connection_made  # type: ignore[method-assign]
        protocol.connection_lost = connection_lost  # type: ignore[method-assign]
        return protocol

    server = await asyncio.get_running_loop().create_server(tracked, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    for transport, ended in transports.items():
        transport.close()
        await ended.wait()

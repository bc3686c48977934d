"""The server side of the data plane: listens, owns the connections, drains.

Read on in `server_connection` (the life of a connection), `request_reader` (bytes in, one request out) and
`server_exchange` (the response).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import Any, Final

from router.wire.listening import BACKLOG, EVERY_ADDRESS, SocketFile, every_address
from router.wire.refusal import Shape
from router.wire.server_connection import ClientPatience, Handler, ServerConnection

PATIENCE: Final = ClientPatience()
CLOSE_GRACE_S: Final = 1.0
"""For handlers to end and for what was written to leave, each."""
UNSENT_LIMIT_BYTES: Final = 256 * 1024
"""What the kernel takes for a client before the network does. Its own limit is megabytes: twenty clients that do not
read, with as many backends that write fast, held up everybody else for 0.4 s until those megabytes were full."""
HANDSHAKE_S: Final = 10.0
"""For TLS to stand; until then a client is no connection of ours."""


class HttpServer:
    """Hands each request to `handler`, one task each; a client that leaves cancels it."""

    def __init__(
        self,
        handler: Handler,
        *,
        max_header_bytes: int,
        patience: ClientPatience = PATIENCE,
        shape: Shape | None = None,
    ) -> None:
        """`shape`: see `ServerConnection`."""
        self._shape = shape
        self._handler = handler
        self._max_header_bytes = max_header_bytes
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._open: set[ServerConnection] = set()
        self._stopped = False
        self._empty: asyncio.Event | None = None
        self._listener: asyncio.Server | None = None
        self._socket_file: SocketFile | None = None

    async def listen(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        """Accept connections; returns the port (chosen by the system where `port` is 0). Raises `OSError`."""
        where: dict[str, Any] = {"host": host, "port": port}
        if host == EVERY_ADDRESS:
            where = {"sock": every_address(port)}
        if tls is not None:
            where |= {"ssl": tls, "ssl_handshake_timeout": HANDSHAKE_S, "ssl_shutdown_timeout": self._patience.linger_s}
        self._listener = await self._loop.create_server(self._connection, **where, backlog=BACKLOG)
        for sock in self._listener.sockets:  # accepted sockets inherit both
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # clients that vanished are noticed
            if hasattr(socket, "TCP_NOTSENT_LOWAT"):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_LIMIT_BYTES)
        return int(self._listener.sockets[0].getsockname()[1])

    async def listen_unix(self, path: str, mode: int) -> None:
        """Accept connections on a unix socket with these permissions. Raises `OSError`."""
        self._socket_file = SocketFile(path, mode)
        self._listener = await self._loop.create_unix_server(
            self._connection, sock=self._socket_file.sock, backlog=BACKLOG
        )

    def _connection(self) -> ServerConnection:
        return ServerConnection(
            self._loop,
            self._handler,
            self._begun,
            self._ended,
            max_header_bytes=self._max_header_bytes,
            patience=self._patience,
            shape=self._shape,
        )

    def _begun(self, connection: ServerConnection) -> None:
        self._open.add(connection)
        if self._stopped:  # accepted, but not told to us, before the listener was closed
            connection.drain()

    def _ended(self, connection: ServerConnection) -> None:
        self._open.discard(connection)
        if self._empty is not None and not self._open:
            self._empty.set()

    @property
    def connections(self) -> int:
        return len(self._open)

    def stop_accepting(self) -> None:
        """Refuse new connections and close idle ones; running calls go on, and their connections end with them."""
        self._stopped = True
        if self._listener is not None:
            self._listener.close()
        if self._socket_file is not None:
            self._socket_file.remove()
        for connection in tuple(self._open):
            connection.drain()

    async def close(self) -> None:
        """End everything: handlers are cancelled, and what they wrote leaves if the clients read it soon."""
        self.stop_accepting()
        await self._end_tasks()
        for connection in tuple(self._open):
            connection.close()
        if self._open:
            self._empty = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), CLOSE_GRACE_S)
        for connection in tuple(self._open):
            connection.abort()

    async def _end_tasks(self) -> None:
        """Those that were told to end already get a moment for it."""
        tasks = [connection.task for connection in self._open if connection.task is not None]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=CLOSE_GRACE_S)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=CLOSE_GRACE_S)

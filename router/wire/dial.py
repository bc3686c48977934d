"""From the name of a backend to an open connection."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from aiohappyeyeballs import AddrInfoType, start_connection

from router.errors import BackendUnreachable, OutOfSockets
from router.tls import client_context
from router.wire.origin import Origin

ADDRESSES_LIVE_S = 2.0
"""A name is asked again after this long, so that a container that came back elsewhere is found."""

_NEXT_ADDRESS_AFTER_S = 0.1
"""An address that does not answer holds up the next one (::1, then 127.0.0.1) only this long."""

_PROBE_AFTER_IDLE_S = 60
_PROBE_EVERY_S = 15

_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What the system lacks when no connection can be made whatever the backend does."""

Resolve = Callable[[str, int], Awaitable[Sequence[AddrInfoType]]]
ProtocolT = TypeVar("ProtocolT", bound=asyncio.BaseProtocol)


class Dialer:
    """Opens connections to one origin. Holds no socket."""

    def __init__(
        self,
        origin: Origin,
        loop: asyncio.AbstractEventLoop,
        *,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self._origin = origin
        self._loop = loop
        self._tls = (tls or client_context()) if origin.tls else None
        self._resolve = resolve or self._ask_system
        self._literal = _literal_address(origin) if resolve is None and not origin.path else None
        self._addresses: Sequence[AddrInfoType] = ()
        self._asked_at_s = 0.0
        self._asking = asyncio.Lock()

    async def dial(self, protocol: Callable[[socket.socket], ProtocolT], limit_s: float) -> ProtocolT:
        """Resolve, connect, and shake hands where the origin wants TLS. Raises `BackendUnreachable`, or `OutOfSockets`
        where that is not the backend's fault.
        """
        try:
            async with asyncio.timeout(limit_s):
                sock = await self._connect()
                return await self._adopt(sock, protocol)
        except TimeoutError as error:
            raise BackendUnreachable(
                f"the backend accepted no connection within {limit_s:g} s (timeouts.connect); is its host up?"
            ) from error
        except socket.gaierror as error:
            raise BackendUnreachable("the backend's host name is unknown; check its url") from error
        except ssl.SSLCertVerificationError as error:
            raise BackendUnreachable(
                f"the backend's certificate cannot be trusted ({error.verify_message}); see ca_file"
            ) from error
        except ssl.SSLError as error:
            raise BackendUnreachable("the TLS handshake with the backend failed; does it speak https there?") from error
        except ConnectionRefusedError as error:
            raise BackendUnreachable("the backend refused the connection; is the server running?") from error
        except FileNotFoundError as error:
            raise BackendUnreachable("the backend's socket is not there; is the server running?") from error
        except (OSError, RuntimeError) as error:  # uvloop raises RuntimeError for some failed connects
            if isinstance(error, OSError) and error.errno in _OURS:
                raise OutOfSockets(
                    "the router may have no more sockets open; raise its limit (ulimit -n, LimitNOFILE)",
                    retry_after_s=2.0,
                ) from error
            raise BackendUnreachable("the backend cannot be reached") from error

    async def _connect(self) -> socket.socket:
        if self._origin.path:
            return await self._connect_unix()
        if self._literal is not None:
            return await self._start(self._literal)
        used = self._fresh_addresses()
        if used:
            try:
                return await self._start(used)
            except (OSError, RuntimeError):
                self._addresses = ()  # they were remembered; the name may mean others by now
        return await self._start(await self._look_up())

    async def _connect_unix(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            await self._loop.sock_connect(sock, self._origin.path)
        except BaseException:
            sock.close()
            raise
        return sock

    async def _start(self, addresses: Sequence[AddrInfoType]) -> socket.socket:
        try:
            return await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS_AFTER_S, loop=self._loop)
        except OSError as error:
            # It keeps the frames that it came through, one of which keeps it, and so would all that waits here.
            error.__traceback__ = None
            raise

    async def _adopt(self, sock: socket.socket, protocol: Callable[[socket.socket], ProtocolT]) -> ProtocolT:
        try:
            if sock.family == socket.AF_UNIX:
                return (await self._loop.create_unix_connection(lambda: protocol(sock), sock=sock))[1]
            _prepare(sock)
            _, made = await self._loop.create_connection(
                lambda: protocol(sock),
                sock=sock,
                ssl=self._tls,
                server_hostname=self._origin.host if self._tls is not None else None,
            )
        except BaseException:
            sock.close()
            raise
        return made

    def _fresh_addresses(self) -> Sequence[AddrInfoType]:
        return self._addresses if self._loop.time() < self._asked_at_s + ADDRESSES_LIVE_S else ()

    async def _look_up(self) -> Sequence[AddrInfoType]:
        async with self._asking:  # many calls at once ask once
            if not self._fresh_addresses():
                self._addresses = await self._resolve(self._origin.host, self._origin.port)
                self._asked_at_s = self._loop.time()
            return self._addresses

    async def _ask_system(self, host: str, port: int) -> Sequence[AddrInfoType]:
        return await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def _literal_address(origin: Origin) -> Sequence[AddrInfoType] | None:
    """An address that needs no resolver, which would cost a turn in a thread; None for a name."""
    try:
        return socket.getaddrinfo(
            origin.host, origin.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except socket.gaierror:
        return None


def _prepare(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):  # the system's own two hours would find a dead host too late
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_AFTER_IDLE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_EVERY_S)

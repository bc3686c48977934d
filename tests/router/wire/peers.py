"""The backend's end of a connection as a bare socket: nothing is read, sent or closed but by the test itself."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, TypeVar

from router.wire.api import Patience, UpstreamRequest

T = TypeVar("T")

PATIENCE = Patience(connect_s=5.0, first_byte_s=5.0, idle_s=5.0)
POST = UpstreamRequest(method="POST", target="/v1/chat/completions", headers=[(b"Accept", b"*/*")], body=b'{"n":1}')
GET = UpstreamRequest(method="GET", target="/v1/models", headers=[], body=b"")

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"

_LENGTH = re.compile(rb"\r\nContent-Length: (\d+)\r\n")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Peer:
    """One accepted connection."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()

    async def request(self) -> bytes:
        """Read one request, head and body, and not a byte more."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += await self.read(1)
        length = _LENGTH.search(head)
        return head + await self.read(int(length[1]) if length else 0)

    async def arrived(self) -> None:
        """Return when bytes wait to be read; they stay there."""
        await until(lambda: bool(self._peek()))

    def _peek(self) -> bytes:
        with contextlib.suppress(BlockingIOError):
            return self._sock.recv(1, socket.MSG_PEEK)
        return b""

    async def read(self, size: int) -> bytes:
        parts = []
        while size > 0:
            part = await self._loop.sock_recv(self._sock, min(size, 1 << 20))
            assert part, "the router closed the connection"
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._sock, data)

    async def answer(self, data: bytes = OK) -> bytes:
        """Read a request and answer it; returns the request."""
        request = await self.request()
        await self.send(data)
        return request

    def send_at_once(self, data: bytes) -> int:
        """What the kernel takes now; 0 when the way is full."""
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0

    async def closed(self, within_s: float = 2.0) -> bool:
        """Whether the router closes its end; whatever it still sends is thrown away."""
        try:
            async with asyncio.timeout(within_s):
                while await self._loop.sock_recv(self._sock, 65536):
                    pass
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True
        return True

    def close(self) -> None:
        """A FIN, or a reset if bytes are unread: as the kernel sees fit."""
        self._sock.close()

    def reset(self) -> None:
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()


class Backend:
    """A listening socket. Use as a context manager; closes what the test left open."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=1024)
        self._listener.setblocking(False)
        self._peers: list[Peer] = []
        self.port: int = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def accept(self) -> Peer:
        async with asyncio.timeout(5):
            sock, _ = await asyncio.get_running_loop().sock_accept(self._listener)
        peer = Peer(sock)
        self._peers.append(peer)
        return peer

    def nobody_waits(self) -> bool:
        """No connection is waiting to be accepted."""
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:
            return True
        sock.close()
        return False

    def stop_listening(self) -> None:
        self._listener.close()

    def close(self) -> None:
        self._listener.close()
        for peer in self._peers:
            with contextlib.suppress(OSError):
                peer.close()

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Sink:
    """The client's side: keeps what it is given, and is slow when told so. It can also look on."""

    def __init__(self) -> None:
        self.straight: Callable[[bytes], None] | None = None
        self.pieces: list[bytes] = []
        self.shown: list[list[bytes]] = []
        self.shown_at_s: list[float] = []
        self.keep_s = 0.0
        self.ready = True
        self.may_drain = asyncio.Event()
        self.waits = 0

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def write(self, data: bytes) -> bool:
        self.pieces.append(data)
        return self.ready

    async def drained(self) -> None:
        self.waits += 1
        await self.may_drain.wait()

    def look(self, pieces: list[bytes], at_s: list[float]) -> float:
        self.shown.append(pieces)
        self.shown_at_s += at_s
        return self.keep_s


def running(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a call beside the test, which awaits it."""
    return asyncio.get_running_loop().create_task(work)


async def until(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    """Let the loop turn until `condition` holds."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.001)

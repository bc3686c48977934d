"""From a name to a connection: two address families, a changed address, limits, TLS."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from aiohappyeyeballs import AddrInfoType

from router.errors import BackendUnreachable, OutOfSockets
from router.wire import dial
from router.wire.dial import ADDRESSES_LIVE_S, Dialer
from router.wire.origin import Origin
from tests.router.wire.peers import Backend, running, until


class Opened(asyncio.Protocol):
    """What is dialled for: a protocol that knows its socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.transport: asyncio.Transport | None = None
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True

    async def close(self) -> None:
        assert self.transport is not None
        self.transport.abort()
        await until(lambda: self.lost)


class Names:
    """A name service that a test edits."""

    def __init__(self, *hosts: str) -> None:
        self.hosts = hosts
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[AddrInfoType]:
        self.asked += 1
        await asyncio.sleep(0)
        if not self.hosts:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [
            (
                socket.AF_INET6 if ":" in name else socket.AF_INET,
                socket.SOCK_STREAM,
                socket.IPPROTO_TCP,
                "",
                (name, port),
            )
            for name in self.hosts
        ]


def dialer(port: int, names: Names, **options: ssl.SSLContext) -> Dialer:
    origin = Origin(tls="tls" in options, host="rack.example", port=port)
    return Dialer(origin, asyncio.get_running_loop(), resolve=names, **options)


async def test_a_literal_address_is_dialled_without_asking_for_names() -> None:
    with Backend() as backend:
        opened = await Dialer(Origin.of(backend.url), asyncio.get_running_loop()).dial(Opened, 1.0)
        assert opened.sock.getpeername() == ("127.0.0.1", backend.port)
        await opened.close()


async def test_a_literal_ipv6_address_is_dialled() -> None:
    with Backend("::1") as backend:
        origin = Origin.of(f"http://[::1]:{backend.port}")
        opened = await Dialer(origin, asyncio.get_running_loop()).dial(Opened, 1.0)
        assert opened.sock.getpeername()[0] == "::1"
        await opened.close()


@pytest.mark.parametrize("listening", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("order", [("::1", "127.0.0.1"), ("127.0.0.1", "::1")])
async def test_a_name_with_two_addresses_is_reached_at_once_where_one_listens(
    listening: str, order: tuple[str, str]
) -> None:
    loop = asyncio.get_running_loop()
    with Backend(listening) as backend:
        started_s = loop.time()
        opened = await dialer(backend.port, Names(*order)).dial(Opened, 1.0)
        assert loop.time() - started_s < 0.25
        assert opened.sock.getpeername()[0] == listening
        await opened.close()


async def test_localhost_is_reached_whatever_it_resolves_to() -> None:
    with Backend() as backend:
        origin = Origin.of(f"http://localhost:{backend.port}")
        opened = await Dialer(origin, asyncio.get_running_loop()).dial(Opened, 1.0)
        await opened.close()


async def test_an_address_that_does_not_answer_holds_up_the_next_one_only_briefly() -> None:
    loop = asyncio.get_running_loop()
    with Backend() as backend, full_listener("127.0.0.2", backend.port):
        started_s = loop.time()
        opened = await dialer(backend.port, Names("127.0.0.2", "127.0.0.1")).dial(Opened, 2.0)
        assert loop.time() - started_s < 0.25
        assert opened.sock.getpeername()[0] == "127.0.0.1"
        await opened.close()


class full_listener:
    """A port whose queue is full: connects hang there, as on a host that drops packets."""

    def __init__(self, host: str, port: int) -> None:
        self.listener = socket.create_server((host, port), backlog=0)
        self.queued: list[socket.socket] = []

    def __enter__(self) -> None:
        for _ in range(4):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(self.listener.getsockname())
            self.queued.append(sock)

    def __exit__(self, *exc: object) -> None:
        for sock in (self.listener, *self.queued):
            sock.close()


async def test_a_new_address_is_used_without_a_restart() -> None:
    names = Names("127.0.0.1")
    with Backend("127.0.0.1") as old:
        target = dialer(old.port, names)
        await (await target.dial(Opened, 1.0)).close()
        old.stop_listening()
        names.hosts = ("127.0.0.2",)
        with Backend("127.0.0.2", old.port):
            opened = await target.dial(Opened, 1.0)
            assert opened.sock.getpeername()[0] == "127.0.0.2"
            await opened.close()


async def test_addresses_are_remembered_for_a_moment_and_asked_for_once() -> None:
    assert ADDRESSES_LIVE_S <= 5
    names = Names("127.0.0.1")
    with Backend() as backend:
        target = dialer(backend.port, names)
        opened = await asyncio.gather(*(target.dial(Opened, 1.0) for _ in range(20)))
        assert names.asked == 1
        for one in opened:
            await one.close()


async def test_a_refused_connection_says_so() -> None:
    with Backend() as backend:
        port = backend.port
    with pytest.raises(BackendUnreachable, match="refused") as caught:
        await Dialer(Origin.of(f"http://127.0.0.1:{port}"), asyncio.get_running_loop()).dial(Opened, 1.0)
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)


async def test_an_unknown_name_says_so() -> None:
    with pytest.raises(BackendUnreachable, match="unknown"):
        await dialer(1, Names()).dial(Opened, 1.0)


async def test_the_connect_limit_covers_names_connects_and_handshakes() -> None:
    class Silent(Names):
        async def __call__(self, host: str, port: int) -> Sequence[AddrInfoType]:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    with Backend() as backend, full_listener("127.0.0.2", backend.port):
        trusting = ssl.create_default_context()
        for target in (
            dialer(backend.port, Silent()),
            dialer(backend.port, Names("127.0.0.2")),
            dialer(backend.port, Names("127.0.0.1"), tls=trusting),
        ):
            with pytest.raises(BackendUnreachable, match=r"timeouts\.connect"):
                await target.dial(Opened, 0.05)


async def test_a_cancelled_dial_leaves_nothing_open() -> None:
    with Backend() as backend:
        trusting = ssl.create_default_context()
        dialling = running(dialer(backend.port, Names("127.0.0.1"), tls=trusting).dial(Opened, 5.0))
        peer = await backend.accept()
        dialling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dialling
        assert await peer.closed()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of `rack.example` and its key, made on the spot."""
    directory = tmp_path_factory.mktemp("tls")
    cert, key = directory / "cert.pem", directory / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=rack.example", "-addext", "subjectAltName=DNS:rack.example"]
    try:
        subprocess.run([*command, "-keyout", key, "-out", cert], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl here to make a certificate with")
    return cert, key


async def tls_echo(certificate: tuple[Path, Path]) -> asyncio.Server:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(100))
        await writer.drain()
        writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    return await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context)


async def test_https_shakes_hands_with_a_backend_whose_certificate_is_trusted(certificate: tuple[Path, Path]) -> None:
    server = await tls_echo(certificate)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    port = server.sockets[0].getsockname()[1]
    opened = await dialer(port, Names("127.0.0.1"), tls=trusting).dial(Opened, 2.0)
    assert opened.transport is not None
    assert opened.transport.get_extra_info("ssl_object") is not None
    await opened.close()
    server.close()


async def test_https_refuses_a_certificate_that_nobody_vouches_for(certificate: tuple[Path, Path]) -> None:
    server = await tls_echo(certificate)
    strict = ssl.create_default_context()
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(BackendUnreachable, match="certificate"):
        await dialer(port, Names("127.0.0.1"), tls=strict).dial(Opened, 2.0)
    server.close()


async def test_a_connection_has_no_delay_and_notices_a_dead_host() -> None:
    with Backend() as backend:
        opened = await Dialer(Origin.of(backend.url), asyncio.get_running_loop()).dial(Opened, 1.0)
        assert opened.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert opened.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        await opened.close()


async def test_a_router_without_a_socket_left_does_not_blame_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none_left(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(dial, "start_connection", none_left)
    dialer = Dialer(Origin.of("http://127.0.0.1:1"), asyncio.get_running_loop())
    with pytest.raises(OutOfSockets, match="ulimit -n"):
        await dialer.dial(Opened, 1.0)

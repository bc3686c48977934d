"""The two ports of the router: where they listen, and over what."""

from __future__ import annotations

import ssl

from aiohttp import web

from router.refusals import in_shape
from router.settings.fields import Address
from router.settings.model import Settings
from router.tls import ServerTls, server_context
from router.wire.listening import EVERY_ADDRESS, SocketFile, every_address
from router.wire.server import HttpServer
from router.wire.server_connection import Handler


class CannotListen(OSError):
    """Says which port it was."""

    def __init__(self, key: str, address: Address, error: OSError) -> None:
        super().__init__(error.errno, f"{address} (`{key}`): {error.strerror or error}")


class Ports:
    """Opens and closes them. A new certificate can be shown while they are open."""

    def __init__(self, handler: Handler, admin: web.Application, settings: Settings) -> None:
        """Raises `BadCertificate`."""
        self._settings = settings
        self._socket_mode = int(settings.socket_mode, 8)
        context = certificate(settings)
        self._tls = ServerTls(context) if context is not None else None
        self._server = HttpServer(handler, max_header_bytes=settings.limits.max_header, shape=in_shape)
        self._admin = web.AppRunner(admin, access_log=None, handle_signals=False)
        self._admin_file: SocketFile | None = None

    async def open(self) -> tuple[Address, Address | None]:
        """Returns the addresses in use. Raises `CannotListen`, where one is taken for example."""
        wanted, admin = self._settings.listen, self._settings.admin
        try:
            listen = await self._open_public(wanted)
        except OSError as error:
            raise CannotListen("listen", wanted, error) from error
        if admin is None:
            return listen, None
        try:
            return listen, await self._open_admin(admin)
        except OSError as error:
            raise CannotListen("admin", admin, error) from error

    def show(self, context: ssl.SSLContext | None) -> None:
        """The certificate of handshakes from now on."""
        if self._tls is not None and context is not None:
            self._tls.current = context

    def stop_accepting(self) -> None:
        """On the public port; the admin port stays, to be asked how the end is coming along."""
        self._server.stop_accepting()

    async def close(self) -> None:
        """Safe after a failed start."""
        await self._server.close()
        await self._admin.cleanup()
        if self._admin_file is not None:
            self._admin_file.remove()

    async def _open_public(self, address: Address) -> Address:
        if address.path:
            await self._server.listen_unix(address.path, self._socket_mode)
            return address
        port = await self._server.listen(address.host, address.port, tls=self._front)
        return Address(host=address.host, port=port)

    async def _open_admin(self, address: Address) -> Address:
        await self._admin.setup()
        await self._admin_site(address).start()
        return address if address.path else Address(host=address.host, port=int(self._admin.addresses[0][1]))

    def _admin_site(self, address: Address) -> web.BaseSite:
        if address.path:
            self._admin_file = SocketFile(address.path, self._socket_mode)
            return web.SockSite(self._admin, self._admin_file.sock)
        if address.host == EVERY_ADDRESS:
            return web.SockSite(self._admin, every_address(address.port), ssl_context=self._front)
        return web.TCPSite(self._admin, address.host, address.port, ssl_context=self._front)

    @property
    def _front(self) -> ssl.SSLContext | None:
        return self._tls.front if self._tls is not None else None


def certificate(settings: Settings) -> ssl.SSLContext | None:
    """What the ports show to their clients. Raises `BadCertificate`."""
    tls = settings.tls
    return server_context(tls.cert.path, tls.key.path) if tls is not None else None

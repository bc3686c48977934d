"""One question to a port of a running router, for the commands that need no more: over TCP, TLS or a unix socket."""

from __future__ import annotations

import socket
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

UNIX: Final = "unix:"


class NotReached(Exception):
    """There is no answer; its text says why."""


def asked(
    url: str, path: str, *, key: str | None = None, trusted: ssl.SSLContext | None = None, timeout_s: float
) -> tuple[int, bytes]:
    """Status and body of `GET path` at `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`; no proxy is asked.

    `trusted`: what certificates count. Raises `NotReached`.
    """
    try:
        connection = _connection(url, trusted, timeout_s)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {key}"} if key else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()
    except UnicodeEncodeError:
        raise NotReached("the key has characters that no header can carry") from None
    except (OSError, HTTPException) as error:
        raise NotReached(getattr(error, "strerror", None) or str(error) or type(error).__name__) from None
    except ValueError:  # what http.client says would quote the key
        raise NotReached("the address or the key has characters that cannot be sent") from None


def trusting(certificate: str) -> ssl.SSLContext:
    """Trusts those who hold the key of this very certificate (the path of a PEM file), whatever name it is for.

    Raises `OSError`, which `ssl.SSLError` is as well.
    """
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _connection(url: str, trusted: ssl.SSLContext | None, timeout_s: float) -> HTTPConnection:
    if url.startswith(UNIX):
        return _UnixConnection(url.removeprefix(UNIX), timeout_s)
    parts = urlsplit(url)
    if parts.hostname is None:
        raise NotReached("that is no address")
    if parts.scheme == "https":
        return HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=trusted)
    return HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)


class _UnixConnection(HTTPConnection):
    """To the socket at a path."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)

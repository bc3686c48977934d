"""Sockets to listen on, for the two cases in which the event loop's own choice is not the right one."""

from __future__ import annotations

import errno
import os
import socket
import stat

BACKLOG = 2048
EVERY_ADDRESS = "::"


def every_address(port: int) -> socket.socket:
    """IPv6 and IPv4 on one socket, where the system can do that. Raises `OSError`."""
    both = socket.has_dualstack_ipv6()
    sock = socket.create_server(
        (EVERY_ADDRESS, port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=both, reuse_port=False
    )
    sock.setblocking(False)
    return sock


class SocketFile:
    """A unix socket and its place in the file system; there from the start, gone after `remove`."""

    def __init__(self, path: str, mode: int) -> None:
        """Bind. What a router that was killed has left there is replaced. Raises `OSError`.

        `mode` holds before the first client can connect, which is only possible from `listen` on.
        """
        self._path = path
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.setblocking(False)
            _clear(path)
            self.sock.bind(path)
            os.chmod(path, mode)
            self._identity = _identity(path)
            self.sock.listen(BACKLOG)
        except OSError:
            self.sock.close()
            raise

    def remove(self) -> None:
        """From the file system, unless somebody else has put another one there. May be called more than once."""
        try:
            if _identity(self._path) == self._identity:
                os.unlink(self._path)
        except FileNotFoundError:
            pass


def _identity(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _clear(path: str) -> None:
    """Remove a socket on which nobody listens; leave everything else alone."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise FileExistsError(errno.EEXIST, "a file that is no socket has this path", path)
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.setblocking(False)
        try:
            caller.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:  # its line is full: somebody listens
            pass
    raise OSError(errno.EADDRINUSE, "another process listens on this socket", path)

"""Run a test in a network of its own: all ports are free there, and nobody else's servers answer.

The router looks at well-known ports. On the machine of a developer something may listen there, which a test must
neither find nor disturb.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
IFF_UP = 1
Result = TypeVar("Result")
_REQUEST = struct.Struct("16sh14x")


def in_own_network(work: Callable[[], Result]) -> Result:
    """Call `work` on a thread in a new network namespace, which its child processes inherit. May skip."""
    with ThreadPoolExecutor(max_workers=1) as threads:
        try:
            threads.submit(_enter).result()
        except OSError as error:
            pytest.skip(f"needs the right to make a network namespace: {error}")
        return threads.submit(work).result()


def _enter() -> None:
    if sys.platform != "linux":
        raise OSError("not Linux")
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    with socket.socket() as any_socket:
        _, flags = _REQUEST.unpack(fcntl.ioctl(any_socket, SIOCGIFFLAGS, _REQUEST.pack(b"lo", 0)))
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, _REQUEST.pack(b"lo", flags | IFF_UP))

"""Was the request left unread by the backend? Asked when a connection dies before one byte of answer.

A backend may close an idle connection while a request is on its way, and what stands before a backend that is gone
(docker's own proxy) accepts a new one and closes it. Sending the request again is right only if the backend
cannot have read it: a generation that runs twice costs more than an error. What the two kernels know decides.

The backend closed, and we got its FIN (end of file)
    A FIN acknowledges all that the backend's kernel had taken until then. If that is less than the request, the
    application had closed before the request was there: unread. This holds whether our bytes are still on their way
    (state CLOSE_WAIT), came back with a reset (CLOSE), or never left (a loop that writes at the end of its turn).
    If the FIN covers the whole request, the application may have read it, run it and died: read.

The backend's kernel sent a reset and no FIN (ECONNRESET; EPIPE if we were still writing)
    A kernel resets when the application closes with bytes unread, or when bytes come for a connection that is
    closed or unknown. Either way not all of the request was read. A reset does not tell what it acknowledged, so
    only time can rule out the exceptions, among them a host that restarted and answers a keep-alive probe: a reset
    counts if it comes within a second. An application that sets SO_LINGER to zero and closes within that second
    after having read everything cannot be told apart: the one risk that is taken here.

Anything else (ETIMEDOUT, a TLS close without a FIN, a system without TCP_INFO at a FIN)
    Not certain, so: read. Unix sockets are of this kind at an end of file; but what is written behind a close gives
    EPIPE there, and what was left unread ECONNRESET, both at once, and these count as above.

On a new connection less is certain: nothing says that whoever accepted it ever serves anything, or that a reset is not
its way to end what it has read. So only a FIN counts there, and only if not one byte was acknowledged. EPIPE is as good
as an end of file then: a kernel that gets a reset says so only if a FIN had come before.

Half-closing is the gap in the first rule: a peer that has ended its sending side can still read. It has no use for
a request that it cannot answer; llama.cpp, which closes like that, reads on for a moment and throws it away. Its
kernel may also acknowledge a request that came after the FIN, before we look: then it counts as read.
"""

from __future__ import annotations

import socket
import sys
from typing import Final

RESET_WINDOW_S: Final = 1.0

_ESTABLISHED: Final = 1
_CLOSE: Final = 7
_CLOSE_WAIT: Final = 8
_BYTES_ACKED: Final = slice(120, 128)
"""Of `struct tcp_info`, since Linux 4.1: 64 bits, how many of our bytes the other kernel has acknowledged."""

if sys.platform == "linux":

    def tcp_info(sock: socket.socket) -> bytes:
        """The kernel's record of a TCP connection, down to the acknowledged bytes; empty where there is none."""
        if sock.family == socket.AF_UNIX:
            return b""
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_ACKED.stop)
        return info if len(info) == _BYTES_ACKED.stop else b""

else:

    def tcp_info(sock: socket.socket) -> bytes:
        return b""


def is_open(info: bytes) -> bool:
    """Neither side has closed, as far as this kernel has heard; True as well where it does not say."""
    return not info or info[0] == _ESTABLISHED


def bytes_acked(info: bytes) -> int:
    return int.from_bytes(info[_BYTES_ACKED], sys.byteorder)


def certainly_unread(
    info: bytes, *, acked_before: int, sent_bytes: int, error: Exception | None, waited_s: float
) -> bool:
    """`info`: at the end of the connection, which came as `error`, or (None) as an end of file, `waited_s` after the
    request. `acked_before`: `bytes_acked` at an earlier moment; `sent_bytes`: of the requests since, the last included.
    """
    if error is not None:
        return isinstance(error, ConnectionResetError | BrokenPipeError) and waited_s <= RESET_WINDOW_S
    if not info or info[0] not in (_CLOSE, _CLOSE_WAIT):
        return False
    return bytes_acked(info) - acked_before < sent_bytes


def certainly_untouched(info: bytes, *, acked_before: int, error: Exception | None) -> bool:
    """The same of the first request on a connection; `acked_before`: when it stood."""
    ended_by_fin = error is None or isinstance(error, BrokenPipeError)
    return ended_by_fin and bool(info) and info[0] in (_CLOSE, _CLOSE_WAIT) and bytes_acked(info) == acked_before

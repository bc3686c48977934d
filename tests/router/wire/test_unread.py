"""What the kernel knows about a request when the connection dies. Each case is played on the loopback."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator

import pytest

from router.wire.unread import (
    RESET_WINDOW_S,
    bytes_acked,
    certainly_unread,
    certainly_untouched,
    is_open,
    tcp_info,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO is Linux")

REQUEST = b"x" * 1000
LARGE = b"y" * 3_000_000

ESTABLISHED, CLOSE, CLOSE_WAIT = 1, 7, 8


class Pair:
    """A connection that has carried one exchange: our end and the backend's."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.ours = socket.create_connection(listener.getsockname())
            self.theirs, _ = listener.accept()
        self.ours.settimeout(5)
        self.ours.sendall(b"first")
        assert self.theirs.recv(5) == b"first"
        self.theirs.sendall(b"ok")
        assert self.ours.recv(2) == b"ok"
        self.acked_bytes = bytes_acked(tcp_info(self.ours))

    def send(self, data: bytes) -> None:
        self.ours.sendall(data)

    def read(self, size: int) -> None:
        while size > 0:
            size -= len(self.theirs.recv(size))

    def unread(self, sent_bytes: int = len(REQUEST), waited_s: float = 0.0) -> bool:
        """Wait for the end, as a transport would see it, and judge."""
        error = self.end()
        return certainly_unread(
            tcp_info(self.ours),
            acked_before=self.acked_bytes,
            sent_bytes=sent_bytes,
            error=error,
            waited_s=waited_s,
        )

    def untouched(self) -> bool:
        """The same, as if the request were the first."""
        error = self.end()
        return certainly_untouched(tcp_info(self.ours), acked_before=self.acked_bytes, error=error)

    def end(self) -> Exception | None:
        try:
            assert self.ours.recv(1) == b""
        except OSError as error:
            return error
        return None


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.ours.close()
    pair.theirs.close()


def linger_zero(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_a_backend_that_had_closed_before_the_request_came_did_not_read_it(pair: Pair) -> None:
    pair.theirs.close()
    pair.send(REQUEST)
    assert pair.unread()


@pytest.mark.parametrize(
    ("state", "acked_bytes", "unread"),
    [
        (CLOSE_WAIT, 500, True),
        (CLOSE_WAIT, 1499, True),
        (CLOSE_WAIT, 1500, False),
        (CLOSE, 500, True),
        (CLOSE, 1500, False),
        (ESTABLISHED, 500, False),
    ],
)
def test_nor_did_one_whose_end_of_file_leaves_a_part_unacknowledged(state: int, acked_bytes: int, unread: bool) -> None:
    """As between machines, where an end of file and a request meet half way."""
    info = bytes([state]) + bytes(119) + acked_bytes.to_bytes(8, sys.byteorder)
    assert certainly_unread(info, acked_before=500, sent_bytes=1000, error=None, waited_s=0.0) is unread


def test_nor_did_one_that_closed_before_the_request_left_us(pair: Pair) -> None:
    pair.theirs.close()
    assert pair.unread()


def test_a_backend_that_read_the_request_and_closed_may_have_run_it(pair: Pair) -> None:
    pair.send(REQUEST)
    pair.read(len(REQUEST))
    pair.theirs.close()
    assert not pair.unread()


def test_a_backend_that_read_a_large_request_to_its_end_may_have_run_it(pair: Pair) -> None:
    pair.ours.setblocking(False)
    left = memoryview(LARGE)
    while left:
        try:
            left = left[pair.ours.send(left) :]
        except BlockingIOError:
            pair.theirs.recv(1 << 20)
    pair.theirs.setblocking(False)
    while True:
        try:
            pair.theirs.recv(1 << 20)
        except BlockingIOError:
            break
    pair.theirs.close()
    pair.ours.settimeout(5)
    assert not pair.unread(len(LARGE))


def test_a_backend_that_closed_with_the_request_unread_did_not_read_it(pair: Pair) -> None:
    pair.send(REQUEST)
    pair.theirs.close()
    assert pair.unread()


def test_nor_did_one_that_read_a_part(pair: Pair) -> None:
    pair.send(REQUEST)
    pair.read(10)
    pair.theirs.close()
    assert pair.unread()


def test_a_late_reset_proves_nothing(pair: Pair) -> None:
    pair.send(REQUEST)
    pair.read(len(REQUEST))
    linger_zero(pair.theirs)
    pair.theirs.close()
    assert not pair.unread(waited_s=RESET_WINDOW_S + 0.1)


def test_a_lingering_close_that_had_the_whole_request_proves_nothing(pair: Pair) -> None:
    """llama.cpp's way: end the sending side, read on for a moment, close."""
    pair.send(REQUEST)
    pair.theirs.shutdown(socket.SHUT_WR)
    pair.read(len(REQUEST))
    assert not pair.unread()


@pytest.mark.parametrize("error", [TimeoutError(), OSError(113, "no route"), ValueError()])
def test_other_errors_prove_nothing(error: Exception) -> None:
    assert not certainly_unread(b"", acked_before=0, sent_bytes=1, error=error, waited_s=0.0)


def test_without_the_kernels_record_only_a_reset_proves_anything() -> None:
    assert not certainly_unread(b"", acked_before=0, sent_bytes=1, error=None, waited_s=0.0)
    assert certainly_unread(b"", acked_before=0, sent_bytes=1, error=ConnectionResetError(), waited_s=0.0)


def test_a_connection_that_still_stands_proves_nothing(pair: Pair) -> None:
    """As when TLS has said goodbye and TCP has not."""
    info = tcp_info(pair.ours)
    assert not certainly_unread(info, acked_before=pair.acked_bytes, sent_bytes=1, error=None, waited_s=0.0)


def test_the_kernel_knows_of_a_close_before_anybody_reads(pair: Pair) -> None:
    assert is_open(tcp_info(pair.ours))
    pair.theirs.close()
    assert not is_open(tcp_info(pair.ours))


# --- the first request of a connection


def test_who_had_closed_before_the_first_request_came_did_not_touch_it(pair: Pair) -> None:
    pair.theirs.close()
    pair.send(REQUEST)
    assert pair.untouched()


def test_what_never_left_since_the_connection_broke_before_was_not_touched(pair: Pair) -> None:
    pair.theirs.close()
    pair.send(REQUEST)
    assert pair.end() is None
    with pytest.raises(BrokenPipeError) as caught:
        pair.send(REQUEST)
    info = tcp_info(pair.ours)
    assert certainly_untouched(info, acked_before=pair.acked_bytes, error=caught.value)
    assert not certainly_untouched(info, acked_before=pair.acked_bytes, error=ConnectionResetError())


@pytest.mark.parametrize("read_bytes", [0, 1, len(REQUEST)])
@pytest.mark.parametrize("resets", [False, True])
def test_one_byte_that_came_there_may_have_been_read(pair: Pair, read_bytes: int, resets: bool) -> None:
    pair.send(REQUEST)
    pair.read(1)
    if read_bytes > 1:
        pair.read(read_bytes - 1)
    if resets:
        linger_zero(pair.theirs)
    pair.theirs.close()
    assert not pair.untouched()


def test_without_the_kernels_record_nothing_is_proved() -> None:
    for error in (None, BrokenPipeError(), ConnectionResetError(), TimeoutError()):
        assert not certainly_untouched(b"", acked_before=0, error=error)

"""A file of lines that grows while calls are served: written by a thread of its own, rotated by size, never waited for.

Whoever has a line puts it into a bounded queue and goes on. The thread wakes now and then and writes all that has
gathered in one system call, which runs without the interpreter's lock. Where lines come faster than the disk takes
them, or the disk takes none, they are dropped and counted; the calls they tell of go on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

import structlog

log = structlog.get_logger("twolane.lines")

GATHER_S: Final = 0.2
"""How long lines may gather before they are written."""
MOST_WAITING_BYTES: Final = 16 * 1024 * 1024
_LONGEST_STOP_S = 5.0
"""A disk that hangs must not keep the router from ending."""
_OWNER_ONLY = 0o600


class LineFile:
    """Lines in `path`, and older ones in `path.1` to `path.KEEP`. `put` is for one thread, that of the event loop."""

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int,
        keep: int,
        gather_s: float = GATHER_S,
        most_waiting_bytes: int = MOST_WAITING_BYTES,
    ) -> None:
        self.path = path
        self._gather_s = gather_s
        self._most_waiting_bytes = most_waiting_bytes
        self._sink = _Sink(path, max_bytes, keep)
        self._queue: SimpleQueue[bytes] = SimpleQueue()
        self._put_bytes = 0
        """Ever put; written by the event loop alone, as `_taken_bytes` is by the thread, so neither needs a lock."""
        self._taken_bytes = 0
        self._refused = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="twolane-lines", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Lines that never reached the file: the queue was full, or it could not be written."""
        return self._refused + self._sink.lost

    def put(self, line: bytes) -> bool:
        """Take a line, without its line break, to be written soon. False: too many wait already, it is dropped."""
        if self._put_bytes - self._taken_bytes > self._most_waiting_bytes or self._stop.is_set():
            self._refused += 1
            return False
        self._put_bytes += len(line)
        self._queue.put(line)
        return True

    def close(self) -> None:
        """Write what waits and close the file. Blocks until that is done, for a few seconds at most."""
        self._stop.set()
        self._thread.join(_LONGEST_STOP_S)

    def _run(self) -> None:
        while not self._stop.wait(self._gather_s):
            self._write()
        self._write()
        self._sink.close()

    def _write(self) -> None:
        lines: list[bytes] = []
        try:
            while True:
                lines.append(self._queue.get_nowait())
        except Empty:
            pass
        if lines:
            self._sink.write(lines)
            self._taken_bytes += sum(map(len, lines))


class _Sink:
    """The open file; used by the thread alone."""

    def __init__(self, path: Path, max_bytes: int, keep: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._number: int | None = None
        self._size = 0
        self._torn = False
        """The file ends in the middle of a line."""
        self._told = False
        self.lost = 0

    def write(self, lines: Iterable[bytes]) -> None:
        """Write whole lines, in files of at most the given size where a single line is not longer than that."""
        batch: list[bytes] = []
        waiting = 0
        self._look()
        for line in lines:
            if batch and self._size + waiting + len(line) >= self._max_bytes:
                self._append(batch)
                batch, waiting = [], 0
            if not batch and self._size and self._size + len(line) >= self._max_bytes:
                self._rotate()
            batch.append(line)
            waiting += len(line) + 1
        self._append(batch)

    def close(self) -> None:
        if self._number is not None:
            os.close(self._number)
            self._number = None

    def _append(self, batch: list[bytes]) -> None:
        if not batch:
            return
        data = b"\n".join((*((b"",) if self._torn else ()), *batch, b""))
        written = 0
        try:
            number = self._open()
            while written < len(data):
                written += os.write(number, data[written:])
        except OSError as error:
            self._failed(error, len(batch) - data[:written].count(b"\n"))
        else:
            self._told = False
        if written:
            self._size += written
            self._torn = data[written - 1 : written] != b"\n"

    def _failed(self, error: OSError, lines: int) -> None:
        """Said once, until lines can be written again: a full disk is not mended by a log of how full it is."""
        self.lost += lines
        self.close()
        if not self._told:
            self._told = True
            log.error("lines_not_written", file=str(self._path), why=error.strerror or str(error))

    def _open(self) -> int:
        if self._number is None:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            number = self._number = os.open(self._path, flags, _OWNER_ONLY)
            self._size = os.fstat(number).st_size
            self._torn = self._size > 0 and os.pread(number, 1, self._size - 1) != b"\n"
        return self._number

    def _look(self) -> None:
        """Know how large the file is, and let go of one that somebody else has moved away or removed."""
        try:
            if self._number is not None:
                mine, there = os.fstat(self._number), self._path.stat(follow_symlinks=False)
                if (mine.st_ino, mine.st_dev) != (there.st_ino, there.st_dev):
                    self.close()
            self._open()
        except FileNotFoundError:
            self.close()
            self._size = 0
        except OSError:
            self.close()  # what is wrong shows, and is told, when something is written

    def _rotate(self) -> None:
        """`path` becomes `path.1`, `path.1` becomes `path.2`; the oldest goes."""
        self.close()
        names = [self._path, *(numbered(self._path, number) for number in range(1, self._keep + 1))]
        try:
            if self._keep == 0:
                self._path.unlink(missing_ok=True)
            for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
                if newer.exists():
                    newer.replace(older)
        except OSError as error:
            self._failed(error, 0)
        self._size, self._torn = 0, False


def numbered(path: Path, number: int) -> Path:
    """Name of the file that was rotated away `number` rotations ago."""
    return path.with_name(f"{path.name}.{number}")

"""A file of lines that grows while calls are served: written by a thread of its own, rotated by size and age, never
waited for.

Whoever has a line puts it into a bounded queue and goes on. The thread wakes now and then and writes all that has
gathered in one system call, which runs without the interpreter's lock. Where lines come faster than the disk takes
them, or the disk takes none, they are dropped and counted; the calls they tell of go on. Files that are set aside are
packed by the same thread, outside of the interpreter's lock, while lines wait in the queue.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

import structlog

from router.observe.set_aside import began_ns, numbered, pack, set_aside

log = structlog.get_logger("twolane.lines")

GATHER_S: Final = 0.2
"""How long lines may gather before they are written."""
MOST_WAITING_BYTES: Final = 16 * 1024 * 1024
_LONGEST_STOP_S = 5.0
"""A disk that hangs must not keep the router from ending."""
_OWNER_ONLY = 0o600


class LineFile:
    """Lines in `path`, and older ones in `path.1.zst` to `path.KEEP.zst`. `put` is for one thread, that of the event
    loop.

    `max_age_s`: the file is set aside when its first line is older; None: by size alone. `packs`: what is set aside is
    packed, else it stays `path.1`. `wall_ns`: nanoseconds since 1970, since ages outlive the process.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int,
        keep: int,
        max_age_s: float | None = None,
        packs: bool = False,
        wall_ns: Callable[[], int] = time.time_ns,
        gather_s: float = GATHER_S,
        most_waiting_bytes: int = MOST_WAITING_BYTES,
    ) -> None:
        self.path = path
        self._gather_s = gather_s
        self._most_waiting_bytes = most_waiting_bytes
        age_ns = None if max_age_s is None else int(max_age_s * 1e9)
        self._sink = _Sink(path, max_bytes, keep, age_ns, wall_ns, packs=packs)
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
        else:
            self._sink.age()


class _Sink:
    """The open file; used by the thread alone."""

    def __init__(
        self,
        path: Path,
        max_bytes: int,
        keep: int,
        max_age_ns: int | None,
        wall_ns: Callable[[], int],
        *,
        packs: bool,
    ) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._max_age_ns = max_age_ns
        self._wall_ns = wall_ns
        self._packs = packs
        self._began_ns: int | None = None
        """When the first line came into the file; None: it has none."""
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
        self.age()
        for line in lines:
            if batch and self._size + waiting + len(line) >= self._max_bytes:
                self._append(batch)
                batch, waiting = [], 0
            if not batch and self._size and self._size + len(line) >= self._max_bytes:
                self._rotate()
            batch.append(line)
            waiting += len(line) + 1
        self._append(batch)

    def age(self) -> None:
        """Set the file aside if it is too old."""
        if self._max_age_ns is None or self._began_ns is None or not self._size:
            return
        if self._wall_ns() - self._began_ns >= self._max_age_ns:
            self._rotate()

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
            self._began_ns = self._began_ns if self._size and self._began_ns is not None else self._wall_ns()
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
            self._keep_to_owner(number)
            self._size = os.fstat(number).st_size
            self._torn = self._size > 0 and os.pread(number, 1, self._size - 1) != b"\n"
            self._began_ns = began_ns(self._path)
        return self._number

    @staticmethod
    def _keep_to_owner(number: int) -> None:
        """A file that was there already may have been made by somebody whose files everybody can read."""
        if os.fstat(number).st_mode & 0o077:
            with suppress(OSError):  # it belongs to somebody else, who may see to it
                os.fchmod(number, _OWNER_ONLY)

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
        self.close()
        try:
            set_aside(self._path, self._keep)
            if self._packs and self._keep:
                pack(numbered(self._path, 1))
        except OSError as error:
            self._failed(error, 0)
        self._size, self._torn, self._began_ns = 0, False, None


__all__ = ["GATHER_S", "MOST_WAITING_BYTES", "LineFile", "numbered"]

"""Files that were written full: `FILE` becomes `FILE.1`, `FILE.1` becomes `FILE.2`, the oldest goes; packed with zstd.

Zstd since it takes a third of the time of gzip for a log as small, and is there anyway. What logrotate packed is moved
on as well.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import zstandard

PACKED: Final = ".zst"
_ENDINGS: Final = ("", PACKED, ".gz")
_LEVEL: Final = 3
_OWNER_ONLY = 0o600


def numbered(path: Path, number: int) -> Path:
    """Name of the file that was set aside `number` times ago, as it is before it is packed."""
    return path.with_name(f"{path.name}.{number}")


def set_aside(path: Path, keep: int) -> None:
    """Make room for a new `path`. Raises `OSError`."""
    if keep == 0:
        path.unlink(missing_ok=True)
        return
    for ending in _ENDINGS:
        _with(numbered(path, keep), ending).unlink(missing_ok=True)
    for number in range(keep - 1, 0, -1):
        for ending in _ENDINGS:
            with suppress(FileNotFoundError):
                _with(numbered(path, number), ending).replace(_with(numbered(path, number + 1), ending))
    with suppress(FileNotFoundError):
        path.replace(numbered(path, 1))


def _with(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def pack(path: Path) -> None:
    """Put `path.zst` in place of a file; its time stays. Raises `OSError`, with the file as it was.

    A crash in between leaves a draft, which the next one overwrites, or both files, of which readers take one.
    """
    packed = _with(path, PACKED)
    draft = packed.with_name(f".{packed.name}.draft")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with path.open("rb") as source, open(os.open(draft, flags, _OWNER_ONLY), "wb") as target:
            zstandard.ZstdCompressor(level=_LEVEL).copy_stream(source, target)
            times = os.fstat(source.fileno())
        os.utime(draft, ns=(times.st_atime_ns, times.st_mtime_ns))
        draft.replace(packed)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    path.unlink()


def began_ns(path: Path) -> int | None:
    """About when the first line was put into a file that exists: when the one before it got its last, or else when it
    got its own last. Nanoseconds since 1970; None: there is no such file, or it is empty."""
    with suppress(OSError):
        own = path.stat()
        if not own.st_size:
            return None
        for ending in _ENDINGS:
            with suppress(FileNotFoundError):
                return min(own.st_mtime_ns, _with(numbered(path, 1), ending).stat().st_mtime_ns)
        return own.st_mtime_ns
    return None

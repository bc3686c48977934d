"""Files of lines as they lie on the disk: the one that is written, those that were set aside, compressed or not."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, Final, cast

import zstandard

_LONGEST_LINE_BYTES: Final = 1024 * 1024
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ASIDE: Final = re.compile(r"\.([0-9]{1,6})(\.gz|\.zst)?")

HALF_A_LINE: Final = b"{"
"""Stands for what a cut off or damaged file could not give."""

OnBytes = Callable[[int], None]
"""Told how many bytes of the files were read since the last time."""


def with_those_set_aside(paths: Iterable[Path]) -> list[Path]:
    """The files, and beside each its older parts (`FILE.1`, `FILE.2.gz`); each file once, the oldest first.

    A file that is not there is left out where it has older parts: it has just been set aside. Else whoever reads it
    finds that it is missing."""
    found: dict[Path, None] = {}
    for path in paths:
        parts = {}
        for other in path.parent.glob(f"{_escaped(path.name)}.*"):
            if match := _ASIDE.fullmatch(other.name.removeprefix(path.name)):
                parts[int(match[1])] = other
        found |= dict.fromkeys(parts[number] for number in sorted(parts, reverse=True))
        if not parts or path.exists():
            found[path] = None
    return list(found)


def _escaped(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def raw_lines(path: Path, on_bytes: OnBytes = lambda count: None) -> Iterator[bytes]:
    """The lines of one file, unpacked. Raises `OSError` where it cannot be read."""
    with path.open("rb") as file:
        begin = file.read(4)
        file.seek(0)
        told = 0
        try:
            with _unpacked(file, begin) as source:
                while raw := source.readline(_LONGEST_LINE_BYTES):
                    yield raw
                    on_bytes(file.tell() - told)
                    told = file.tell()
        except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError):
            yield HALF_A_LINE


def _unpacked(file: BinaryIO, begin: bytes) -> gzip.GzipFile | io.BufferedReader | nullcontext[BinaryIO]:
    if begin.startswith(_GZIP):
        return gzip.GzipFile(fileobj=file)
    if begin == _ZSTD:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=False)
        return io.BufferedReader(cast(io.RawIOBase, reader))
    return nullcontext(file)

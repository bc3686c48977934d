"""What a process and its children have used: CPU time, memory, mapped libraries. Linux only.

CPU time is read from the process's CPU clock (the one that `clock_getcpuclockid` names) and not from `/proc/PID/stat`:
the clock counts nanoseconds where `stat` counts ticks of ten milliseconds, and both include threads that have ended,
which `/proc/PID/task` forgets. A short window on a process that is busy one tenth of the time needs that precision.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

CPUCLOCK_SCHED = 2
"""Kind of CPU clock in the low bits of a Linux clock id: the time that the scheduler has accounted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Of a whole family. `pss_bytes` divides shared pages among those who share them, so that it adds up."""

    rss_bytes: int
    pss_bytes: int


def family(pid: int) -> tuple[int, ...]:
    """The process and all its living descendants, parents first. Raises `ProcessLookupError` when `pid` is gone."""
    if not Path(f"/proc/{pid}").exists():
        raise ProcessLookupError(f"no process {pid}")
    found = [pid]
    for parent in found:
        found.extend(_children(parent))
    return tuple(found)


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children.extend(int(word) for word in listing.read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue  # that thread has ended since the listing
    return children


def cpu_seconds(pid: int) -> float:
    """User and system time of the living family since each was started, ended threads included."""
    return sum(time.clock_gettime(_cpu_clock(member)) for member in family(pid))


def _cpu_clock(pid: int) -> int:
    return (~pid << 3) | CPUCLOCK_SCHED


def memory(pid: int) -> Memory:
    rss_kb = pss_kb = 0
    for member in family(pid):
        fields = dict(
            line.split(":", 1) for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines() if ":" in line
        )
        rss_kb += _kilobytes(fields["Rss"])
        pss_kb += _kilobytes(fields["Pss"])
    return Memory(rss_bytes=rss_kb * 1024, pss_bytes=pss_kb * 1024)


def _kilobytes(text: str) -> int:
    return int(text.split()[0])


def has_mapped(pid: int, package: str) -> bool:
    """Whether a compiled library of that Python package is in memory, which importing the package would put there."""
    return any(f"/{package}/" in Path(f"/proc/{member}/maps").read_text() for member in family(pid))

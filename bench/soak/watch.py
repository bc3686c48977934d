"""The router's process while it works: memory, sockets, CPU time, and how soon its admin port answers. Linux only."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
INTERVAL_S = 0.5
WARM_SHARE = 0.4
"""Of the calls, after which memory should stand still."""


@dataclass(frozen=True, slots=True)
class Sample:
    calls: int
    rss_kb: int
    sockets: int
    health_ms: float


def rss_kb(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_KB


def sockets(pid: int) -> int:
    """Open ones."""
    count = 0
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            count += os.readlink(entry.path).startswith("socket:")
        except FileNotFoundError:  # closed since the listing
            continue
    return count


async def fewest_sockets(pid: int) -> int:
    """Without those of the probes, which come and go."""
    counts = []
    for _ in range(50):
        counts.append(sockets(pid))
        await asyncio.sleep(0.02)
    return min(counts)


def growth_kb(samples: list[Sample], total: int) -> float | None:
    """Growth of memory in KB per 10,000 calls after the warm-up, as a straight line through the samples."""
    warm = [sample for sample in samples if sample.calls >= total * WARM_SHARE]
    if len(warm) < 3:
        return None
    mean_calls = sum(sample.calls for sample in warm) / len(warm)
    mean_kb = sum(sample.rss_kb for sample in warm) / len(warm)
    spread = sum((sample.calls - mean_calls) ** 2 for sample in warm)
    if not spread:
        return None
    return 10_000 * sum((sample.calls - mean_calls) * (sample.rss_kb - mean_kb) for sample in warm) / spread


async def health_ms(port: int) -> float:
    """Milliseconds that the admin port takes to say that it is well, the connection included."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /health HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n")
        await reader.read()
    finally:
        writer.close()
    return (loop.time() - began_s) * 1000


class Watch:
    """Takes a sample now and then."""

    def __init__(self, pid: int, admin_port: int, calls_over: Callable[[], int]) -> None:
        self._pid = pid
        self._admin_port = admin_port
        self._calls_over = calls_over
        self.samples: list[Sample] = []

    async def run(self) -> None:
        while True:
            took_ms = await health_ms(self._admin_port)
            self.samples.append(Sample(self._calls_over(), rss_kb(self._pid), sockets(self._pid), took_ms))
            await asyncio.sleep(INTERVAL_S)

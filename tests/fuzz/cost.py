"""What an input costs. Times are only compared with each other, and with much room: machines are busy."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Final

_TIMES_LARGER: Final = 16
_TIMES_SLOWER: Final = 100
"""Linear work takes 16 times as long for 16 times the input, quadratic work 256 times."""
_SHORTEST_S: Final = 0.001
"""Below that a clock, and what an input costs whatever its size, say nothing of growth."""
_LARGEST_BYTES: Final = 2**20
_ATTEMPTS: Final = 6

Work = Callable[[bytes], object]


def is_linear(make: Callable[[int], bytes], work: Work, *, largest_bytes: int = _LARGEST_BYTES) -> bool:
    """Whether `work` takes no more than in proportion for a larger input; `make` is told how many bytes, roughly.

    Inputs grow until they can be timed, or until the larger one is of `largest_bytes`.
    """
    size = 1024
    while (small_s := _seconds(make(size), work)) < _SHORTEST_S and _TIMES_LARGER * size < largest_bytes:
        size *= 2
    small, large = make(size), make(_TIMES_LARGER * size)
    large_s = _seconds(large, work)
    for _ in range(_ATTEMPTS):
        if large_s < _TIMES_SLOWER * max(small_s, _SHORTEST_S):
            return True
        small_s, large_s = max(small_s, _seconds(small, work)), min(large_s, _seconds(large, work))
    return False


def peak_bytes(work: Callable[[], object]) -> int:
    """The most memory that Python held at a time while it worked."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _seconds(data: bytes, work: Work) -> float:
    gc.disable()  # it would go through all that the tests hold
    try:
        began_s = time.thread_time()
        work(data)
        return time.thread_time() - began_s
    finally:
        gc.enable()

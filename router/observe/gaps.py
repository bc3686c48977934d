"""How steadily an answer flowed: the gaps between the pieces in which its output came.

Per piece only its time is kept, many at once; what it means is worked out when the answer has ended. Of a long answer
the gaps so far are put into a t-digest from time to time, so that a stream keeps a few kilobytes at most.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from math import ceil
from operator import sub
from typing import Final, NamedTuple

from fastdigest import TDigest

_MOST_TIMES: Final = 1024
"""Kept as they are, 8 KB; more than most answers have."""
_STALL: Final = 4.0
"""A gap this many times as long as the median one is a stall."""
_SEEN_S: Final = 0.02
"""Shorter gaps are none to a reader, however short the others are: engines that guess ahead send tokens in bursts."""


class Flow(NamedTuple):
    """Of the gaps of one answer, in seconds."""

    mean_s: float
    p95_s: float
    longest_s: float
    stalls: int
    """Gaps of more than four times the median, and more than 20 ms."""


class Gaps:
    """Told when output came, in order."""

    __slots__ = ("_at_s", "_digest", "_first_s")

    def __init__(self) -> None:
        self._at_s = array("d")
        self._digest: TDigest | None = None
        self._first_s = 0.0

    def came(self, at_s: list[float]) -> None:
        times = self._at_s
        times.fromlist(at_s)
        if len(times) > _MOST_TIMES:
            self._fold()

    def flow(self) -> Flow | None:
        """None: there was no gap."""
        times = self._at_s
        if self._digest is not None:
            return self._estimate(self._digest, times)
        count = len(times) - 1
        if count < 1:
            return None
        gaps = sorted(map(sub, times[1:], times))
        stall_s = max(_STALL * gaps[count // 2], _SEEN_S)
        return Flow(
            mean_s=(times[-1] - times[0]) / count,
            p95_s=gaps[ceil(0.95 * count) - 1],
            longest_s=gaps[-1],
            stalls=count - bisect_right(gaps, stall_s),
        )

    def _fold(self) -> None:
        times = self._at_s
        gaps = list(map(sub, times[1:], times))
        if self._digest is None:
            self._first_s = times[0]
            self._digest = TDigest.from_values(gaps, max_centroids=128)
        else:
            self._digest.batch_update(gaps)
        del times[:-1]

    def _estimate(self, digest: TDigest, times: array[float]) -> Flow:
        if len(times) > 1:
            self._fold()
        median_s, p95_s = digest.quantile_vec([0.5, 0.95])
        count = digest.n_values
        return Flow(
            mean_s=(times[-1] - self._first_s) / count,
            p95_s=p95_s,
            longest_s=digest.max(),
            stalls=round(count * (1.0 - digest.cdf(max(_STALL * median_s, _SEEN_S)))),
        )

"""Calls of other clients on a backend: what a scrape shows beyond our own, and how long that may be believed.

A scraped figure lags: an engine may still count calls of ours that ended a moment ago, or not yet count those just
sent. So the most that we had open over the last few scrapes is taken off, never less; foreign load may be
underestimated for a moment but our own calls are never counted twice. A figure loses half of its weight with each
half-life of age (stale load figures are worse than none: Mitzenmacher, "How useful is old information?", 2000).
"""

from __future__ import annotations

from collections import deque

from router.engines.api import Load

_PEAKS = 3


class ForeignLoad:
    """Figures of one backend as last scraped."""

    def __init__(self, half_life_s: float) -> None:
        self.half_life_s = half_life_s
        self.load: Load | None = None
        self.scraped_s = float("-inf")
        self._foreign = 0.0
        self._peaks: deque[int] = deque(maxlen=_PEAKS)

    def scraped(self, load: Load | None, own_peak: int, now_s: float) -> None:
        """Take in one scrape; None: this time the server said nothing, and the old figure goes on fading."""
        self._peaks.append(own_peak)
        if load is None:
            return
        self.load = load
        self.scraped_s = now_s
        known = [figure for figure in (load.running, load.waiting) if figure is not None]
        self._foreign = max(0.0, sum(known) - max(self._peaks))

    def age_s(self, now_s: float) -> float:
        return now_s - self.scraped_s

    def _weight(self, now_s: float) -> float:
        return float(0.5 ** (self.age_s(now_s) / self.half_life_s))

    def calls(self, now_s: float) -> float:
        """Calls of others that are likely there now; below a tenth it is none."""
        if not self._foreign:
            return 0.0
        faded = self._foreign * self._weight(now_s)
        return faded if faded >= 0.1 else 0.0

    def queued(self, now_s: float) -> float:
        """Calls likely waiting inside the engine now, whoever sent them; below a tenth it is none."""
        if self.load is None or not self.load.waiting:
            return 0.0
        faded = self.load.waiting * self._weight(now_s)
        return faded if faded >= 0.1 else 0.0

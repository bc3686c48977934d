"""Counters and histograms that are told far more often than they are read: all series that each call moves.

Those of `prometheus_client` take five times as long to be told, for locks between threads that the router does not
have. What is exposed is the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString


class Count:
    """What was counted for one combination of labels. Only ever added to."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total: float = 0


class Tally(Collector):
    """A counter; its name is given without `_total`."""

    def __init__(self, name: str, words: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._family = CounterMetricFamily(name, words, labels=labels)  # made once: its names are checked each time
        self._counts: dict[tuple[str, ...], Count] = {}
        registry.register(self)

    def labels(self, *values: str) -> Count:
        """What is added to; exposed from now on."""
        count = self._counts.get(values)
        if count is None:
            count = self._counts[values] = Count()
        return count

    def describe(self) -> Iterable[Metric]:
        return (self._family,)

    def collect(self) -> Iterable[Metric]:
        self._family.samples = []
        for values, count in self._counts.items():
            self._family.add_metric(values, count.total)
        return (self._family,)


class Spread:
    """The values of one combination of labels, counted between bounds."""

    __slots__ = ("_bounds", "counts", "examples", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Values up to each bound and above the one before; last those above all."""
        self.sum = 0.0
        self.examples: dict[int, tuple[str, float]] = {}
        """The last value of a bucket that came with the id of its trace."""

    def observe(self, value: float, trace_id: str = "") -> None:
        bucket = bisect_left(self._bounds, value)
        self.counts[bucket] += 1
        self.sum += value
        if trace_id:
            self.examples[bucket] = trace_id, value


class Distribution(Collector):
    """A histogram; `bounds` are the upper ones of its buckets, ascending."""

    def __init__(
        self, name: str, words: str, labels: Sequence[str], bounds: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._family = HistogramMetricFamily(name, words, labels=labels)
        self._bounds = tuple(bounds)
        self._names = [*map(floatToGoString, self._bounds), "+Inf"]
        self._spreads: dict[tuple[str, ...], Spread] = {}
        registry.register(self)

    def labels(self, *values: str) -> Spread:
        """What is told of values; exposed from now on."""
        spread = self._spreads.get(values)
        if spread is None:
            spread = self._spreads[values] = Spread(self._bounds)
        return spread

    def describe(self) -> Iterable[Metric]:
        return (self._family,)

    def collect(self) -> Iterable[Metric]:
        self._family.samples = []
        for values, spread in self._spreads.items():
            buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
            for at, (name, count) in enumerate(zip(self._names, accumulate(spread.counts), strict=True)):
                if (example := spread.examples.get(at)) is None:
                    buckets.append((name, float(count)))
                else:
                    trace_id, value = example
                    buckets.append((name, float(count), Exemplar({"trace_id": trace_id}, value)))
            self._family.add_metric(values, buckets, spread.sum)
        return (self._family,)

"""Every Prometheus series of the router that calls move; gauges are in `router.observe.gauges`.

Labels are bounded: classes, sources and outcomes are fixed words; of backends and keys, whose names come from the
settings, the first 64 have their own and the rest are `other`. Model names, paths and header values of clients never
become labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, generate_latest
from prometheus_client.core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from classifiers.api import Verdict
from router.observe.call_series import EndedSeries, PromisedSeries, Series
from router.observe.facts import CallFacts, JudgedCall
from router.observe.few import Few
from router.observe.gauges import GaugeCollector, Gauges
from router.observe.series import Count, Tally

_END: Final = b"# EOF\n"
"""Of a text in OpenMetrics."""


class _OneFamily(CollectorRegistry):
    """A registry of one metric that was collected already."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric


class Metrics:
    """Counters and histograms, told of each ended call; gauges are read when scraped."""

    def __init__(self, read_gauges: Callable[[], Gauges]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series per counter that nobody reads
        registry = self.registry = CollectorRegistry()
        registry.register(GaugeCollector(read_gauges))
        self.series = Series(registry)
        self._shadows = Tally(
            "twolane_shadow_verdicts",
            "Classes given, and what the shadow model would have given",
            ("class", "source", "shadow"),
            registry,
        )
        self._shadow_failures = Counter(
            "twolane_shadow_failures", "Calls that the shadow model failed on (they went on)", registry=registry
        )
        self._retries = Counter("twolane_retries", "Calls sent to another backend", ("backend",), registry=registry)
        self._retries_denied = Counter(
            "twolane_retries_denied", "Retries beyond the budget, so not done", registry=registry
        )
        self._key_calls = Tally(
            "twolane_key_calls", "Ended calls by the name of their key", ("key", "outcome"), registry
        )
        self._key_tokens = Tally(
            "twolane_key_tokens", "Tokens by the name of their key", ("key", "direction"), registry
        )
        self._watch_failures = Counter(
            "twolane_watch_failures", "Streams that our reader gave up on (they went on)", registry=registry
        )
        self._ignored_hints = Counter(
            "twolane_ignored_hints", "Hints in headers with an unknown value", registry=registry
        )
        self._reloads = Counter("twolane_reloads", "Settings read again", ("result",), registry=registry)
        for result in ("ok", "refused"):
            self._reloads.labels(result)  # what begins with 1 has not increased, so nobody would hear of the first one
        self._settings_ok = Gauge(
            "twolane_settings_ok", "1 if the settings file as it was read last is in effect", registry=registry
        )
        self._settings_ok.set(1)
        self._backends, self._keys = Few(), Few()
        self._key_series: dict[tuple[str, str], tuple[Count, Count, Count]] = {}
        self._ended: dict[tuple[str, ...], EndedSeries] = {}
        self._promised: dict[tuple[str, ...], PromisedSeries] = {}

    def call_ended(self, facts: CallFacts) -> None:
        came = (facts.call_class, facts.backend, facts.outcome, facts.source)
        series = self._ended.get(came)
        if series is None:
            series = self._ended[came] = EndedSeries(self.series, facts, self._backend(facts))
        series.observe(facts)
        if facts.call_class != "none":
            self.series.decide.observe(facts.decide_s)
        if facts.retries:
            self._retries.labels(self._backend(facts)).inc(facts.retries)
        if facts.key:
            self._key_call_ended(facts)

    def judged(self, facts: CallFacts, judged: JudgedCall) -> None:
        """What an ended call says about its verdict and its promises without anybody telling."""
        came = (facts.call_class, facts.backend, facts.source)
        series = self._promised.get(came)
        if series is None:
            series = self._promised[came] = PromisedSeries(self.series, facts, self._backend(facts))
        series.observe(facts, judged)

    def _backend(self, facts: CallFacts) -> str:
        """As a label; children are remembered by the name as it came, which the settings bound."""
        return self._backends.of(facts.backend, 0.0) if facts.backend else ""

    def shadow_judged(self, facts: CallFacts, shadow: Verdict) -> None:
        self._shadows.labels(facts.call_class, facts.source, shadow.call_class).total += 1

    def shadow_failed(self) -> None:
        self._shadow_failures.inc()

    def _key_call_ended(self, facts: CallFacts) -> None:
        series = self._key_series.get((facts.key, facts.outcome))
        if series is None:
            key = self._keys.of(facts.key, 0.0)
            calls, tokens = self._key_calls, self._key_tokens
            series = calls.labels(key, facts.outcome), tokens.labels(key, "in"), tokens.labels(key, "out")
            self._key_series[facts.key, facts.outcome] = series
        ended, tokens_in, tokens_out = series
        ended.total += 1
        tokens_in.total += facts.prompt_tokens or 0
        tokens_out.total += facts.output_tokens or 0

    def retry_denied(self) -> None:
        self._retries_denied.inc()

    def watch_failed(self) -> None:
        self._watch_failures.inc()

    def hint_ignored(self) -> None:
        self._ignored_hints.inc()

    def reloaded(self, *, ok: bool) -> None:
        self._reloads.labels("ok" if ok else "refused").inc()
        self._settings_ok.set(ok)

    def exposed(self, *, openmetrics: bool = False) -> Iterator[bytes]:
        """The text format of Prometheus, or OpenMetrics, which has the trace ids of examples in it; family by family,
        so that whoever writes them can let streams go on in between."""
        generate = generate_openmetrics if openmetrics else generate_latest
        for metric in self.registry.collect():
            text: bytes = generate(_OneFamily(metric))
            yield text.removesuffix(_END)
        if openmetrics:
            yield _END

"""Every Prometheus series of the router.

Labels are bounded: classes, sources and outcomes are fixed words, backends come from the settings. Model names, paths
and header values of clients never become labels. Bucket boundaries follow OpenTelemetry's gen_ai conventions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from classifiers.api import Verdict
from router.observe.facts import CallFacts, JudgedCall
from router.observe.foretold import PredictionErrors
from router.observe.series import Distribution, Tally

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 30.0)
_PER_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_OVERHEAD = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendGauges:
    """One backend at the moment of a scrape; None: not known."""

    name: str
    lane: str
    engine: str
    up: bool
    own: int
    foreign: float
    cap: int | None
    engine_running: float | None
    engine_waiting: float | None
    figures_age_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """The router at the moment of a scrape."""

    backends: tuple[BackendGauges, ...]
    waiting_by_class: dict[str, int]
    open_calls: int
    decisions_dropped: int
    """Lines of the decision log that could not be written, since the start."""


class _GaugeCollector(Collector):
    """Asks for the gauges when somebody scrapes, so that a call pays nothing for them."""

    def __init__(self, read: Callable[[], Gauges]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        now = self._read()
        labels = ("backend",)
        up = GaugeMetricFamily(
            "twolane_backend_up", "1 if the backend is given calls", labels=("backend", "lane", "engine")
        )
        own = GaugeMetricFamily("twolane_backend_inflight", "Open leases of this router", labels=labels)
        foreign = GaugeMetricFamily("twolane_backend_foreign", "Calls of other clients, faded with age", labels=labels)
        cap = GaugeMetricFamily("twolane_backend_cap", "Most calls at once; absent: no limit known", labels=labels)
        running = GaugeMetricFamily("twolane_backend_engine_running", "Calls running, by the engine", labels=labels)
        waiting = GaugeMetricFamily("twolane_backend_engine_waiting", "Calls waiting, by the engine", labels=labels)
        age = GaugeMetricFamily("twolane_backend_figures_age_seconds", "Age of the engine's figures", labels=labels)
        for backend in now.backends:
            up.add_metric((backend.name, backend.lane, backend.engine), float(backend.up))
            own.add_metric((backend.name,), backend.own)
            foreign.add_metric((backend.name,), backend.foreign)
            for family, figure in (
                (cap, backend.cap),
                (running, backend.engine_running),
                (waiting, backend.engine_waiting),
                (age, backend.figures_age_s),
            ):
                if figure is not None:
                    family.add_metric((backend.name,), figure)
        line = GaugeMetricFamily("twolane_line_waiting", "Calls in the router's line", labels=("class",))
        for call_class, count in now.waiting_by_class.items():
            line.add_metric((call_class,), count)
        calls = GaugeMetricFamily("twolane_open_calls", "Calls that are being served or wait")
        calls.add_metric((), now.open_calls)
        dropped = CounterMetricFamily("twolane_decisions_dropped", "Lines of the decision log that were not written")
        dropped.add_metric((), now.decisions_dropped)
        return (up, own, foreign, cap, running, waiting, age, line, calls, dropped)


class Metrics:
    """Counters and histograms, told of each ended call; gauges are read when scraped."""

    def __init__(self, read_gauges: Callable[[], Gauges]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series per counter that nobody reads
        self.registry = CollectorRegistry()
        self.registry.register(_GaugeCollector(read_gauges))
        per_call = ("class", "backend")
        self._calls = Tally("twolane_calls", "Ended calls", ("class", "backend", "outcome"), self.registry)
        self._verdicts = Tally("twolane_verdicts", "Classes given, by who decided", ("class", "source"), self.registry)
        by_judge = ("class", "source")
        self._feedback = Tally("twolane_feedback", "What clients did with answers", (*by_judge, "did"), self.registry)
        self._objectives = Tally(
            "twolane_objectives", "Calls that were promised something", (*by_judge, "result"), self.registry
        )
        self._shadows = Tally(
            "twolane_shadow_verdicts",
            "Classes given, and what the shadow model would have given",
            (*by_judge, "shadow"),
            self.registry,
        )
        self._shadow_failures = Counter(
            "twolane_shadow_failures", "Calls that the shadow model failed on (they went on)", registry=self.registry
        )
        self._ttft = Distribution(
            "twolane_ttft_seconds", "Arrival to first token", per_call, _FIRST_TOKEN, self.registry
        )
        self._tpot = Distribution(
            "twolane_tpot_seconds", "Mean time per later token", per_call, _PER_TOKEN, self.registry
        )
        self._complete = Distribution(
            "twolane_call_seconds", "Arrival to end, completed calls", per_call, _SECONDS, self.registry
        )
        self._queue = Distribution(
            "twolane_queue_seconds", "Time in the router's line", ("class",), _SECONDS, self.registry
        )
        self._decide = Distribution(
            "twolane_decide_seconds", "Reading, classifying and deciding", (), _OVERHEAD, self.registry
        ).labels()
        self._tokens = Tally("twolane_tokens", "Tokens as counted by engines", ("backend", "direction"), self.registry)
        self._retries = Counter(
            "twolane_retries", "Calls sent to another backend", ("backend",), registry=self.registry
        )
        self._retries_denied = Counter(
            "twolane_retries_denied", "Retries beyond the budget, so not done", registry=self.registry
        )
        self._key_calls = Counter(
            "twolane_key_calls", "Ended calls by the name of their key", ("key", "outcome"), registry=self.registry
        )
        self._key_tokens = Counter(
            "twolane_key_tokens", "Tokens by the name of their key", ("key", "direction"), registry=self.registry
        )
        self._watch_failures = Counter(
            "twolane_watch_failures", "Streams that our reader gave up on (they went on)", registry=self.registry
        )
        self._ignored_hints = Counter(
            "twolane_ignored_hints", "Hints in headers with an unknown value", registry=self.registry
        )
        self._reloads = Counter("twolane_reloads", "Settings read again", ("result",), registry=self.registry)
        self._predictions = PredictionErrors(self.registry)
        self._children: dict[tuple[str, ...], _CallSeries] = {}

    def call_ended(self, facts: CallFacts) -> None:
        key = (facts.call_class, facts.backend, facts.outcome, facts.source)
        series = self._children.get(key)
        if series is None:
            series = self._children[key] = _CallSeries(self, facts)
        series.observe(facts)
        if facts.call_class != "none":
            self._decide.observe(facts.decide_s)
        if facts.retries:
            self._retries.labels(facts.backend).inc(facts.retries)
        if facts.key:
            self._key_call_ended(facts)

    def judged(self, facts: CallFacts, judged: JudgedCall) -> None:
        """What an ended call says about its verdict without anybody telling."""
        if (did := _did(facts)) is not None:
            self._feedback.labels(facts.call_class, facts.source, did).total += 1
        if (kept := judged.kept(facts)) is not None:
            result = "kept" if kept else "missed"
            self._objectives.labels(facts.call_class, facts.source, result).total += 1

    def shadow_judged(self, facts: CallFacts, shadow: Verdict) -> None:
        self._shadows.labels(facts.call_class, facts.source, shadow.call_class).total += 1

    def shadow_failed(self) -> None:
        self._shadow_failures.inc()

    def _key_call_ended(self, facts: CallFacts) -> None:
        self._key_calls.labels(facts.key, facts.outcome).inc()
        self._key_tokens.labels(facts.key, "in").inc(facts.prompt_tokens or 0)
        self._key_tokens.labels(facts.key, "out").inc(facts.output_tokens or 0)

    def retry_denied(self) -> None:
        self._retries_denied.inc()

    def watch_failed(self) -> None:
        self._watch_failures.inc()

    def hint_ignored(self) -> None:
        self._ignored_hints.inc()

    def reloaded(self, result: str) -> None:
        self._reloads.labels(result).inc()

    def exposition(self) -> bytes:
        """The text format of Prometheus."""
        return generate_latest(self.registry)


def _did(facts: CallFacts) -> str | None:
    """What a client did with its answer, in one word; None: there was none to do something with."""
    if facts.left:
        return f"left_{facts.left}"
    if facts.outcome != "completed":
        return None
    if not facts.stream:
        return "took_whole"
    return "read_slowly" if facts.stalls else "read_at_once"


class _CallSeries:
    """The children of one combination of labels, looked up once; histograms only for calls that a backend took."""

    __slots__ = ("_calls", "_complete", "_errors", "_in", "_out", "_queue", "_tpot", "_ttft", "_verdicts")

    def __init__(self, metrics: Metrics, facts: CallFacts) -> None:
        per_call = (facts.call_class, facts.backend)
        self._calls = metrics._calls.labels(*per_call, facts.outcome)
        judged, placed, completed = facts.call_class != "none", facts.backend != "", facts.outcome == "completed"
        self._verdicts = metrics._verdicts.labels(facts.call_class, facts.source) if judged else None
        self._queue = metrics._queue.labels(facts.call_class) if judged else None
        self._ttft = metrics._ttft.labels(*per_call) if placed else None
        self._tpot = metrics._tpot.labels(*per_call) if placed else None
        self._complete = metrics._complete.labels(*per_call) if placed and completed else None
        self._errors = metrics._predictions.of(facts.backend) if placed and completed else None
        self._in = metrics._tokens.labels(facts.backend, "in") if placed else None
        self._out = metrics._tokens.labels(facts.backend, "out") if placed else None

    def observe(self, facts: CallFacts) -> None:
        self._calls.total += 1
        if self._verdicts is not None:
            self._verdicts.total += 1
        if self._queue is not None:
            self._queue.observe(facts.queue_s)
        if self._ttft is not None and facts.ttft_s is not None:
            self._ttft.observe(facts.ttft_s)
        if self._tpot is not None and facts.tpot_s is not None:
            self._tpot.observe(facts.tpot_s)
        if self._complete is not None:
            self._complete.observe(facts.complete_s)
        if self._errors is not None and facts.predicted is not None:
            self._errors.observe(facts.predicted, facts.ttft_s, facts.tpot_s, facts.complete_s)
        if self._in is not None and facts.prompt_tokens:
            self._in.total += facts.prompt_tokens
        if self._out is not None and facts.output_tokens:
            self._out.total += facts.output_tokens

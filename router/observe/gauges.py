"""The router at the moment of a scrape: what is asked for then, so that a call pays nothing for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from policies.api import ClassRules


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
    promises: Mapping[str, ClassRules] = field(default_factory=dict)
    """What each class is promised."""
    version: str = ""


class GaugeCollector(Collector):
    """Asks for the gauges when somebody scrapes."""

    def __init__(self, read: Callable[[], Gauges]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        now = self._read()
        yield from _of_backends(now.backends)
        line = GaugeMetricFamily("twolane_line_waiting", "Calls in the router's line", labels=("class",))
        for call_class, count in now.waiting_by_class.items():
            line.add_metric((call_class,), count)
        yield line
        yield _of_promises(now.promises)
        calls = GaugeMetricFamily("twolane_open_calls", "Calls that are being served or wait")
        calls.add_metric((), now.open_calls)
        yield calls
        dropped = CounterMetricFamily("twolane_decisions_dropped", "Lines of the decision log that were not written")
        dropped.add_metric((), now.decisions_dropped)
        yield dropped
        about = InfoMetricFamily("twolane", "The router itself")
        about.add_metric((), {"version": now.version})
        yield about


def _of_backends(backends: Iterable[BackendGauges]) -> Iterable[Metric]:
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
    for backend in backends:
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
    return (up, own, foreign, cap, running, waiting, age)


def _of_promises(promises: Mapping[str, ClassRules]) -> Metric:
    family = GaugeMetricFamily(
        "twolane_slo_seconds", "What calls of a class are promised; absent: nothing", labels=("class", "time")
    )
    for call_class, rules in promises.items():
        for time, seconds in (
            ("ttft", rules.slo_ttft_s),
            ("tpot", rules.slo_tpot_s),
            ("complete", rules.slo_complete_s),
        ):
            if seconds is not None:
                family.add_metric((call_class, time), seconds)
    return family

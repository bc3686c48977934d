"""What operators see of tasks: those under way, the last ones that are over, and series whose number is fixed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from router.observe.series import Distribution, Tally
from router.pipelines.hop import Pipeline
from router.pipelines.seen import detail, measured, result, row, wasted_tokens
from router.pipelines.store import Pipelines

_SHOWN: Final = 200
_SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_HOPS = (1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0, 100.0)


class _Open(Collector):
    """Asks for the number of tasks when somebody scrapes."""

    def __init__(self, store: Pipelines) -> None:
        self._store = store

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily("twolane_pipelines_open", "Tasks of several calls that are under way")
        family.add_metric((), sum(pipeline.several for pipeline in self._store.open()))
        return (family,)


class Overview:
    """Told of each task of several calls when it is over."""

    def __init__(self, store: Pipelines, registry: CollectorRegistry, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        found = ("found",)
        registry.register(_Open(store))
        self._total = Tally(
            "twolane_pipelines",
            "Tasks that are over, by whether they kept their deadline",
            ("found", "deadline"),
            registry,
        )
        self._makespan = Distribution(
            "twolane_pipeline_seconds", "First arrival to last end of a task", found, _SECONDS, registry
        )
        self._hops = Distribution("twolane_pipeline_hops", "Calls of a task", found, _HOPS, registry)
        self._line = Distribution(
            "twolane_pipeline_line_seconds", "In the router's line, on the critical path", found, _SECONDS, registry
        )
        self._prefill = Distribution(
            "twolane_pipeline_prefill_seconds", "To first tokens, on the critical path", found, _SECONDS, registry
        )
        self._tokens = Tally(
            "twolane_pipeline_tokens",
            "Tokens of tasks: computed, from caches, and computed in vain",
            ("kind",),
            registry,
        )
        store.on_close = self._over

    def _over(self, pipeline: Pipeline) -> None:
        found = "recognised" if pipeline.recognised else "named"
        path = measured(pipeline.spans)
        self._total.labels(found, result(pipeline, pipeline.last_s)).total += 1
        self._makespan.labels(found).observe(pipeline.last_s - pipeline.started_s)
        self._hops.labels(found).observe(pipeline.hops)
        self._line.labels(found).observe(path.line_s)
        self._prefill.labels(found).observe(path.prefill_s)
        fresh = max(0, pipeline.prompt_tokens - pipeline.cached_tokens)
        self._tokens.labels("computed").total += fresh + pipeline.output_tokens
        self._tokens.labels("cached").total += pipeline.cached_tokens
        self._tokens.labels("wasted").total += wasted_tokens(pipeline, pipeline.last_s)

    # --- what the admin port asks for

    def document(self) -> dict[str, Any]:
        """Those under way, the newest first, and the last ones that are over."""
        now_s = self._clock()
        self._store.expire(now_s)
        open_ = [pipeline for pipeline in self._store.open() if pipeline.several]
        open_.sort(key=lambda pipeline: pipeline.started_s, reverse=True)
        return {
            "open": [row(pipeline, now_s) for pipeline in open_[:_SHOWN]],
            "open_count": len(open_),
            "over": [row(pipeline, now_s) for pipeline in reversed(self._store.shown.over)],
        }

    def detail(self, id_: str) -> dict[str, Any] | None:
        """One task with its hops; `id_` may be the beginning of its id. None: there is none, or it is forgotten."""
        if not id_:
            return None
        for pipeline in (*self._store.open(), *reversed(self._store.shown.over)):
            if pipeline.id.startswith(id_):
                return detail(pipeline, self._clock())
        return None

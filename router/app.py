"""The composition root: builds everything from the settings, wires it, starts it, replaces parts on reload, ends it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import structlog
from pydantic import SecretStr

from router.access.hosts import Hosts
from router.access.keys import Access
from router.admin.server import Admin
from router.arrivals import Arrivals
from router.attempts import Attempts
from router.dashboard.board import Board
from router.dashboard.lanes import backend_document
from router.dispatch import Dispatcher
from router.errors import Draining
from router.explain import Explainer
from router.fleet.backend import Backend
from router.fleet.fleet import Fleet
from router.fleet.health import State
from router.fleet.probes import Prober
from router.fleet.rounds import Rounds
from router.gateway import Gateway
from router.intake import Intake
from router.line import Line
from router.listing import Listings, router_version
from router.models import VECTOR, named
from router.observe import logs
from router.observe.audit import Audit
from router.observe.call_line import call_line
from router.observe.decisions import DecisionLog
from router.observe.facts import CallFacts, JudgedCall
from router.observe.gathered import Ended, Gathered
from router.observe.gauges import BackendGauges, Gauges
from router.observe.goodput import Goodput
from router.observe.judgements import Judgements
from router.observe.metrics import Metrics
from router.observe.steps import in_turns
from router.observe.tracing import Tracing, Wanted
from router.pipelines.overview import Overview
from router.plan import Plan
from router.ports import Ports
from router.reload import Prepared, Reloads
from router.settings.fields import Address
from router.settings.judging import Decisions
from router.settings.model import Settings
from router.settings.shown import redacted
from router.settings.traces import Traces
from router.tasks import Tasks
from router.upstreams import Upstreams

log = structlog.get_logger("twolane.app")

_FIRST_ANSWERS_S = 1.0
"""Longest wait for the backends before the first call is taken."""


class App:
    """One router. `path` is the settings file, read again on reload; None where there is none."""

    def __init__(self, settings: Settings, path: Path | None = None, digest: str | None = None) -> None:
        """`digest` is that of the file as it was loaded, so that a change since then is not missed."""
        clock = self._clock = time.monotonic  # the loop's own clock counts in milliseconds
        self._tasks = Tasks()
        self._stop = asyncio.Event()
        self._stopped_by = "signal"
        self._hurry = asyncio.Event()
        self.settings = settings
        plan = Plan.of(settings)
        self.fleet = Fleet(settings)
        self.line = Line(
            self.fleet,
            plan.policy,
            max_waiting=settings.line.max_waiting,
            ageing_s=settings.line.ageing,
        )
        self.metrics = Metrics(self._gauges)
        self.judgements = Judgements(self.metrics)
        self._tracing = Tracing(router_version())
        self.audit = Audit(shown=settings.log.audit)
        self._reloads = Reloads(
            path,
            digest,
            settings=lambda: self.settings,
            take_over=self._take_over,
            metrics=self.metrics,
            audit=self.audit,
        )
        self._goodput = Goodput(clock())
        self._ended = Gathered(self._calls_ended)
        self._closed = False
        self.upstreams = Upstreams()
        self.access = Access(settings.keys, clock())
        self.arrivals = Arrivals()
        dispatcher = Dispatcher(self.fleet, self.line, clock)
        intake = Intake(self.fleet, self.arrivals)
        self.pipelines = Overview(intake.pipelines, self.metrics.registry, clock)
        self.gateway = Gateway(
            plan,
            self.fleet,
            Attempts(self.fleet, dispatcher, self.upstreams, clock=clock, metrics=self.metrics),
            Listings(self.fleet, started_unix_s=time.time_ns() // 10**9),
            self.access,
            intake,
            clock=clock,
            metrics=self.metrics,
            on_end=self._call_ended,
        )
        self._explainer = Explainer(self.fleet, self.line, intake.prefixes, clock)
        self.board = Board(
            self.fleet,
            self.line,
            clock=clock,
            wall_s=lambda: time.time_ns() / 1e9,
            settings=lambda: self.settings,
            goodput=lambda: self._goodput.steps(clock()),
            pipelines=lambda: self.pipelines.document(),
            open_calls=lambda: self.gateway.open_calls,
            audit=self.audit.tell,
            catch_up=self._ended.flush,
        )
        self.rounds = Rounds(self.fleet, self._prober, clock)
        self._ports: Ports | None = None
        self._call_log = settings.log.calls

    # --- start and end

    async def start(self) -> tuple[Address, Address | None]:
        """Ask the backends, then listen. Returns the addresses in use. Raises `OSError` where a port is taken."""
        settings = self.settings
        self._learn_from(self.gateway.plan)
        self.ask_backends()
        await self.rounds.first_answers(_FIRST_ANSWERS_S)
        await self.board.start()
        self._ports = Ports(self.gateway.handle, Admin(self, self.board).application(self.pipelines), settings)
        listen, admin = await self._ports.open()
        if self._reloads.has_file:
            self._tasks.spawn(self._reloads.follow(), name="settings file")
        return listen, admin

    def heed_signals(self) -> None:
        """SIGTERM and SIGINT end `run`, a second one cuts the grace time short; SIGHUP reloads. Before `start`, or a
        signal in between would end the process as it stands."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_signal)
        loop.add_signal_handler(signal.SIGHUP, self._reload_signal)
        loop.set_exception_handler(_uncaught)

    async def run(self) -> None:
        """Serve until told to end, drain, close."""
        await self._stop.wait()
        await self.drain()
        await self.close()

    def _stop_signal(self) -> None:
        (self._hurry if self._stop.is_set() else self._stop).set()

    def _reload_signal(self) -> None:
        self._tasks.spawn(self.reload(by="SIGHUP"), name="reload")

    async def drain(self) -> None:
        """No new calls; running ones may finish within `shutdown_grace`, then they are ended with an error."""
        log.info("draining", open_calls=self.gateway.open_calls, grace_s=self.settings.shutdown_grace)
        self.audit.tell("router_drained", by=self._stopped_by, open_calls=self.gateway.open_calls)
        self.gateway.draining = True
        if self._ports is not None:
            self._ports.stop_accepting()
        self.line.dismiss(Draining("the router is shutting down; send the call to another one", retry_after_s=1.0))
        deadline_s = self._clock() + self.settings.shutdown_grace
        while self.gateway.open_calls and self._clock() < deadline_s and not self._hurry.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), 0.05)
        if self.gateway.open_calls:
            log.warning("grace_over", open_calls=self.gateway.open_calls)
            self.gateway.end_all()

    async def close(self) -> None:
        """Release everything. Safe after a failed start."""
        self._closed = True
        self._reloads.close()
        await self._tasks.close()
        await self.rounds.close()
        self._ended.flush()
        await self.board.close()
        if self._ports is not None:
            await self._ports.close()
        self.upstreams.close()
        self._ended.flush()  # calls that were cut off just now
        self.judgements.write_to(None)
        await self.judgements.retire()
        await self._tracing.close()
        self.audit.close(self._clock())
        log.info("stopped")

    # --- reload

    async def reload(self, *, by: str = "admin port") -> dict[str, Any]:
        """Read the settings file again, and take over all of it or nothing."""
        return await self._reloads.reload(by=by)

    def _take_over(self, prepared: Prepared) -> None:
        """In one turn of the event loop, so that no call sees half of it."""
        self._ended.flush()
        plan = prepared.plan
        before, settings = self.settings, plan.settings
        self.settings = settings
        self.gateway.plan = plan
        self._learn_from(plan, before)
        self.access.configure(settings.keys, self._clock())
        self.gateway.hosts = Hosts(settings)
        self.line.policy = plan.policy
        self.line.max_waiting = settings.line.max_waiting
        self.line.ageing_s = settings.line.ageing
        self._call_log = settings.log.calls
        self.audit.shown = settings.log.audit
        self.fleet.apply(settings)
        self.ask_backends()
        self.upstreams.keep_only({backend.name for backend in settings.backends})
        self._tasks.spawn(self.board.configure(), name="history")
        if before.admin_key != settings.admin_key:
            self.board.end_streams()
        logs.configure(settings.log.level, settings.log.format)
        if self._ports is not None:
            self._ports.show(prepared.shown)
        self.line.pump(self._clock())

    # --- what the admin port asks for

    def exposed(self, *, openmetrics: bool) -> Iterator[bytes]:
        self._ended.flush()
        return self.metrics.exposed(openmetrics=openmetrics)

    def health(self) -> dict[str, Any]:
        return {"status": "ok", "version": router_version(), "open_calls": self.gateway.open_calls}

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """Ready: not draining, and at least one backend may be given a call now. That includes a broken one whose trial
        call is due: behind a check of readiness no call would ever come to try it."""
        now_s, backends = self._clock(), self.fleet.backends()
        ready = not self.gateway.draining and any(backend.health.available(now_s) for backend in backends)
        states = {each.name: "drained" if each.health.drained else each.health.state for each in backends}
        return ready, {"ready": ready, "draining": self.gateway.draining, "backends": states}

    def backends(self) -> list[dict[str, Any]]:
        now_s = self._clock()
        return [backend_document(backend, now_s) for backend in self.fleet.backends()]

    def config(self) -> dict[str, Any]:
        return redacted(self.settings)

    def admin_key(self) -> SecretStr | None:
        return self.settings.admin_key

    def explain(self, asked: object) -> dict[str, Any]:
        return self._explainer.explain(self.gateway.plan, asked)

    def start_drain(self) -> dict[str, Any]:
        self._stopped_by = "admin port"
        self._stop.set()
        return {"draining": True, "open_calls": self.gateway.open_calls}

    # --- wiring

    def ask_backends(self) -> None:
        """Backends are asked how they are as the settings of now say."""
        health = self.settings.health
        self.rounds.interval_s = health.interval
        self.rounds.watch(self.fleet.backends(), timeout_s=health.timeout)

    def _prober(self, backend: Backend, timeout_s: float) -> Prober:
        return Prober(backend.settings, clock=self._clock, timeout_s=timeout_s)

    def _call_ended(self, facts: CallFacts, judged: JudgedCall | None) -> None:
        now_s = self._clock()
        self.audit.call_ended(facts, now_s)  # at once, so that its entries stand in the order of what was done
        self._ended.add(Ended(facts, judged, now_s, time.time_ns()))

    def _calls_ended(self, calls: Sequence[Ended]) -> None:
        """One observer after the other, each with all calls: see `router.observe.gathered`."""
        for facts, *_ in calls:
            self.metrics.call_ended(facts)
        if (traces := self._tracing.traces) is not None:
            for facts, judged, _, unix_ns in calls:
                traces.ended(facts, judged, unix_ns)
        of_judged = [(facts, judged, at_s, unix_ns) for facts, judged, at_s, unix_ns in calls if judged is not None]
        for facts, judged, at_s, _ in of_judged:
            self._goodput.ended(facts, judged, at_s)
        for facts, judged, _, unix_ns in of_judged:
            self.judgements.ended(facts, judged, unix_ns)
        for facts, judged, _, unix_ns in of_judged:
            self.board.ended(facts, judged, unix_ns / 1e9)
        if self._goodput.untidy and not self._closed:
            self._tasks.spawn(in_turns(self._goodput.tidy(self._clock())), name="goodput")
        if self._call_log:
            bound = log.bind()  # once, since it looks up how logs are configured
            with logs.together():
                for facts, judged, _, unix_ns in calls:
                    bound.info("call", timestamp=logs.timestamp(unix_ns), **call_line(facts, judged))

    def _learn_from(self, plan: Plan, before: Settings | None = None) -> None:
        """Calls that end from now on go by these settings; `before`: those until now, None: the router starts."""
        self.gateway.begin_trace = self._tracing.configure(_traces_wanted(plan.settings.traces))
        self._tasks.spawn(self._tracing.retire(), name="traces")
        self.judgements.shadow = plan.shadow
        wanted = plan.settings.decisions
        if before is None or before.decisions != wanted:
            self.judgements.write_to(_decision_log(wanted))
            self._tasks.spawn(self.judgements.retire(), name="decision log")

    def _gauges(self) -> Gauges:
        now_s = self._clock()
        return Gauges(
            backends=tuple(self._backend_gauges(backend, now_s) for backend in self.fleet.backends()),
            waiting_by_class={str(call_class): count for call_class, count in self.line.depth().items()},
            open_calls=self.gateway.open_calls,
            decisions_dropped=self.judgements.dropped,
            promises={str(each): rules for each, rules in self.gateway.plan.rules.items()},
            version=router_version(),
        )

    def _backend_gauges(self, backend: Backend, now_s: float) -> BackendGauges:
        figures = backend.foreign.load
        return BackendGauges(
            name=backend.name,
            lane=backend.lane,
            engine=backend.engine.name,
            up=backend.health.state is State.UP and not backend.health.drained,
            own=backend.account.own,
            foreign=backend.foreign.calls(now_s),
            cap=backend.cap,
            engine_running=figures.running if figures is not None else None,
            engine_waiting=figures.waiting if figures is not None else None,
            figures_age_s=backend.foreign.age_s(now_s) if figures is not None else None,
        )


def _traces_wanted(settings: Traces) -> Wanted:
    return Wanted(settings.endpoint, settings.share, settings.per_minute, settings.plain())


def _decision_log(settings: Decisions) -> DecisionLog | None:
    if settings.file is None:
        return None
    return DecisionLog(
        settings.file,
        max_bytes=settings.max_size,
        keep=settings.keep,
        max_age_s=settings.max_age,
        packs=settings.compress,
        text_hashes=settings.text_hashes,
        vector=VECTOR,
        numbers=named,
        wall_ns=time.time_ns,
    )


def _uncaught(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """In place of the loop's own handler, which writes out tasks and what they hold."""
    log.error("uncaught", what=context.get("message"), exc_info=context.get("exception"))

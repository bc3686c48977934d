"""What it costs to have a router in the path: all peers in one run on one scripted backend, round by round.

The machine is small and shared, so absolute figures wander; within a round the peers are measured right after each
other and the order turns from round to round, so ratios hold. All peers run all the time. Memory and start-up are
measured on fresh processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median

from bench import cpu
from bench.load import Calls, LoadError
from bench.peers import TWOLANE, Missing, Peer
from bench.results import (
    ADDED_TTFT,
    ADDED_TTFT_P95,
    CALL_CPU,
    CALL_CPU_8K,
    CALL_RATE,
    CALL_RATE_8K,
    DIRECT,
    IDLE_STREAM,
    START,
    TOKEN_CPU,
    Failure,
    Metric,
    Run,
    percentile,
)
from bench.servers.process import ServerFailed
from bench.stage import Running, Stage, stage

MEASUREMENTS = ("calls", "tokens", "ttft", "idle", "start")
SIDE_BY_SIDE = frozenset({"calls", "tokens", "ttft"})
FILES_PER_STREAM = 2
DELAYED_ACK_MS = 30.0
NAGLE = (
    "about 40 ms until the first token on a kept connection is what a server pays for leaving Nagle's algorithm on: "
    "its second small write waits for an acknowledgement that the client's kernel delays"
)
SPARE_FILES = 256
BUSY_SHARE = 0.5
"""Of the cores, by the load average: more than this before the run, and figures of other days do not compare."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured. The default keeps a run of five peers under four minutes."""

    rounds: int = 7
    concurrency: int = 32
    calls_s: float = 0.6
    token_streams: int = 100
    token_interval_ms: int = 20
    tokens_s: float = 1.2
    ttft_streams: int = 40
    idle_rounds: int = 1
    idle_streams: int = 2000
    starts: int = 5
    """Of Twolane; the others are started as often as the other measurements need."""


QUICK = Plan(rounds=2, calls_s=0.2, tokens_s=0.4, ttft_streams=15, idle_streams=500, starts=2)


def measure(plan: Plan, peers: Sequence[Peer], measurements: Sequence[str], tell: Tell) -> Run:
    """A peer that cannot be had or does not play its part is in the result with the reason."""
    load_before, cores = os.getloadavg()[0], os.cpu_count() or 1
    with stage() as place:
        relay = Relay(plan=plan, stage=place, tell=tell)
        if load_before > BUSY_SHARE * cores:
            words = f"others kept this machine busy (load average {load_before:.1f} on {cores} cores before the run)"
            relay.run.notes.append(f"{words}: trust the ratios, not the figures")
        if SIDE_BY_SIDE & set(measurements):
            relay.side_by_side(peers, measurements)
        if "idle" in measurements:
            relay.idle(peers)
        if "start" in measurements:
            relay.starts(peers)
        return relay.run


class Relay:
    """One run on one stage."""

    def __init__(self, *, plan: Plan, stage: Stage, tell: Tell) -> None:
        self.run = Run()
        self._plan = plan
        self._stage = stage
        self._load = stage.loader
        self._tell = tell

    def side_by_side(self, peers: Sequence[Peer], measurements: Sequence[str]) -> None:
        """All peers up at once; each round measures each of them in each way."""
        with ExitStack() as stack:
            running: list[Running] = []
            for peer in peers:
                with self._noting(peer.name, "start"):
                    running.append(stack.enter_context(self._started(peer)))
            for number in range(self._plan.rounds):
                turn = number % len(running) if running else 0
                order = running[turn:] + running[:turn]
                for measurement in measurements:
                    if measurement in SIDE_BY_SIDE:
                        self._tell(f"round {number + 1} of {self._plan.rounds}: {measurement}")
                        self._round(measurement, order)
            for one in running:
                if one.name == TWOLANE:
                    self.run.sklearn_imported = cpu.has_mapped(one.pid, "sklearn")

    def _round(self, measurement: str, order: Sequence[Running]) -> None:
        match measurement:
            case "calls":
                self._direct_calls()
                for peer in order:
                    with self._noting(peer.name, measurement):
                        self._calls(peer)
            case "tokens":
                for peer in order:
                    with self._noting(peer.name, measurement):
                        self._tokens(peer)
            case "ttft":
                direct_ms = self._first_ms(self._stage.backend_port)
                for peer in order:
                    with self._noting(peer.name, measurement):
                        self._added_ttft(peer, direct_ms)
            case _:
                raise ValueError(f"not measured side by side: {measurement}")

    def _direct_calls(self) -> None:
        """The ceiling: what backend and load process do on their own."""
        for size_bytes, rate in ((1024, CALL_RATE), (8192, CALL_RATE_8K)):
            done = self._closed_loop(self._stage.backend_port, None, size_bytes)
            self.run.rounds.add(rate, DIRECT, done.calls / done.seconds)

    def _calls(self, peer: Running) -> None:
        for size_bytes, cost, rate in ((1024, CALL_CPU, CALL_RATE), (8192, CALL_CPU_8K, CALL_RATE_8K)):
            done = self._closed_loop(peer.port, peer.pid, size_bytes)
            self._add_cost(cost, peer, done.cpu_s, done.calls)
            self.run.rounds.add(rate, peer.name, done.calls / done.seconds)
            if done.reconnects:
                self._note(f"{peer.name} closed {done.reconnects} client connections between calls")

    def _closed_loop(self, port: int, pid: int | None, size_bytes: int) -> Calls:
        return self._load.calls(
            port=port,
            pid=pid,
            body_bytes=size_bytes,
            concurrency=self._plan.concurrency,
            seconds=self._plan.calls_s,
        )

    def _tokens(self, peer: Running) -> None:
        done = self._load.tokens(
            port=peer.port,
            pid=peer.pid,
            streams=self._plan.token_streams,
            interval_ms=self._plan.token_interval_ms,
            seconds=self._plan.tokens_s,
        )
        self._add_cost(TOKEN_CPU, peer, done.cpu_s, done.tokens)
        due = self._plan.token_streams * done.seconds * 1000 / self._plan.token_interval_ms
        if done.tokens < 0.98 * due:
            self._note(f"{peer.name} relayed {done.tokens} of {due:.0f} tokens that were due in a window")

    def _note(self, words: str) -> None:
        """Once each."""
        if words not in self.run.notes:
            self.run.notes.append(words)

    def _add_cost(self, metric: Metric, peer: Running, cpu_s: float | None, count: int) -> None:
        if cpu_s is not None:
            self.run.rounds.add(metric, peer.name, cpu_s / count * 1e6)

    def _first_ms(self, port: int) -> Sequence[float]:
        return self._load.first_tokens(port=port, streams=self._plan.ttft_streams).first_ms

    def _added_ttft(self, peer: Running, direct_ms: Sequence[float]) -> None:
        through_ms = self._first_ms(peer.port)
        added_ms = median(through_ms) - median(direct_ms)
        self.run.rounds.add(ADDED_TTFT, peer.name, added_ms)
        if added_ms > DELAYED_ACK_MS:
            self._note(f"{peer.name}: {NAGLE}")
        added_p95_ms = percentile(through_ms, 0.95) - percentile(direct_ms, 0.95)
        self.run.rounds.add(ADDED_TTFT_P95, peer.name, added_p95_ms)

    def idle(self, peers: Sequence[Peer]) -> None:
        """Memory of open and silent streams, each peer alone and fresh."""
        streams = min(self._plan.idle_streams, (self._stage.files - SPARE_FILES) // FILES_PER_STREAM)
        if streams < self._plan.idle_streams:
            self._note(f"only {streams} idle streams: the limit on open files is {self._stage.files}")
        for number in range(self._plan.idle_rounds):
            for peer in peers:
                if peer.name in self.run.missing:
                    continue
                self._tell(f"idle streams {number + 1} of {self._plan.idle_rounds}: {peer.name}")
                with self._noting(peer.name, "idle"), self._started(peer) as running:
                    held = self._load.idle(port=running.port, pid=running.pid, streams=streams)
                    grown_kb = (held.open_pss_bytes - held.before_pss_bytes) / 1024
                    self.run.rounds.add(IDLE_STREAM, peer.name, grown_kb / streams)

    def starts(self, peers: Sequence[Peer]) -> None:
        """Start-up of Twolane until there are as many figures as planned; every start of any peer gives one."""
        for peer in peers:
            wanted = self._plan.starts if peer.name == TWOLANE else 1
            while peer.name not in self.run.missing and len(self.run.rounds.of(START, peer.name)) < wanted:
                self._tell(f"start of {peer.name}")
                before = len(self.run.failures)
                with self._noting(peer.name, "start"), self._started(peer) as running:
                    if peer.name == TWOLANE and self.run.sklearn_imported is None:
                        self.run.sklearn_imported = cpu.has_mapped(running.pid, "sklearn")
                if len(self.run.failures) > before:
                    break

    @contextmanager
    def _started(self, peer: Peer) -> Iterator[Running]:
        self._tell(f"starting {peer.name}")
        with self._stage.started(peer) as running:
            self.run.rounds.add(START, peer.name, running.start_s)
            launch = running.launch
            self.run.launched[peer.name] = {"command": list(launch.command), "settings": dict(launch.settings)}
            yield running

    @contextmanager
    def _noting(self, peer: str, measurement: str) -> Iterator[None]:
        """What goes wrong with one peer is written down, and the others go on."""
        try:
            yield
        except Missing as error:
            self.run.missing[peer] = str(error)
        except (LoadError, ServerFailed) as error:
            self.run.failures.append(Failure(peer=peer, measurement=measurement, reason=str(error)))

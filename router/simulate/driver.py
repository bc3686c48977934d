"""The router in virtual time: the same reading, classifier, policies, fleet and line, in front of modelled engines.

Nothing of the router is modelled; only the wire is left out, so a call that is placed is in its engine at once. Events
happen in the order of time, and of equal times in the order in which they were foreseen.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from random import Random
from typing import TypeVar

from classifiers.api import CallClass, Features
from policies.api import Policy
from router.applicant import Applicant, Placed
from router.arrivals import Arrivals
from router.engines.api import Identity, Ready
from router.engines.api import Load as Scraped
from router.errors import RouterError
from router.fleet.backend import Backend
from router.fleet.evidence import NOTHING_SEEN
from router.fleet.fleet import Fleet
from router.fleet.ledger import Outcome
from router.heads import hints
from router.intake import Intake
from router.line import Line
from router.plan import Plan
from router.settings.model import Settings
from router.simulate.calls import Arriving, Became, Change
from router.simulate.going import Going, Server
from router.simulate.pace import EngineSpec, Flavour
from router.simulate.sequence import Stage
from router.surfaces import find, read_call

_PROBE_OFFSET_S = 0.001
_CLIENT_LEFT = 499
_DOES_NOT_FIT = 400


class Simulation:
    """One router in front of engines that are named as its backends are. Runs once."""

    def __init__(
        self,
        settings: Settings,
        engines: Mapping[str, EngineSpec],
        *,
        model: str = "emulated",
        seed: int = 0,
        figures_lag_s: float = 0.0,
        policy: Policy | None = None,
        then: Callable[[Became], Iterable[Arriving]] = lambda became: (),
    ) -> None:
        """`figures_lag_s`: age of the figures that engines tell of themselves when they are asked.

        `then` is told of each call that has ended, and gives the calls that come because of it, not before that time.

        `policy` in place of that of the settings, for one that has no name there.
        """
        self._plan = Plan.of(settings)
        self._fleet = Fleet(settings)
        self._line = Line(
            self._fleet,
            policy or self._plan.policy,
            max_waiting=settings.line.max_waiting,
            ageing_s=settings.line.ageing,
            chance=Random(seed).random,
        )
        self._fleet.on_change = self._line.pump
        self._line.on_look = self._look_at
        self._looks_s = math.inf
        self._intake = Intake(self._fleet, Arrivals())
        self._interval_s = settings.health.interval
        self._lag_s = figures_lag_s
        self._servers = {name: Server(name, spec) for name, spec in engines.items()}
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = count()
        self._open = 0
        self._coming = 0
        self._then = then
        self.now_s = 0.0
        for backend in self._fleet.backends():
            self._introduce(backend, engines[backend.name], model)

    def _introduce(self, backend: Backend, spec: EngineSpec, model: str) -> None:
        slots = spec.sequences if spec.flavour is Flavour.SLOTS else None
        identity = Identity(
            engine=spec.kind or spec.flavour.value, slots=slots, context_tokens=spec.context_tokens, models=(model,)
        )
        self._fleet.identified(backend, identity)

    # --- running

    def run(
        self, calls: Iterable[Arriving], changes: Sequence[Change] = (), arrived: Callable[[], None] = lambda: None
    ) -> list[Became]:
        """Until every call has ended. What became of each, in the order of `calls`. `arrived` is told of each call."""
        became = [Became(call) for call in calls]
        for change in changes:
            self._at(change.at_s, _bound(self._change, change))
        for number, backend in enumerate(self._fleet.backends()):
            self._probe(backend, -_PROBE_OFFSET_S)
            self._at(number * self._interval_s / len(self._servers), _bound(self._probe_again, backend))
        for each in sorted(became, key=lambda each: each.call.at_s):
            self._until(each.call.at_s)
            self._arrive(each, self.now_s)
            arrived()
        while self._open or self._coming:
            self._next()
        return became

    def _come(self, became: Became, now_s: float) -> None:
        """A call that another one was waited for."""
        self._coming -= 1
        self._arrive(became, now_s)

    def _until(self, time_s: float) -> None:
        """All that happens before."""
        while self._events[0][0] < time_s:
            self._next()
        self.now_s = max(self.now_s, time_s)

    def _next(self) -> None:
        time_s, _, happen = heapq.heappop(self._events)
        self.now_s = max(self.now_s, time_s)
        happen(self.now_s)

    def _at(self, time_s: float, happen: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (time_s, next(self._order), happen))

    def _look_at(self, at_s: float) -> None:
        """The line wants to be asked again then, unless something happens before."""
        if at_s < self._looks_s:
            self._looks_s = at_s
            self._at(at_s, self._look)

    def _look(self, now_s: float) -> None:
        if self._looks_s <= now_s:
            self._looks_s = math.inf
            self._line.pump(now_s)

    def _change(self, change: Change, now_s: float) -> None:
        server = self._servers[change.backend]
        self._serve(server, now_s)
        if change.speed is not None:
            server.engine.change_speed(change.speed, now_s)
        if change.sequences is not None:
            server.engine.resize(change.sequences, now_s)
        if change.frozen is not None:
            server.frozen = change.frozen
        self._wake_when_due(server)

    # --- probes

    def _probe_again(self, backend: Backend, now_s: float) -> None:
        self._probe(backend, now_s)
        self._at(now_s + self._interval_s, _bound(self._probe_again, backend))

    def _probe(self, backend: Backend, now_s: float) -> None:
        server = self._servers[backend.name]
        self._serve(server, now_s)
        if not server.frozen or not server.said:
            running, waiting, used_0_1 = server.engine.load()
            said = Scraped(
                running=running,
                waiting=waiting,
                cache_used_0_1=used_0_1,
                cache_tokens=server.engine.spec.cache_tokens,
            )
            server.said.append((now_s, said))
        while len(server.said) > 1 and server.said[1][0] <= now_s - self._lag_s:
            del server.said[0]
        self._fleet.probed(backend, Ready(), server.said[0][1], since_s=now_s, now_s=now_s)

    # --- the life of a call, as the gateway has it

    def _arrive(self, became: Became, now_s: float) -> None:
        self._open += 1
        call, going = became.call, Going(became)
        if call.leaves_after_s is not None:
            self._at(now_s + call.leaves_after_s, _bound(self._leave, going))
        if call.direct:
            self._submit(going, self._servers[call.direct], 0, now_s)
            return
        try:
            applicant = self._judge(going, now_s)
            applicant.granted = lambda result: self._granted(going, result)
            placed = self._line.apply(applicant, now_s)
        except RouterError as error:
            self._end(going, error.status, now_s)
            return
        if placed is not None:
            self._granted(going, placed)
        elif going.placed is None:
            self._at(now_s + applicant.ask.rules.max_wait_s, _bound(self._expire, going))

    def _judge(self, going: Going, now_s: float) -> Applicant:
        """Read and classify, as `Gateway._applicant` does for calls that generate."""
        call, plan = going.became.call, self._plan
        features, client = self._read(call)
        going.client = client
        if call.verdict is None:
            judged = self._intake.judge(plan, client, features, now_s)
        else:
            judged = self._intake.known(features, call.verdict)
        verdict = going.became.verdict = judged.verdict
        going.presence, going.prefix, going.hop = judged.presence, judged.prefix, judged.hop
        going.applicant = Applicant(
            ask=self._intake.ask(plan, client, features, judged, plan.rules[verdict.call_class], now_s),
            model=features.model,
            surface=features.surface,
            keeps_model=self._intake.keeps_model(plan, judged),
        )
        return going.applicant

    def _read(self, call: Arriving) -> tuple[Features, str]:
        """What is known of the call itself, and whose it is."""
        if call.features is not None and call.verdict is not None:
            return call.features, call.client
        seen = hints(call.headers)
        features = call.features or read_call(find("POST", call.path), call.body, seen)
        self._fleet.token_rates.correct(features)
        return features, f"{call.client} {seen.get('user-agent', '')}"

    def _granted(self, going: Going, result: Placed | RouterError) -> None:
        now_s = self.now_s
        if isinstance(result, RouterError):
            self._end(going, result.status, now_s)
            return
        became, backend = going.became, result.backend
        going.placed = result
        going.sent(backend.name, result.model, now_s)
        became.placed_s, became.backend, became.reason = now_s, backend.name, result.reason
        priority = backend.engine.priority(result.lease.call_class) if backend.settings.forward_priority else None
        self._submit(going, self._servers[backend.name], priority or 0, now_s)

    def _submit(self, going: Going, server: Server, priority: int, now_s: float) -> None:
        self._serve(server, now_s)  # what ends at this very moment has ended before
        call = going.became.call
        if call.prompt_tokens >= server.engine.spec.context_tokens:
            self._end(going, _DOES_NOT_FIT, now_s)
            return
        going.sequence = server.engine.submit(
            now_s,
            prompt_tokens=call.prompt_tokens,
            output_tokens=call.output_tokens,
            blocks=call.blocks,
            full_blocks=call.full_blocks,
            priority=priority,
            tag=going,
        )
        if going.placed is not None and (running := going.placed.lease.running) is not None:
            engine, sequence = server.engine, going.sequence
            running.count = lambda: engine.tokens_at(sequence, self.now_s)
        self._wake_when_due(server)

    def _expire(self, going: Going, now_s: float) -> None:
        if going.applicant is not None and self._line.leave(going.applicant):
            self._end(going, self._line.waited_too_long(going.applicant).status, now_s)

    def _leave(self, going: Going, now_s: float) -> None:
        if going.became.status:
            return
        if going.sequence is None:
            if going.applicant is not None:
                self._line.leave(going.applicant)
        else:
            server = self._servers[going.became.backend or going.became.call.direct]
            self._serve(server, now_s)
            server.engine.cancel(going.sequence, now_s)
            self._wake_when_due(server)
        self._end(going, _CLIENT_LEFT, now_s)

    def _end(self, going: Going, status: int, now_s: float) -> None:
        became = going.became
        if became.status:
            return  # it ended at the very moment at which its client left
        became.status, became.ended_s = status, now_s
        self._open -= 1
        for call in self._then(became):
            self._coming += 1
            self._at(max(now_s, call.at_s), _bound(self._come, Became(call)))
        complete = status == 200
        tokens = became.call.output_tokens if complete else None
        if going.presence is not None:
            going.presence.ended(
                now_s,
                left=status == _CLIENT_LEFT,
                first_token_seen=became.first_s is not None,
                output_tokens=tokens,
            )
        if going.applicant is not None and complete:
            self._intake.ended(
                self._plan,
                going.client,
                going.applicant.ask.features,
                prompt_tokens=became.call.prompt_tokens,
                output_tokens=tokens,
                complete=True,
            )
            self._fleet.conversations.remember(going.applicant.ask.affinity_key, became.backend)
        going.remembered(self._intake.pipelines, now_s, complete=complete)
        if going.placed is not None:
            self._line.slot_ended(now_s)
            outcome = Outcome.COMPLETED if complete else Outcome.IGNORED
            going.placed.lease.close(outcome, now_s, going.answered(now_s) if complete else NOTHING_SEEN)

    # --- engines

    def _wake_when_due(self, server: Server) -> None:
        due_s = server.engine.next_s()
        # What is due by now, as rounding may have it, is still to come, though an event for it has just gone by.
        if due_s != server.wakes_s or due_s <= self.now_s:
            server.wakes_s = due_s
            if due_s < math.inf:
                self._at(due_s, _bound(self._wake, server))

    def _wake(self, server: Server, now_s: float) -> None:
        if server.wakes_s <= now_s:  # else something else came first, and another event is on its way
            self._serve(server, now_s)

    def _serve(self, server: Server, now_s: float) -> None:
        for sequence in server.engine.run(now_s):
            going = sequence.tag
            assert isinstance(going, Going)
            became = going.became
            if became.first_s is None:
                became.first_s, became.cached_tokens = sequence.first_s, sequence.cached_tokens
                if going.placed is not None:
                    going.placed.lease.account.last_progress_s = now_s
                    if going.streams:
                        going.placed.lease.first_token(now_s)
            elif sequence.stage is Stage.ENDED and not became.status:
                became.end_s = sequence.end_s
                self._end(going, 200, now_s)
        self._wake_when_due(server)

    def waiting(self) -> Mapping[CallClass, int]:
        """Calls in the router's line, by class."""
        return self._line.depth()


_T = TypeVar("_T")


def _bound(act: Callable[[_T, float], None], what: _T) -> Callable[[float], None]:
    return lambda now_s: act(what, now_s)

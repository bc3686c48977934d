"""Are calls that send no header given to the task they belong to? Recorded agent sessions among chats and jobs.

    python -m bench.pipelines.recognise           some ten thousand calls of some hundred clients on one clock; a minute
    python -m bench.pipelines.recognise --judged  the class of each call as the shipped model judges it (which has seen
                                                  these sources), in place of the recorded one
    python -m bench.pipelines.recognise --traced  with the `traceparent` of the record from which a client has its
                                                  headers: all that it does is one trace, its jobs and chats as well
    python -m bench.pipelines.recognise --seed 2  other company, gaps and habits

Clients behave as in `bench.judgement.behaviour`: tools take from 20 ms to 15 s, people from 4 s to two minutes, several
sessions of one program run at the same time, and some clients do two things at once. All of them are on one clock, in
front of one store, whose answers are held against what was recorded:

    right     of a session's calls from its second on, the share that is given to that session
    precision of all calls that are given to an earlier one, the share for which this is true, chats included
    hop       the same for calls that a program sent, told from those behind which a person stands
    step      calls of pipelines that no history connects with the one before: what time alone, or a trace, tells
    read      hops whose answer somebody reads, told from those whose answer a tool gets
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Final, NamedTuple

import orjson
import typer

from bench.judgement.behaviour import Start
from bench.judgement.data import folder
from bench.judgement.replay import clients_of
from bench.judgement.virtual import Actor, Send, Speed, Wait
from classifiers.api import CallClass, Features
from classifiers.tags import tags_of
from router.arrivals import Arrivals, Presence
from router.fleet.fleet import Fleet
from router.intake import Intake
from router.pipelines import Hop, Kind, Pipelines
from router.plan import Plan
from router.settings.load import parse
from router.surfaces.calls import read_call
from router.surfaces.routes import find

_SPREAD_S: Final = 4 * 3600.0
"""Clients begin within so long, so that hundreds of them are under way at any time."""
_PLAN: Final = Plan.of(parse("backends: [{name: one, url: 'http://127.0.0.1:1'}]", "bench.yaml", {}))
_READ: Final = frozenset({"final", "user_facing"})

Key = tuple[int, int]
"""A client, and what of it sends: a session, a chat, a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One call, as it was recorded and as it was recognised."""

    source: str
    key: Key
    label: CallClass
    position: int
    """Calls of the same actor before it."""
    in_session: bool
    what: str
    """As recorded: tool_hop, user_facing, final."""
    by_program: bool
    """A program sent it, and no person has read the answer before."""
    kind: Kind
    by_history: bool
    """It repeats what was served before, so no other evidence was asked for."""
    given_to: Key | None
    """Who sent the calls that it is said to go on from; None: it is said to go on from none."""
    final: bool


class Figures(NamedTuple):
    """Of one thing that is looked for."""

    right: int
    there: int
    wrong: int

    @property
    def recall(self) -> float:
        return self.right / self.there if self.there else float("nan")

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else float("nan")

    def __str__(self) -> str:
        return f"precision {self.precision:6.1%}  recall {self.recall:6.1%}  of {self.there}"


class Stage:
    """All clients on one clock, in front of one store."""

    def __init__(self, chance: Random, judge: Intake | None = None, *, traced: bool = False) -> None:
        """`judge` gives each call its class; None: the recorded one is taken. `traced`: traces are left in."""
        self.seen: list[Seen] = []
        self._left_out = frozenset() if traced else frozenset({"traceparent"})
        self._chance = chance
        self._judge = judge
        self._pipelines = Pipelines(key=b"bench") if judge is None else judge.pipelines
        self._presences: dict[int, Presence] = {}
        self._queue: list[tuple[float, int, Actor, Key, Hop | None]] = []
        self._speeds: list[Speed] = []
        self._order = 0
        self._counts: Counter[Key] = Counter()
        self._read_before: set[Key] = set()
        self._threads: dict[int, Key] = {}
        self._tasks: dict[str, Key] = {}

    def add(self, starts: Sequence[Start], speed: Speed) -> None:
        begins_s = self._chance.uniform(0, _SPREAD_S)
        for number, (start_s, actor) in enumerate(starts):
            self._push(begins_s + start_s, actor, (len(self._speeds), number), None)
        self._speeds.append(speed)

    def play(self) -> None:
        while self._queue:
            now_s, _, actor, key, hop = heapq.heappop(self._queue)
            if hop is not None:
                self._ended(hop, now_s)
            action = next(actor, None)
            if isinstance(action, Wait):
                if action.by_person:
                    self._read_before.add(key)
                self._push(now_s + action.seconds, actor, key, None)
            elif action is not None:
                hop, takes_s = self._send(action, key, now_s)
                self._push(now_s + takes_s, actor, key, hop)

    def _push(self, at_s: float, actor: Actor, key: Key, hop: Hop | None) -> None:
        self._order += 1
        heapq.heappush(self._queue, (at_s, self._order, actor, key, hop))

    def _ended(self, hop: Hop, now_s: float) -> None:
        if (presence := self._presences.pop(id(hop), None)) is not None:
            presence.ended(now_s, output_tokens=200)
        self._pipelines.ended(
            hop, now_s, complete=True, first_s=None, prompt_tokens=None, cached_tokens=None, output_tokens=None
        )

    def _send(self, action: Send, key: Key, now_s: float) -> tuple[Hop, float]:
        headers = {name: value for name, value in action.headers.items() if name not in self._left_out}
        features = read_call(find("POST", action.path), orjson.dumps(action.body), headers)
        client = f"client-{key[0]} {action.headers.get('user-agent', '')}"
        hop = self._hop(action, client, features, now_s)
        self.seen.append(self._judged(action, key, hop))
        self._counts[key] += 1
        self._read_before.discard(key)
        speed = self._speeds[key[0]]
        takes_s = speed.first_token_s(features, self._chance) + speed.rest_s(action.output_tokens, self._chance)
        return hop, takes_s

    def _hop(self, action: Send, client: str, features: Features, now_s: float) -> Hop:
        if self._judge is None:
            return self._pipelines.arrive(client, features, action.label, tags_of(features), now_s)
        judged = self._judge.judge(_PLAN, client, features, now_s)
        assert judged.hop is not None
        assert judged.presence is not None
        self._presences[id(judged.hop)] = judged.presence
        return judged.hop

    def _judged(self, action: Send, key: Key, hop: Hop) -> Seen:
        owner = self._threads.setdefault(hop.thread, key) if hop.thread_hops else None
        self._threads.setdefault(hop.thread, key)
        if hop.pipeline is not None:
            first = self._tasks.setdefault(hop.pipeline.id, owner or key)
            if owner is None and hop.kind is not Kind.FIRST:
                owner = first
        return Seen(
            source=action.source,
            key=key,
            label=action.label,
            position=self._counts[key],
            in_session=action.in_session,
            what=action.kind,
            by_program=action.label is CallClass.MIXED and key not in self._read_before,
            kind=hop.kind,
            by_history=hop.thread_hops > 0,
            given_to=owner,
            final=hop.final,
        )


def given(calls: Iterable[Seen]) -> Figures:
    """To the right session, chat or job; wrong are all that are given to another one, or that nothing went before.

    Calls of pipelines that were not recorded as sessions are neither: some of them share their beginnings.
    """
    calls = [call for call in calls if call.in_session or call.label is not CallClass.MIXED]
    there = [call for call in calls if call.in_session and call.position > 0]
    said = [call for call in calls if call.given_to is not None]
    return Figures(
        right=sum(call.given_to == call.key for call in there),
        there=len(there),
        wrong=sum(call.given_to != call.key or call.position == 0 for call in said),
    )


def hops(calls: Iterable[Seen]) -> Figures:
    """Sent by a program from the second call of a session on; wrong are all behind which a person stands, and all of
    another session. Calls of pipelines that were not recorded as sessions are neither."""
    found = [(call, call.kind in (Kind.NEXT, Kind.SIBLING)) for call in calls]
    there = [(call, said) for call, said in found if call.in_session and call.position > 0 and call.by_program]
    return Figures(
        right=sum(said and call.given_to == call.key for call, said in there),
        there=len(there),
        wrong=sum(said and _is_no_hop(call) for call, said in found),
    )


def _is_no_hop(call: Seen) -> bool:
    if call.label is not CallClass.MIXED:
        return True
    return call.in_session and (call.given_to != call.key or not call.by_program)


def steps(calls: Iterable[Seen]) -> Figures:
    """Of pipelines, from the second on; wrong are all calls without a history that are given to what they are no part
    of."""
    alone = [call for call in calls if not call.by_history]
    there = [call for call in alone if call.label is CallClass.MIXED and not call.in_session and call.position > 0]
    return Figures(
        right=sum(call.given_to == call.key for call in there),
        there=len(there),
        wrong=sum(call.given_to is not None and (call.given_to != call.key or not call.position) for call in alone),
    )


def read(calls: Iterable[Seen]) -> Figures:
    """Hops whose answer somebody reads."""
    among = [call for call in calls if call.in_session and call.position > 0]
    return Figures(
        right=sum(call.final and call.what in _READ for call in among),
        there=sum(call.what in _READ for call in among),
        wrong=sum(call.final and call.what not in _READ for call in among),
    )


def report(calls: Sequence[Seen]) -> list[str]:
    """Lines to print."""
    clients = len({call.key[0] for call in calls})
    sessions = len({call.key for call in calls if call.in_session})
    return [
        f"{len(calls)} calls of {clients} clients on one clock, {sessions} recorded agent sessions among them",
        *_rows("given to their session, from the second call on", calls, given),
        *_rows("... and sent by a program, not by somebody who has read the answer", calls, hops),
        "steps of pipelines that no history connects",
        f"  {'all':20} {steps(calls)}",
        *_rows("hops whose answer somebody reads, told from those that a tool reads", calls, read),
    ]


def _rows(title: str, calls: Sequence[Seen], figures: Callable[[Iterable[Seen]], Figures]) -> list[str]:
    sources = sorted({call.source for call in calls if call.in_session})
    return [
        title,
        f"  {'all':20} {figures(calls)}",
        *(f"  {source:20} {figures(call for call in calls if call.source == source)}" for source in sources),
    ]


def measured(seed: int = 1, *, judged: bool = False, traced: bool = False) -> list[Seen]:
    """Empty where there are no data."""
    where = folder()
    if where is None:
        return []
    judge = Intake(Fleet(_PLAN.settings), Arrivals()) if judged else None
    stage = Stage(Random(f"recognise {seed}"), judge, traced=traced)
    for starts, speed, _ in clients_of(where, seed=seed):
        stage.add(starts, speed)
    stage.play()
    return stage.seen


def main(
    judged: Annotated[bool, typer.Option(help="By the shipped model, in place of the recorded class.")] = False,
    traced: Annotated[bool, typer.Option(help="Leave traces in.")] = False,
    seed: Annotated[int, typer.Option()] = 1,
) -> None:
    """Measure how well calls are given to their tasks."""
    calls = measured(seed, judged=judged, traced=traced)
    print("\n".join(report(calls)) if calls else "not measured: TWOLANE_DATA names no data")


if __name__ == "__main__":
    typer.run(main)

"""Clients in virtual time: what they send is read as the router reads it and counted by the router's own store.

No socket and no clock: actors say what they do, one after the other, and an event queue does it in the order of time.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import orjson

from bench.judgement.data import Row
from classifiers.api import CallClass, Features
from router.arrivals import Arrivals, Presence
from router.surfaces.calls import read_call
from router.surfaces.routes import find


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A call that an actor makes; it goes on when the answer has ended."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    label: CallClass
    source: str
    group: str
    kind: str = ""
    in_session: bool = False
    """Recorded as one of the calls of an agent, in their order."""
    output_tokens: int = 200
    leave_after_s: float | None = None
    """The client gives up then, unless the answer is complete."""


class Wait(NamedTuple):
    """An actor does nothing for a while."""

    seconds: float
    by_person: bool = False
    """Somebody reads, and types; else a program works."""


Actor = Generator[Send | Wait, None, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One call as it was classified, with what had gone before."""

    row: Row
    """Its features hold the arrival context."""
    position: int
    """Calls of the same actor before it."""
    client: int
    at_s: float
    in_session: bool


class Speed(NamedTuple):
    """How fast the servers behind a client are."""

    prefill_per_s: float
    decode_per_s: float
    overhead_s: float
    noise: float

    @classmethod
    def drawn(cls, chance: Random) -> Speed:
        """From a laptop to a rack, queues included."""
        return cls(
            prefill_per_s=log_uniform(chance, 100, 20_000),
            decode_per_s=log_uniform(chance, 6, 200),
            overhead_s=log_uniform(chance, 0.01, 1.5),
            noise=chance.uniform(0.05, 0.8),
        )

    def first_token_s(self, features: Features, chance: Random) -> float:
        queue_s = self.overhead_s * chance.lognormvariate(0.0, self.noise)
        return queue_s + features.prompt_tokens * chance.uniform(0.1, 1.0) / self.prefill_per_s

    def rest_s(self, output_tokens: int, chance: Random) -> float:
        return output_tokens / self.decode_per_s * chance.lognormvariate(0.0, self.noise / 3)


def log_uniform(chance: Random, low: float, high: float) -> float:
    return math.exp(chance.uniform(math.log(low), math.log(high)))


class _Ending(NamedTuple):
    presence: Presence
    left: bool
    first_token_seen: bool
    output_tokens: int | None


def play(client: int, actors: Iterable[tuple[float, Actor]], speed: Speed, chance: Random) -> list[Replayed]:
    """All that these actors do who look like one client to the router, each from its start (in s) on."""
    arrivals = Arrivals()
    rows: list[Replayed] = []
    counts: dict[int, int] = {}
    queue: list[tuple[float, int, int, Actor, _Ending | None]] = []
    for number, (start_s, actor) in enumerate(actors):
        heapq.heappush(queue, (start_s, number, number, actor, None))
    order = len(queue)
    while queue:
        now_s, _, number, actor, ending = heapq.heappop(queue)
        if ending is not None:
            ending.presence.ended(
                now_s,
                left=ending.left,
                first_token_seen=ending.first_token_seen,
                output_tokens=ending.output_tokens,
            )
        action = next(actor, None)
        if action is None:
            continue
        order += 1
        if isinstance(action, Wait):
            heapq.heappush(queue, (now_s + action.seconds, order, number, actor, None))
            continue
        features = read_call(find("POST", action.path), orjson.dumps(action.body), action.headers)
        presence = arrivals.arrive(str(client), features, now_s)
        features.came_with(presence.arrival)
        rows.append(_row(action, features, counts.get(number, 0), client, now_s))
        counts[number] = counts.get(number, 0) + 1
        takes_s, ending = _answer(action, features, presence, speed, chance)
        heapq.heappush(queue, (now_s + takes_s, order, number, actor, ending))
    return rows


def _row(action: Send, features: Features, position: int, client: int, now_s: float) -> Replayed:
    row = Row(features=features, label=action.label, source=action.source, group=action.group, kind=action.kind)
    return Replayed(row=row, position=position, client=client, at_s=now_s, in_session=action.in_session)


def _answer(
    action: Send, features: Features, presence: Presence, speed: Speed, chance: Random
) -> tuple[float, _Ending]:
    """How long it takes, and how it ends."""
    tokens = min(action.output_tokens, features.max_tokens or action.output_tokens) * features.choices
    first_s = speed.first_token_s(features, chance)
    whole_s = first_s + speed.rest_s(tokens, chance)
    left = action.leave_after_s is not None and action.leave_after_s < whole_s
    if not left:
        return whole_s, _Ending(presence, False, True, tokens)
    assert action.leave_after_s is not None
    seen = features.stream and action.leave_after_s > first_s
    part = int(tokens * (action.leave_after_s - first_s) / (whole_s - first_s)) if seen else 0
    return action.leave_after_s, _Ending(presence, True, seen, part or None)

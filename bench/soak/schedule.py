"""The calls of a run, drawn from a seed: the same seed gives the same calls with the same faults."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from bench.soak.apis import CHAT, COMPLETIONS, MESSAGES, OLLAMA
from bench.soak.call import Call, Exit, Manner
from bench.soak.engines import ANY, MODEL
from bench.soak.order import Fault, Framing, Order, Then, Way

_APIS = (CHAT, CHAT, CHAT, MESSAGES, MESSAGES, OLLAMA, COMPLETIONS)
_CLASSES = ("", "ttft", "mixed", "throughput")
_SESSIONS = 400
_SIZES = ((0.70, 300, 2_000), (0.95, 2_000, 16_000), (1.0, 16_000, 300_000))
"""Cumulated shares of bodies between two sizes."""
_FAULTS: tuple[tuple[Fault, int], ...] = (
    (Fault.MID, 30),
    (Fault.UNANSWERED, 12),
    (Fault.AFTER_HEAD, 10),
    (Fault.AFTER_LAST, 8),
    (Fault.HALF_CHUNK, 10),
    (Fault.TOO_LONG, 6),
    (Fault.TOO_SHORT, 6),
    (Fault.SURPLUS, 8),
    (Fault.GARBAGE, 3),
    (Fault.GARBAGE_MID, 3),
    (Fault.ERROR, 6),
    (Fault.BUSY, 4),
    (Fault.LIMIT, 4),
    (Fault.LOADING, 2),
)
_WAYS = (Way.CLOSE, Way.CLOSE, Way.CLOSE, Way.RESET, Way.RESET, Way.RESET, Way.HANG)
_MANNERS: tuple[tuple[Manner, int], ...] = (
    (Manner.LEAVES_MID, 30),
    (Manner.LEAVES_WAITING, 30),
    (Manner.LEAVES_BEFORE_BODY, 12),
    (Manner.SLOW_BODY, 8),
    (Manner.CHUNKED_BODY, 12),
    (Manner.EXPECT, 6),
    (Manner.HTTP_1_0, 8),
    (Manner.SLOW_READER, 4),
)
_THENS = (Then.CLOSE, Then.CLOSE, Then.RESET, Then.DEAF)
_EXITS = (Exit.CLOSE, Exit.RESET, Exit.HALF)
_CHUNKED_ONLY = frozenset({Fault.HALF_CHUNK, Fault.GARBAGE_MID, Fault.AFTER_LAST})
_LENGTH_ONLY = frozenset({Fault.TOO_LONG, Fault.TOO_SHORT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Shares of the calls, from 0 to 1."""

    faults: float = 0.12
    manners: float = 0.12
    """Of clients that do more than send and read."""
    thens: float = 0.06
    """Of kept connections that backends end between calls."""


FAULTY = Rates()
QUIET = Rates(faults=0.0, manners=0.0, thens=0.0)


def calls(seed: int, count: int, rates: Rates) -> Iterator[Call]:
    """Numbered from 1."""
    rng = random.Random(seed)
    for number in range(1, count + 1):
        yield _call(rng, number, rates)


def call_of(seed: int, number: int, rates: Rates) -> Call:
    """One of them again."""
    return next(islice(calls(seed, number, rates), number - 1, None))


def _call(rng: random.Random, number: int, rates: Rates) -> Call:
    order = _order(rng, number)
    if rng.random() < rates.faults:
        order = _faulty(rng, order)
    elif order.framing is not Framing.UNTIL_CLOSE and rng.random() < rates.thens:
        order = replace(order, then=rng.choice(_THENS), then_ms=rng.choice((0, 1, 2, 5, 20, 80, 400)))
    size_bytes = _size(rng)
    call = Call(
        api=rng.choice(_APIS),
        order=order,
        model=ANY if rng.random() < 0.4 else MODEL,
        size_bytes=size_bytes,
        gzip=size_bytes < 40_000 and rng.random() < 0.05,
        call_class=rng.choice(_CLASSES),
        session=f"s{rng.randrange(_SESSIONS)}" if rng.random() < 0.5 else "",
    )
    return _mannered(rng, call) if rng.random() < rates.manners else call


def _size(rng: random.Random) -> int:
    share = rng.random()
    least, most = next((least, most) for until, least, most in _SIZES if share < until)
    return rng.randint(least, most)


def _order(rng: random.Random, number: int) -> Order:
    stream = rng.random() < 0.5
    draw = rng.random()
    if stream:
        framing = Framing.CHUNKED if draw < 0.97 else Framing.UNTIL_CLOSE
    else:
        framing = Framing.LENGTH if draw < 0.8 else Framing.CHUNKED if draw < 0.97 else Framing.UNTIL_CLOSE
    pieces = rng.randint(2, 24)
    return Order(
        n=number,
        stream=stream,
        pieces=pieces,
        size=rng.choice((8, 24, 24, 60, 200)) if rng.random() < 0.98 else 4_000,
        batch=rng.randint(2, 12),
        think_ms=rng.choice((0, 0, 0, 1, 3, 10, 30)),
        gap_ms=rng.choice((0, 0, 1, 2, 5, 15)) if stream else 0,
        framing=framing,
        gzip=rng.random() < 0.03,
    )


def _faulty(rng: random.Random, order: Order) -> Order:
    fault = rng.choices([fault for fault, _ in _FAULTS], [weight for _, weight in _FAULTS])[0]
    framing, way = order.framing, rng.choice(_WAYS)
    if fault in _CHUNKED_ONLY:
        framing = Framing.CHUNKED
    elif fault in _LENGTH_ONLY:
        framing = Framing.LENGTH
    elif framing is Framing.UNTIL_CLOSE:
        if fault is Fault.SURPLUS:
            framing = Framing.CHUNKED
        elif way is Way.CLOSE and not order.stream:
            way = Way.RESET  # the end of the connection would be the end of the answer, and no end mark is missing
    return replace(
        order,
        fault=fault,
        way=way,
        framing=framing,
        stream=order.stream and framing is not Framing.LENGTH,
        after=rng.randint(0, min(3, order.pieces - 1)),
        torn=rng.random() < 0.5,
    )


def _mannered(rng: random.Random, call: Call) -> Call:
    manner = rng.choices([manner for manner, _ in _MANNERS], [weight for _, weight in _MANNERS])[0]
    order = call.order
    match manner:
        case Manner.SLOW_READER:
            order = Order(n=order.n, stream=True, pieces=500, size=rng.choice((1_000, 4_000)), batch=50)
        case Manner.LEAVES_MID:
            order = replace(order, pieces=max(order.pieces, 8))
        case Manner.HTTP_1_0 if order.fault in (Fault.TOO_LONG, Fault.TOO_SHORT):
            manner = Manner.PLAIN
        case _:
            pass
    return replace(
        call,
        order=order,
        manner=manner,
        leave_ms=rng.choice((0, 0, 1, 2, 5, 15, 40, 150)),
        leave_bytes=rng.randint(1, 1_500),
        exit=rng.choice(_EXITS),
    )

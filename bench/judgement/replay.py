"""Labelled calls with arrival context: clients of many kinds in virtual time, through the router's reading and store.

    python -m bench.judgement.replay    how many rows, of what, from which positions

Deterministic by seed. Every labelled call is sent at least once a round by some client that behaves as its class may;
some clients do two things at once, such as a notebook that runs a job while its user chats.
"""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

import orjson

from bench.judgement import behaviour
from bench.judgement.behaviour import Start
from bench.judgement.data import folder, records
from bench.judgement.texts import Record, turns
from bench.judgement.virtual import Replayed, Speed, log_uniform, play

Activity = Callable[[Random], Iterator[Start]]

SEED: Final = 11
_SHARED: Final = 0.35
"""Of the activities, those whose client does something else as well."""
_TYPED: Final = ("fim_", "humaneval_infill")


def replay(where: Path, *, rounds: int = 1, seed: int = SEED) -> Iterator[Replayed]:
    """`where` is the folder `prompts`; sessions are looked for beside it. Rows come client by client."""
    for client, (starts, speed, chance) in enumerate(clients_of(where, rounds=rounds, seed=seed)):
        yield from play(client, starts, speed, chance)


def clients_of(where: Path, *, rounds: int = 1, seed: int = SEED) -> Iterator[tuple[list[Start], Speed, Random]]:
    """What each of them does and when it starts with it, how fast its servers are, and what it draws from."""
    by_source: dict[str, list[Record]] = defaultdict(list)
    for record in records(where):
        by_source[record["source"]].append(record)
    sessions = _sessions(where.parent / "agent_sessions")
    for number in range(rounds):
        chance = Random(f"{seed} {number}")
        activities = list(_activities(by_source, sessions, chance))
        chance.shuffle(activities)
        while activities:
            together = [activities.pop() for _ in range(_company(chance)) if activities]
            yield _interleaved(together, chance), Speed.drawn(chance), chance


def _company(chance: Random) -> int:
    return chance.choice((2, 2, 3)) if chance.random() < _SHARED else 1


def _interleaved(activities: Sequence[Activity], chance: Random) -> list[Start]:
    """All of them in the same stretch of time."""
    starts = [list(activity(chance)) for activity in activities]
    longest_s = max((start_s for each in starts for start_s, _ in each), default=0.0)
    later_s = [0.0 if len(starts) == 1 else chance.uniform(0.0, min(longest_s, 600.0) + 20.0) for _ in starts]
    return [(start_s + late_s, actor) for each, late_s in zip(starts, later_s, strict=True) for start_s, actor in each]


def _sessions(where: Path) -> dict[str, list[Record]]:
    """By source."""
    found: dict[str, list[Record]] = defaultdict(list)
    for path in sorted(where.glob("*.jsonl.gz")):
        with gzip.open(path) as lines:
            for line in lines:
                record = orjson.loads(line)
                found[record["source"]].append(record)
    return found


def _activities(
    by_source: dict[str, list[Record]], sessions: dict[str, list[Record]], chance: Random
) -> Iterator[Activity]:
    for source, rows in by_source.items():
        rows = chance.sample(rows, len(rows))
        workload = rows[0]["workload"]
        if workload == "throughput":
            yield from _jobs(rows, chance)
        elif source.startswith(_TYPED):
            yield from _shared_out(rows, behaviour.typing, (1, 30), chance)
        elif workload == "ttft":
            yield from _people(rows, chance)
        elif source.startswith("docprev"):
            yield from _shared_out(rows, behaviour.previews, (1, 20), chance)
        elif source not in sessions:
            yield from _agents(rows, chance)
    for rows in sessions.values():
        yield from _shared_out(chance.sample(rows, len(rows)), behaviour.recorded, (1, 12), chance)


def _jobs(rows: Sequence[Record], chance: Random) -> Iterator[Activity]:
    """Jobs of 3 to 500 rows, most of them smaller than a third of the source, until each row was in one."""
    left = list(rows)
    while left:
        size = int(log_uniform(chance, 3, 500 if chance.random() < 0.1 else max(4, len(rows) / 3)))
        part, left = left[:size], left[size:]
        if len(part) < size:
            part = [*part, *chance.sample(rows, min(len(rows), size) - len(part))] if len(part) < len(rows) else part
        yield _job(part, size)


def _job(part: Sequence[Record], size: int) -> Activity:
    return lambda chance: behaviour.batch(part, size, chance)


def _people(rows: Sequence[Record], chance: Random) -> Iterator[Activity]:
    third = len(rows) // 3
    yield from _shared_out(rows[:third], behaviour.chats, (1, 12), chance)
    yield from _shared_out(rows[third : 2 * third], behaviour.conversations, (1, 60), chance)
    yield from _shared_out(rows[2 * third :], behaviour.chat_app, (5, 120), chance)


def _agents(rows: Sequence[Record], chance: Random) -> Iterator[Activity]:
    """Calls with a history are the hops of sessions, the others steps of pipelines."""
    with_history = [row for row in rows if len(turns(row, 2)) > 1]
    without = [row for row in rows if len(turns(row, 2)) == 1]
    yield from _shared_out(with_history, behaviour.threads, (1, 12), chance)
    yield from _shared_out(without, behaviour.pipeline, (1, 40), chance)


def _shared_out(
    rows: Sequence[Record],
    activity: Callable[[Sequence[Record], Random], Iterator[Start]],
    sizes: tuple[int, int],
    chance: Random,
) -> Iterator[Activity]:
    """Among clients that each take a number of them, drawn log-uniformly."""
    left = list(rows)
    while left:
        size = int(log_uniform(chance, sizes[0], sizes[1] + 1))
        part, left = left[:size], left[size:]
        yield lambda chance, part=part: activity(part, chance)  # type: ignore[misc]


def main() -> None:
    where = folder()
    if where is None:
        print("TWOLANE_DATA names no data")
        return
    rows = list(replay(where))
    count: Counter[tuple[str, str]] = Counter()
    first: Counter[str] = Counter()
    for each in rows:
        count[each.row.label.value, each.row.source] += 1
        arrival = each.row.features.arrival
        first[each.row.source] += arrival is None or not arrival.calls
    print(f"{len(rows)} calls of {rows[-1].client + 1} clients")
    for (label, source), number in sorted(count.items()):
        print(f"{label:11} {source:22} {number:6} calls, {first[source]:4} the first of a client")


if __name__ == "__main__":
    main()

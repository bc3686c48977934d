"""Hops of agents that send no header: how many are found among the calls of chats and jobs, and which is the last one.

    python -m bench.judgement.sessions    trains and judges with whole sources held out; some minutes

A hop counts from the second call of its session on, when the router has seen the first. Found is a call that is judged
mixed, in a second row one that also was seen to go on from an earlier call. Wrongly found is a call of a chat or a job
of which the same is said; calls of other pipelines are neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from bench.judgement.carrying import carried_over
from bench.judgement.data import folder
from bench.judgement.replay import replay
from bench.judgement.train import ARRIVAL, ROUNDS, VOCABULARY, rows_of
from bench.judgement.virtual import Replayed
from classifiers import training
from classifiers.api import CallClass, Features
from classifiers.builtin import UNLEARNED
from classifiers.measures import likeliest

Judge = Callable[[Sequence[Replayed]], Sequence[CallClass]]

_SHOWN: Final = 6
_READ: Final = frozenset({"final", "user_facing"})


class Figures(NamedTuple):
    """Of one kind of thing that is looked for."""

    found: int
    there: int
    wrong: int

    @property
    def recall(self) -> float:
        return self.found / self.there if self.there else float("nan")

    @property
    def precision(self) -> float:
        return self.found / (self.found + self.wrong) if self.found + self.wrong else float("nan")

    def __str__(self) -> str:
        return f"precision {self.precision:6.1%}  recall {self.recall:6.1%}  of {self.there}"


def is_hop(call: Replayed) -> bool:
    """From the second call of a recorded session on; only these say what each call was for."""
    return call.row.label is CallClass.MIXED and call.in_session and call.position > 0


def hops(calls: Sequence[Replayed], judged: Sequence[CallClass], *, recognised: bool = False) -> Figures:
    """Against all calls of chats and jobs.

    `recognised`: only what goes on from a call that was served is taken for a hop. That is what a pipeline is built on;
    the other calls that are judged mixed get the class and no more.
    """
    pairs = [
        (call, said is CallClass.MIXED and (goes_on(call) or not recognised))
        for call, said in zip(calls, judged, strict=True)
    ]
    return Figures(
        found=sum(is_hop(call) and found for call, found in pairs),
        there=sum(map(is_hop, calls)),
        wrong=sum(call.row.label is not CallClass.MIXED and found for call, found in pairs),
    )


def goes_on(call: Replayed) -> bool:
    arrival = call.row.features.arrival
    return arrival is not None and arrival.continues


def is_read(features: Features) -> bool:
    """Whether a hop looks like one whose answer somebody reads: it streams, and others of its history did not.

    Nothing before the answer tells more. Whether the model will call another tool or speak is not known to the program
    either; some say it by streaming, or by leaving out the tools.
    """
    arrival = features.arrival
    if arrival is None or not arrival.continues:
        return False
    return (features.stream and arrival.streamed_hops < arrival.hops) or arrival.tools_dropped


def last_hops(calls: Iterable[Replayed]) -> Figures:
    """Hops that somebody reads, told from the others by `is_read`."""
    pairs = [(call.row.kind in _READ, is_read(call.row.features)) for call in calls if is_hop(call)]
    return Figures(
        found=sum(read and said for read, said in pairs),
        there=sum(read for read, _ in pairs),
        wrong=sum(said and not read for read, said in pairs),
    )


def report(calls: Sequence[Replayed], judged: Sequence[CallClass]) -> list[str]:
    """Lines to print. `judged` by a model that saw no call of the same source."""
    return [
        f"Hops of agent sessions without headers, from the second call on, among {len(calls)} replayed calls",
        f"  {'judged mixed':20} {hops(calls, judged)}",
        f"  {'... and recognised':20} {hops(calls, judged, recognised=True)}",
        *_by_source(calls, judged),
        f"  wrongly found: {_counted(_wrong(calls, judged))}",
        "Of these hops, those whose answer somebody reads (a stream after calls that were none, tools left out)",
        f"  {'all':20} {last_hops(calls)}",
        f"  {'that stream so':20} {last_hops(_of_programs_that_tell(calls))}",
    ]


def _by_source(calls: Sequence[Replayed], judged: Sequence[CallClass]) -> Iterator[str]:
    found: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for call, said in zip(calls, judged, strict=True):
        if is_hop(call):
            there[call.row.source] += 1
            found[call.row.source] += said is CallClass.MIXED
    for source in sorted(there):
        yield f"  {source:20} {'':16}  recall {found[source] / there[source]:6.1%}  of {there[source]}"


def _wrong(calls: Sequence[Replayed], judged: Sequence[CallClass]) -> Counter[str]:
    pairs = zip(calls, judged, strict=True)
    return Counter(
        call.row.source for call, said in pairs if call.row.label is not CallClass.MIXED and said is CallClass.MIXED
    )


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common(_SHOWN)) or "none"


def _of_programs_that_tell(calls: Sequence[Replayed]) -> Iterator[Replayed]:
    """Hops of sessions in which some calls stream and others do not."""
    streams: dict[tuple[int, str], set[bool]] = {}
    for call in calls:
        if call.in_session:
            streams.setdefault((call.client, call.row.group), set()).add(call.row.features.stream)
    for call in calls:
        if len(streams.get((call.client, call.row.group), ())) == 2:
            yield call


def of_known_clients(calls: Iterable[Replayed]) -> list[Replayed]:
    """Those that the stage for known clients is asked about, as `bench.judgement.train.known` chooses them."""
    return [
        call
        for call in calls
        if call.row.features.surface not in UNLEARNED and call.row.features.arrival and call.row.features.arrival.calls
    ]


def measured(judge: Judge, rounds: int = ROUNDS) -> list[str]:
    """The report for a judge that was trained without the sources it judges; empty lines where there are no data."""
    where = folder()
    if where is None:
        return ["hops of sessions: not measured, TWOLANE_DATA names no data"]
    calls = of_known_clients(replay(where, rounds=rounds))
    return report(calls, judge(calls))


def held_out(calls: Sequence[Replayed]) -> list[CallClass]:
    """Each call judged by the stage for known clients, trained without its source."""
    rows = rows_of([call.row for call in calls])
    scores = training.held_out(rows, ARRIVAL, VOCABULARY)
    temperature = training.temperature_of(scores, rows.labels, rows.weights)
    return [likeliest(row) for row in carried_over(calls, scores, temperature)]


def main() -> None:
    print("\n".join(measured(held_out)))


if __name__ == "__main__":
    main()

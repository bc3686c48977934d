"""Counts what the clients saw, and finds what should not have come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.soak.call import Call, Manner
from bench.soak.client import Seen
from bench.soak.journal import Journal
from bench.soak.judge import WRONG, Kind, Look, as_promised, excused, look, miscounted
from bench.soak.order import Fault, Order

_KINDS = tuple(Kind)
_WITH_WAY = frozenset({Fault.UNANSWERED, Fault.AFTER_HEAD, Fault.MID, Fault.AFTER_LAST, Fault.HALF_CHUNK})


@dataclass(frozen=True, slots=True)
class Violation:
    """One call that did not get what is promised. `n` 0: no single call."""

    n: int
    words: str


def label(order: Order) -> str:
    """Row of the table."""
    if order.fault in _WITH_WAY:
        return f"{order.fault}, {order.way}"
    return str(order.fault)


class Tally:
    """Told of each call when it is over; the verdict needs the journal of the backends."""

    def __init__(self, count: int) -> None:
        self._kinds = bytearray(count + 1)
        self._open_questions: list[tuple[Seen, Look]] = []
        self.by_fault: dict[str, Counter[Kind]] = {}
        self.by_manner: dict[Manner, Counter[Kind]] = {}
        self.codes: Counter[str] = Counter()
        self.answer_bytes = 0

    def take(self, seen: Seen) -> None:
        saw = look(seen)
        call: Call = seen.call
        self._kinds[call.order.n] = _KINDS.index(saw.kind) + 1
        self.answer_bytes += seen.size
        self.by_fault.setdefault(label(call.order), Counter())[saw.kind] += 1
        self.by_manner.setdefault(call.manner, Counter())[saw.kind] += 1
        if saw.kind not in WRONG and saw.words:
            self.codes[f"{saw.kind} {saw.words}"] += 1
        if not as_promised(call.order, saw.kind):
            seen.forget()
            self._open_questions.append((seen, saw))

    @property
    def kinds(self) -> Counter[Kind]:
        return sum(self.by_fault.values(), Counter())

    @property
    def wrong(self) -> int:
        """So far, and by the answers alone."""
        kinds = self.kinds
        return sum(kinds[kind] for kind in WRONG)

    def violations(self, journal: Journal, outage: Callable[[float, float], bool]) -> Iterator[Violation]:
        for seen, saw in self._open_questions:
            n, fate = seen.call.order.n, journal.fate(seen.call.order.n)
            struck = outage(seen.began_s, seen.ended_s)
            if saw.kind in WRONG or not excused(saw.kind, fate, journal.generations(n), outage=struck):
                visits = journal.visits(n)
                words = f"{saw.kind} after {seen.took_s * 1000:.0f} ms: {saw.words}"
                yield Violation(n, f"{words} ({fate!r}, visits {visits})")
        for n, number in enumerate(self._kinds):
            if number and (words := miscounted(_KINDS[number - 1], journal.generations(n))):
                yield Violation(n, words)
        for words in journal.complaints:
            yield Violation(0, f"backends: {words}")

    def unfinished(self) -> int:
        """Calls of which nothing was heard."""
        return self._kinds.count(0, 1)

"""What was served in the last hour, in buckets of ten seconds: what the charts over time are drawn from.

A call is added when it has ended. Nothing runs by itself: a bucket is closed by the first call after its end, or by who
looks at it. Closed buckets go on to the history, if there is one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from router.observe.facts import CallFacts

BUCKET_S: Final = 10
KEPT_S: Final = 3600
_TIMES: Final = 256
"""Times of one cell that are kept for its percentiles; of more calls, those that came first."""


@dataclass(slots=True)
class Cell:
    """Calls of one class on one backend that ended within one bucket."""

    calls: int = 0
    judged: int = 0
    """Of these, something was promised."""
    kept: int = 0
    """Of these, it was kept."""
    failed: int = 0
    """Calls that got no whole answer, though their client stayed and had asked for something that exists."""
    prompt_tokens: int = 0
    output_tokens: int = 0
    kept_tokens: int = 0
    """Output tokens of calls whose promise was kept, or to which none was made."""
    ttft_s: list[float] = field(default_factory=list)

    def add(self, facts: CallFacts, kept: bool | None, failed: bool) -> None:
        tokens = facts.output_tokens or 0
        self.calls += 1
        self.output_tokens += tokens
        self.prompt_tokens += facts.prompt_tokens or 0
        self.failed += failed
        if kept is not None:
            self.judged += 1
            self.kept += kept
        if kept or (kept is None and facts.outcome == "completed"):
            self.kept_tokens += tokens
        if facts.ttft_s is not None and len(self.ttft_s) < _TIMES:
            self.ttft_s.append(facts.ttft_s)

    def count_in(self, other: Cell) -> None:
        """The counts of another one, without its times."""
        self.calls += other.calls
        self.judged += other.judged
        self.kept += other.kept
        self.failed += other.failed
        self.prompt_tokens += other.prompt_tokens
        self.output_tokens += other.output_tokens
        self.kept_tokens += other.kept_tokens


Key = tuple[str, str]
"""Class and backend; an empty backend: it never got one."""


@dataclass(slots=True)
class Bucket:
    """Some seconds of wall-clock time."""

    start_s: int
    """Since 1970."""
    length_s: int = BUCKET_S
    cells: dict[Key, Cell] = field(default_factory=dict)

    def cell(self, key: Key) -> Cell:
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = Cell()
        return cell

    def totals(self) -> Cell:
        """All cells together, without their times."""
        return together(self.cells.values())


def together(cells: Iterable[Cell]) -> Cell:
    """The sums of some cells."""
    total = Cell()
    for cell in cells:
        total.count_in(cell)
    return total


def percentile(times_s: list[float], share: float) -> float | None:
    """The value below which this share of the times lies (nearest rank); None: there are none."""
    if not times_s:
        return None
    ordered = sorted(times_s)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Buckets:
    """The last hour. `wall_s`: seconds since 1970; where that clock is set back, the newest bucket takes it all."""

    def __init__(self, wall_s: Callable[[], float], on_closed: Callable[[Bucket], None] = lambda bucket: None) -> None:
        self._wall_s = wall_s
        self._on_closed = on_closed
        self._closed: deque[Bucket] = deque(maxlen=KEPT_S // BUCKET_S)
        self._open: Bucket | None = None

    def add(self, facts: CallFacts, kept: bool | None, failed: bool, now_s: float) -> None:
        """A call has just ended; `now_s` by the wall clock."""
        bucket = self._open
        if bucket is None or now_s >= bucket.start_s + BUCKET_S:
            self.close()
            bucket = self._open = Bucket(int(now_s) // BUCKET_S * BUCKET_S)
        bucket.cell((facts.call_class, facts.backend)).add(facts, kept, failed)

    def remember(self, buckets: Iterable[Bucket]) -> None:
        """What was before the start, oldest first."""
        self._closed.extendleft(reversed(list(buckets)[-(self._closed.maxlen or 0) :]))

    def close(self) -> None:
        """Close what is open, e.g. at the end."""
        if self._open is not None:
            done, self._open = self._open, None
            self._closed.append(done)
            self._on_closed(done)

    def _turn(self) -> None:
        """Close the open bucket if its time is over."""
        if self._open is not None and self._wall_s() >= self._open.start_s + BUCKET_S:
            self.close()

    def since(self, start_s: float) -> Iterator[Bucket]:
        """Buckets that begin at that time or later, oldest first, the open one included."""
        self._turn()
        for bucket in self._closed:
            if bucket.start_s >= start_s:
                yield bucket
        if self._open is not None and self._open.start_s >= start_s:
            yield self._open

    def window(self, seconds: float) -> list[Bucket]:
        """Those of about the last so many seconds."""
        return list(self.since(self._wall_s() - seconds))

"""What was served in the last hour, in buckets of ten seconds: what the charts over time are drawn from.

A call is added when it has ended. Nothing runs by itself: a bucket is closed by the first call after its end, or by who
looks at it. Closed buckets go on to the history, if there is one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from router.observe.facts import CallFacts
from router.observe.tallies import Spread

BUCKET_S: Final = 10
KEPT_S: Final = 3600


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
    ttft: Spread = field(default_factory=Spread)

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
        if facts.ttft_s is not None:
            self.ttft.add(facts.ttft_s)

    @classmethod
    def sum(cls, several: Sequence[Cell]) -> Cell:
        """All of them as one, which takes less memory than one that is added to; the parts stay as they are."""
        return cls(
            calls=sum(cell.calls for cell in several),
            judged=sum(cell.judged for cell in several),
            kept=sum(cell.kept for cell in several),
            failed=sum(cell.failed for cell in several),
            prompt_tokens=sum(cell.prompt_tokens for cell in several),
            output_tokens=sum(cell.output_tokens for cell in several),
            kept_tokens=sum(cell.kept_tokens for cell in several),
            ttft=Spread.sum([cell.ttft for cell in several]),
        )


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
            done.cells = {key: Cell.sum([cell]) for key, cell in done.cells.items()}
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

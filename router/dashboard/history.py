"""What the charts over time need, kept across restarts in a SQLite file: one row a minute for each class and backend.

A thread of its own does all the writing; whoever has a row puts it into a bounded queue and goes on. Whatever is wrong
with the file - locked, read-only, full, of another program, torn - is told once and shown, its rows are dropped, and it
is tried again with the next ones. Serving never notices.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Final, NamedTuple

import structlog

from router.dashboard.buckets import BUCKET_S, Bucket, Cell
from router.observe.tallies import Spread

log = structlog.get_logger("twolane.history")

MINUTE_S: Final = 60
MOST_ROWS: Final = 20_000
"""Of one answer; more are thinned by adding minutes together."""
_APPLICATION: Final = 0x54574F4C
"""Says in the head of the file whose it is."""
_VERSION: Final = 1
_WAITING: Final = 1000
_LOCKED_S: Final = 2.0
_LONGEST_STOP_S: Final = 5.0
_PRUNED_0_1: Final = 0.1
"""Share of the rows that goes when the file has its size."""
_TABLE: Final = """
create table minutes(
    start_s integer not null, class text not null, backend text not null,
    calls integer not null, judged integer not null, kept integer not null, failed integer not null,
    prompt_tokens integer not null, output_tokens integer not null, kept_tokens integer not null,
    ttft_p50_s real, ttft_p95_s real,
    primary key (start_s, class, backend)
) without rowid
"""
_PUT: Final = """
insert into minutes values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict do update set
    calls = calls + excluded.calls, judged = judged + excluded.judged, kept = kept + excluded.kept,
    failed = failed + excluded.failed, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    output_tokens = output_tokens + excluded.output_tokens, kept_tokens = kept_tokens + excluded.kept_tokens
"""


class Row(NamedTuple):
    """A minute of one class on one backend, as in the file."""

    start_s: int
    call_class: str
    backend: str
    calls: int
    judged: int
    kept: int
    failed: int
    prompt_tokens: int
    output_tokens: int
    kept_tokens: int
    ttft_p50_s: float | None
    ttft_p95_s: float | None


class NotOurs(sqlite3.DatabaseError):
    """The file holds something else."""


class History:
    """Minutes in `path`, of at most `max_bytes`, the oldest going first. `put` and `take` are for one thread."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path = path
        self.dropped = 0
        """Rows that could not be written."""
        self.problem = ""
        """What is wrong with the file; empty: nothing that is known."""
        self.max_bytes = max_bytes
        self._minute: Bucket | None = None
        self._queue: Queue[list[Row] | None] = Queue(_WAITING)
        self._thread = threading.Thread(target=self._run, name="twolane-history", daemon=True)
        self._thread.start()

    def take(self, bucket: Bucket) -> None:
        """A closed bucket of the last hour; goes to the file when its minute is over."""
        start_s = bucket.start_s // MINUTE_S * MINUTE_S
        if self._minute is not None and self._minute.start_s != start_s:
            self._flush()
        if self._minute is None:
            self._minute = Bucket(start_s, MINUTE_S)
        for key, cell in bucket.cells.items():
            self._minute.cells[key] = Cell.sum([self._minute.cell(key), cell])

    def _flush(self) -> None:
        done, self._minute = self._minute, None
        if done is None:
            return
        rows = [_row(done.start_s, key, cell) for key, cell in done.cells.items()]
        try:
            self._queue.put_nowait(rows)
        except Full:
            self.dropped += len(rows)

    def read(self, since_s: float, until_s: float) -> list[Row]:
        """Rows of that time, oldest first, read through a connection of its own: call it in a thread.

        Raises `sqlite3.Error` or `OSError`. Minutes are added together where there would be too many rows.
        """
        step_s = MINUTE_S * max(1, round((until_s - since_s) / MINUTE_S * 6 / MOST_ROWS + 0.5))
        if not self.path.exists():
            return []
        address = f"{self.path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=_LOCKED_S)) as connection:
            if not _is_ours(connection):
                return []
            rows = connection.execute(
                "select start_s / :step * :step as t, class, backend, sum(calls), sum(judged), sum(kept), sum(failed),"
                " sum(prompt_tokens), sum(output_tokens), sum(kept_tokens), avg(ttft_p50_s), max(ttft_p95_s)"
                " from minutes where start_s >= :since and start_s < :until"
                " group by t, class, backend order by t limit :most",
                {"step": step_s, "since": since_s, "until": until_s, "most": MOST_ROWS},
            ).fetchall()
        return [Row._make(row) for row in rows]

    def unreadable(self, error: Exception) -> None:
        """Say what is wrong with it."""
        self._tell(str(error) or type(error).__name__)

    def close(self) -> None:
        """Write what waits. Blocks until that is done, for a few seconds at most."""
        self._flush()
        try:
            self._queue.put(None, timeout=_LONGEST_STOP_S)
        except Full:
            return
        self._thread.join(_LONGEST_STOP_S)

    # --- in the thread

    def _run(self) -> None:
        while (batch := self._queue.get()) is not None:
            self._write([*batch, *self._more()])

    def _more(self) -> Iterator[Row]:
        """What else waits already."""
        try:
            while (batch := self._queue.get_nowait()) is not None:
                yield from batch
            self._queue.put_nowait(None)
        except (Empty, Full):
            pass

    def _write(self, rows: list[Row]) -> None:
        try:
            _own_file(self.path)
            with closing(sqlite3.connect(self.path, timeout=_LOCKED_S)) as connection:
                _prepare(connection)
                with connection:
                    connection.executemany(_PUT, rows)
                self._prune(connection)
            self._tell("")
        except (sqlite3.Error, OSError) as error:
            self.dropped += len(rows)
            self._tell(str(error) or type(error).__name__)

    def _prune(self, connection: sqlite3.Connection) -> None:
        """Pages of rows that went are used again, so the file stops growing."""
        (size,) = connection.execute(
            "select (page_count - freelist_count) * page_size from pragma_page_count, pragma_freelist_count,"
            " pragma_page_size"
        ).fetchone()
        if size > self.max_bytes:
            with connection:
                connection.execute(
                    "delete from minutes where start_s <= (select start_s from minutes order by start_s limit 1"
                    " offset (select cast(count(*) * ? as integer) from minutes))",
                    (_PRUNED_0_1,),
                )

    def _tell(self, problem: str) -> None:
        if problem == self.problem:
            return
        self.problem = problem
        if problem:
            log.error("history_not_written", file=str(self.path), why=problem)
        else:
            log.info("history_written_again", file=str(self.path))


def _own_file(path: Path) -> None:
    """Made for its owner alone."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _is_ours(connection: sqlite3.Connection) -> bool:
    """False: it is empty. Raises `NotOurs`."""
    application, version, tables = connection.execute(
        "select application_id, user_version, (select count(*) from sqlite_master) from pragma_application_id,"
        " pragma_user_version"
    ).fetchone()
    if application == 0 and not tables:
        return False
    if application != _APPLICATION:
        raise NotOurs("the file belongs to another program; name another one (dashboard.history)")
    if version != _VERSION:
        raise NotOurs("the file was written by another version; name another one (dashboard.history)")
    return True


def _prepare(connection: sqlite3.Connection) -> None:
    if _is_ours(connection):
        return
    with connection:
        connection.execute(f"pragma application_id = {_APPLICATION}")
        connection.execute(f"pragma user_version = {_VERSION}")
        connection.execute(_TABLE)


def _row(start_s: int, key: tuple[str, str], cell: Cell) -> Row:
    return Row(
        start_s,
        *key,
        cell.calls,
        cell.judged,
        cell.kept,
        cell.failed,
        cell.prompt_tokens,
        cell.output_tokens,
        cell.kept_tokens,
        *cell.ttft.quantiles((0.5, 0.95)),
    )


def as_buckets(rows: Iterable[Row]) -> list[Bucket]:
    """Minutes as they stood in the file, spread over the buckets of the last hour would be made up: one per minute."""
    found: dict[int, Bucket] = {}
    for row in rows:
        bucket = found.get(row.start_s)
        if bucket is None:
            bucket = found[row.start_s] = Bucket(row.start_s, max(MINUTE_S, BUCKET_S))
        bucket.cells[row.call_class, row.backend] = Cell(*row[3:10], ttft=_spread(row))
    return list(found.values())


def _spread(row: Row) -> Spread:
    """Of values that have the percentiles of the row."""
    if row.ttft_p50_s is None or row.ttft_p95_s is None:
        return Spread()
    return Spread([row.ttft_p50_s] * 18 + [row.ttft_p95_s] * 2)

"""The history: kept across restarts, bounded, and harmless whatever is wrong with its file."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from router.dashboard.buckets import Bucket, Cell
from router.dashboard.history import History, as_buckets
from router.observe.tallies import Spread

BIG = 2**30


def bucket(start_s: int, *backends: str, calls: int = 1) -> Bucket:
    cells = {
        ("ttft", name): Cell(calls, calls, calls, 0, 10, 40, 40, Spread([0.1, 0.2])) for name in backends or ("desk",)
    }
    return Bucket(start_s, 10, cells)


@contextmanager
def history(path: Path, max_bytes: int = BIG) -> Iterator[History]:
    made = History(path, max_bytes)
    try:
        yield made
    finally:
        made.close()


def test_buckets_become_minutes_that_a_restart_finds_again(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    with history(path) as first:
        for start_s in range(600, 780, 10):
            first.take(bucket(start_s, "desk", "rack"))
    assert (first.problem, first.dropped) == ("", 0)
    with history(path) as again:
        rows = again.read(0, 10_000)
        again.take(bucket(770))
    assert [(row.start_s, row.backend, row.calls) for row in rows] == [
        (start_s, name, 6) for start_s in (600, 660, 720) for name in ("desk", "rack")
    ]
    assert (rows[0].ttft_p50_s, rows[0].ttft_p95_s) == pytest.approx((0.15, 0.2), abs=0.01)
    [minute, *_] = as_buckets(rows)
    desk, rack = minute.cells["ttft", "desk"], minute.cells["ttft", "rack"]
    assert (minute.length_s, desk.output_tokens + rack.output_tokens) == (60, 480)
    assert desk.ttft.quantiles((0.5, 0.95)) == [rows[0].ttft_p50_s, rows[0].ttft_p95_s], "as before the restart"
    with history(path) as third:
        assert third.read(720, 780)[0].calls == 7, "the minute of a restart is one row"


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    with history(tmp_path / "h") as made:
        made.take(bucket(0))
    assert stat.S_IMODE((tmp_path / "h").stat().st_mode) == 0o600


def test_a_long_time_is_read_in_fewer_rows_without_losing_a_call(tmp_path: Path) -> None:
    with history(tmp_path / "h") as made:
        for minute in range(200):
            made.take(bucket(60 * minute))
    with history(tmp_path / "h") as made:
        rows = made.read(0, 31 * 24 * 3600)
    assert len(rows) < 200
    assert sum(row.calls for row in rows) == 200


def test_it_does_not_outgrow_its_size_and_the_newest_stay(tmp_path: Path) -> None:
    path = tmp_path / "h"
    for part in range(6):
        with history(path, max_bytes=100_000) as made:
            for minute in range(part * 400, part * 400 + 400):
                made.take(bucket(60 * minute, "desk", "rack"))
        assert made.problem == ""
    assert path.stat().st_size < 250_000
    with history(path) as made:
        assert made.read(60 * 2399, 60 * 2400)
        assert not made.read(0, 60)


def others_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table theirs(a)")


def torn(path: Path) -> None:
    with history(path) as made:
        for minute in range(300):
            made.take(bucket(60 * minute, "desk", "rack"))
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x17" * (len(content) - 4096)
    path.write_bytes(content)


def no_database(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + b"nonsense" * 1000)


@pytest.mark.parametrize("spoil", [others_database, torn, no_database])
def test_a_file_that_cannot_be_used_is_left_alone_and_told(tmp_path: Path, spoil: object) -> None:
    path = tmp_path / "h"
    assert callable(spoil)
    spoil(path)
    before = path.read_bytes()
    with history(path) as made:
        made.take(bucket(60))
        with pytest.raises(sqlite3.Error):
            made.read(0, 1000)
    assert made.problem
    assert made.dropped == 1
    assert path.read_bytes() == before


def test_a_locked_file_costs_its_rows_and_is_written_again_when_it_is_free(tmp_path: Path) -> None:
    path = tmp_path / "h"
    with history(path) as made:
        made.take(bucket(0))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin exclusive")
        with history(path) as made:
            made.take(bucket(60))
        assert "locked" in made.problem
        assert made.dropped == 1
        other.execute("rollback")
    with history(path) as made:
        made.take(bucket(120))
    assert made.problem == ""
    with history(path) as made:
        assert [row.start_s for row in made.read(0, 1000)] == [0, 120]


def test_a_folder_that_is_gone_is_told_and_nothing_is_raised(tmp_path: Path) -> None:
    with history(tmp_path / "gone" / "h") as made:
        made.take(bucket(0))
        assert made.read(0, 100) == []
    assert "No such file" in made.problem


def test_rows_that_wait_for_a_slow_disk_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "h"
    with history(path) as made:
        made.take(bucket(0))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin exclusive")
        made = History(path, BIG)
        for minute in range(1, 4000):
            made.take(bucket(60 * minute))
        other.execute("rollback")
    made.close()
    assert made.dropped > 1000  # of the others a thousand wait, and as many may be in the hands of the one who writes

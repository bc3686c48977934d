"""Lines that are written beside the calls: all of them, in order, in files of bounded size, and no wait for a disk."""

from __future__ import annotations

import gzip
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from router.observe.lines import LineFile, numbered
from router.observe.logfiles import raw_lines, with_those_set_aside


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "log.jsonl"
    assert not [thread for thread in threading.enumerate() if thread.name == "twolane-lines"], "one was not closed"


def written(path: Path, texts: list[bytes], *, max_bytes: int = 10**6, keep: int = 3, packs: bool = False) -> LineFile:
    file = LineFile(path, max_bytes=max_bytes, keep=keep, packs=packs, gather_s=0.001)
    for text in texts:
        assert file.put(text)
    file.close()
    return file


def test_what_was_put_is_in_the_file_after_close(path: Path) -> None:
    texts = [b"line %d" % number for number in range(1000)]
    assert written(path, texts).dropped == 0
    assert path.read_bytes().splitlines() == texts


def test_a_second_start_goes_on_behind_the_first(path: Path) -> None:
    written(path, [b"one"])
    written(path, [b"two"])
    assert path.read_bytes() == b"one\ntwo\n"


def test_a_line_that_a_crash_cut_off_does_not_spoil_the_next(path: Path) -> None:
    path.write_bytes(b"one\nhal")
    written(path, [b"two"])
    assert path.read_bytes() == b"one\nhal\ntwo\n"


def test_only_the_owner_may_read_it_and_what_was_rotated(path: Path) -> None:
    before = os.umask(0)
    try:
        written(path, [b"x" * 60] * 4, max_bytes=100)
    finally:
        os.umask(before)
    for file in (path, numbered(path, 1)):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_that_everybody_could_read_is_for_its_owner_from_the_next_line_on(path: Path) -> None:
    path.write_bytes(b"one\n")
    path.chmod(0o644)
    written(path, [b"two"])
    assert path.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_files_stay_below_their_size_and_no_more_are_kept_than_asked(path: Path) -> None:
    texts = [b"%04d" % number + b"." * 26 for number in range(100)]  # 31 bytes each with the line break
    written(path, texts, max_bytes=100, keep=2)
    files = sorted(path.parent.iterdir())
    assert files == [path, numbered(path, 1), numbered(path, 2)]
    assert all(file.stat().st_size <= 100 for file in files)
    kept = b"".join(file.read_bytes() for file in (numbered(path, 2), numbered(path, 1), path)).splitlines()
    assert kept == texts[-len(kept) :]
    assert len(kept) >= 7


def test_a_line_longer_than_a_file_may_be_is_still_written_whole(path: Path) -> None:
    written(path, [b"short", b"x" * 500, b"last"], max_bytes=100)
    assert numbered(path, 1).read_bytes() == b"x" * 500 + b"\n"
    assert path.read_bytes() == b"last\n"


def test_with_none_to_keep_the_file_begins_anew(path: Path) -> None:
    written(path, [b"a" * 60, b"b" * 60], max_bytes=100, keep=0)
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == b"b" * 60 + b"\n"


def wait_for(file: Path, content: bytes) -> None:
    for _ in range(2000):
        if file.exists() and file.read_bytes() == content:
            return
        threading.Event().wait(0.005)
    raise AssertionError(file.read_bytes() if file.exists() else "no file")


def test_a_file_that_logrotate_moved_away_is_left_and_a_new_one_begun(path: Path) -> None:
    file = LineFile(path, max_bytes=10**6, keep=3, gather_s=0.001)
    file.put(b"one")
    wait_for(path, b"one\n")
    path.rename(path.with_name("moved"))
    file.put(b"two")
    wait_for(path, b"two\n")
    file.close()
    assert path.with_name("moved").read_bytes() == b"one\n"


def test_a_disk_that_takes_nothing_is_told_once_and_counted(path: Path) -> None:
    with structlog.testing.capture_logs() as told:
        file = LineFile(path.parent / "missing" / "log", max_bytes=100, keep=1, gather_s=0.001)
        for _ in range(20):
            file.put(b"x" * 90)
            threading.Event().wait(0.002)
        file.close()
    assert file.dropped == 20
    assert [entry["event"] for entry in told] == ["lines_not_written"]
    assert "No such file" in told[0]["why"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_costs_lines_and_nothing_else(path: Path) -> None:
    with structlog.testing.capture_logs() as told:
        file = LineFile(Path("/dev/full"), max_bytes=10**9, keep=1, gather_s=0.001)
        assert all(file.put(b"line") for _ in range(50))
        file.close()
    assert file.dropped == 50
    assert [entry["why"] for entry in told] == ["No space left on device"]


def test_where_lines_come_faster_than_the_disk_takes_them_the_newest_are_dropped(path: Path) -> None:
    os.mkfifo(path)  # takes 64 KiB, then nothing until somebody reads
    file = LineFile(path, max_bytes=10**9, keep=1, gather_s=0.001, most_waiting_bytes=50_000)
    taken = 0
    for _ in range(4000):
        taken += file.put(b"x" * 99)
        if taken % 100 == 0:
            threading.Event().wait(0.005)
    assert 50_000 // 100 <= taken <= (65_536 + 2 * 50_000) // 99 + 2
    with path.open("rb") as reader:
        closing = threading.Thread(target=file.close)
        closing.start()
        read = 0
        while read < taken * 100:
            read += len(reader.read1())
        closing.join()
    assert (read, file.dropped) == (taken * 100, 4000 - taken)


# --- age, and packing


class Wall:
    """Nanoseconds since 1970, as a test says."""

    def __init__(self, s: float) -> None:
        self.s = s

    def __call__(self) -> int:
        return int(self.s * 1e9)


def some(path: Path, wall: Wall, text: bytes, **more: Any) -> None:
    file = LineFile(path, max_bytes=10**6, keep=3, max_age_s=60.0, wall_ns=wall, gather_s=0.001, **more)
    assert file.put(text)
    file.close()


def test_a_file_whose_first_line_is_too_old_is_set_aside_before_the_next_one(path: Path) -> None:
    wall = Wall(time.time_ns() / 1e9)
    some(path, wall, b"one")
    wall.s += 59
    some(path, wall, b"two")
    assert path.read_bytes() == b"one\ntwo\n"
    wall.s += 120
    some(path, wall, b"three")
    assert numbered(path, 1).read_bytes() == b"one\ntwo\n"
    assert path.read_bytes() == b"three\n"


def test_a_file_that_gets_no_more_lines_is_set_aside_all_the_same(path: Path) -> None:
    wall = Wall(time.time_ns() / 1e9)
    file = LineFile(path, max_bytes=10**6, keep=3, max_age_s=60.0, wall_ns=wall, gather_s=0.001)
    assert file.put(b"one")
    while not path.exists() or not path.stat().st_size:
        time.sleep(0.001)
    wall.s += 61
    while path.exists():
        time.sleep(0.001)
    file.close()
    assert numbered(path, 1).read_bytes() == b"one\n"


def test_after_a_restart_a_file_is_as_old_as_the_end_of_the_one_before(path: Path) -> None:
    wall = Wall(time.time_ns() / 1e9)
    path.write_bytes(b"two\n")
    numbered(path, 1).write_bytes(b"one\n")
    old_s = wall.s - 61
    os.utime(numbered(path, 1), (old_s, old_s))
    some(path, wall, b"three")
    assert numbered(path, 2).read_bytes() == b"one\n"
    assert numbered(path, 1).read_bytes() == b"two\n"


def test_what_is_set_aside_is_packed_for_its_owner_only_and_moved_on_packed(path: Path) -> None:
    before = os.umask(0)
    try:
        texts = [b"%d" % number * 60 for number in range(4)]
        written(path, texts, max_bytes=100, packs=True)
    finally:
        os.umask(before)
    names = sorted(each.name for each in path.parent.iterdir())
    assert names == ["log.jsonl", "log.jsonl.1.zst", "log.jsonl.2.zst", "log.jsonl.3.zst"]
    files = with_those_set_aside([path])
    assert [line for file in files for line in raw_lines(file)] == [text + b"\n" for text in texts]
    assert {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()} == {0o600}


def test_files_of_before_and_of_logrotate_are_moved_on_as_they_are(path: Path) -> None:
    numbered(path, 1).write_bytes(b"plain\n")
    path.with_name("log.jsonl.2.gz").write_bytes(gzip.compress(b"packed\n"))
    written(path, [b"a" * 60, b"b" * 60], max_bytes=100, packs=True, keep=3)
    assert numbered(path, 2).read_bytes() == b"plain\n"
    assert gzip.decompress(path.with_name("log.jsonl.3.gz").read_bytes()) == b"packed\n"


def test_what_cannot_be_packed_stays_as_it_is_and_is_told(path: Path) -> None:
    path.with_name(".log.jsonl.1.zst.draft").mkdir()
    with structlog.testing.capture_logs() as told:
        file = written(path, [b"a" * 60, b"b" * 60], max_bytes=100, packs=True)
    assert (numbered(path, 1).read_bytes(), path.read_bytes()) == (b"a" * 60 + b"\n", b"b" * 60 + b"\n")
    assert file.dropped == 0
    assert [each["event"] for each in told] == ["lines_not_written"]

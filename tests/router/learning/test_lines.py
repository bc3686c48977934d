"""Reading decision logs: all parts, whatever was done to them, and what cannot be used is counted."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson
import pytest

from classifiers.api import CallClass, Source
from router import models
from router.learning.examples import examples_of
from router.learning.lines import read
from router.observe.logfiles import with_those_set_aside
from tests.router.learning.makers import BEGIN_S, line, tagged, write


def test_a_line_is_read_as_it_was_written(tmp_path: Path) -> None:
    shadow = {"class": "mixed", "confidence": 0.5}
    arrival = {"calls": 3, "continues": 1, "since_continued_s": 0.25}
    path = write(
        tmp_path / "d", [tagged("ttft", 5.0, stream=True, left="during_answer", arrival=arrival, shadow=shadow)]
    )
    (found,) = read([path], models.VECTOR).lines
    assert found.time_s == BEGIN_S + 5
    assert (found.call_class, found.source, found.confidence) == (CallClass.TTFT, Source.HEADER, 1.0)
    assert (found.stream, found.left, found.turned) == (True, "during_answer", False)
    assert found.features == {"last_chars": 100.0, "answered": 1.0}
    assert found.arrival == arrival
    assert found.shadow is CallClass.MIXED


def test_parts_that_were_set_aside_come_first_each_once_and_others_not(tmp_path: Path) -> None:
    for name in ("d.jsonl", "d.jsonl.1", "d.jsonl.2.gz", "d.jsonl.10", "d.jsonl.salt", "d.jsonl.1.bak", "e.jsonl.1"):
        (tmp_path / name).touch()
    found = with_those_set_aside([tmp_path / "d.jsonl.1", tmp_path / "d.jsonl", tmp_path / "e.jsonl"])
    assert [path.name for path in found] == [
        "d.jsonl.1", "d.jsonl.10", "d.jsonl.2.gz", "d.jsonl", "e.jsonl.1",
    ]  # fmt: skip
    assert [path.name for path in with_those_set_aside([tmp_path / "d.jsonl"])][:2] == ["d.jsonl.10", "d.jsonl.2.gz"]


def test_a_file_that_is_not_there_is_only_named_where_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl.1").touch()
    found = with_those_set_aside([tmp_path / "d.jsonl", tmp_path / "gone.jsonl"])
    assert [path.name for path in found] == ["d.jsonl.1", "gone.jsonl"]


def test_compressed_parts_are_read_and_all_lines_are_in_the_order_of_arrival(tmp_path: Path) -> None:
    (tmp_path / "d.1.gz").write_bytes(gzip.compress(orjson.dumps(line(1.0)) + b"\n" + orjson.dumps(line(3.0))))
    write(tmp_path / "d", [line(2.0), line(4.0)])
    log = read(with_those_set_aside([tmp_path / "d"]), models.VECTOR)
    assert [each.time_s - BEGIN_S for each in log.lines] == [1.0, 2.0, 3.0, 4.0]


def test_how_much_was_read_is_told_and_adds_up_to_the_files(tmp_path: Path) -> None:
    write(tmp_path / "d", [line(float(number)) for number in range(50)])
    packed = tmp_path / "d.1.gz"
    packed.write_bytes(gzip.compress((tmp_path / "d").read_bytes()))
    told: list[int] = []
    paths = [tmp_path / "d", packed]
    read(paths, models.VECTOR, told.append)
    assert sum(told) == sum(path.stat().st_size for path in paths)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"format": 1, "ti', "not a whole line of JSON"),
        (b"[]", "not of this format"),
        (orjson.dumps(line(format=3)), "not of this format"),
        (orjson.dumps(line(vector="other")), "features of another version of the router"),
        (orjson.dumps(line(features={"answered": "many"})), "fields missing or of another kind"),
        (orjson.dumps(line(features=None)), "fields missing or of another kind"),
        (orjson.dumps(line(time="yesterday")), "fields missing or of another kind"),
        (orjson.dumps({**line(), "class": "fast"}), "fields missing or of another kind"),
        (orjson.dumps(line()).replace(b'"left"', b'"right"'), "fields missing or of another kind"),
        (orjson.dumps(line(confidence=-1.0)), "fields missing or of another kind"),
        (orjson.dumps(line(complete_s=None)), "fields missing or of another kind"),
        (b"\xff\xfe", "not a whole line of JSON"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_passed_over_and_counted(tmp_path: Path, raw: bytes, reason: str) -> None:
    path = tmp_path / "d"
    path.write_bytes(raw + b"\n" + orjson.dumps(line()) + b"\n")
    log = read([path], models.VECTOR)
    assert len(log.lines) == 1
    assert log.passed_over == {reason: 1}


def test_lines_of_both_formats_are_read_and_a_recalled_verdict_has_no_features(tmp_path: Path) -> None:
    recalled = line(2.0, format=2, recalled=True, features=None, arrival={"calls": 9, "since_program_answer_s": 0.1})
    path = write(tmp_path / "d", [line(0.0), line(1.0, format=2, recalled=False), recalled])
    log = read([path], models.VECTOR)
    assert not log.passed_over
    assert [each.features is None for each in log.lines] == [False, False, True]


def test_nothing_is_learned_from_a_recalled_verdict_but_what_came_before_it(tmp_path: Path) -> None:
    """A row, judged; and 0.2 s after its answer the next one, whose verdict was recalled."""
    after = {"calls": 9, "since_program_answer_s": 0.2, "start_share": 1.0}
    path = write(
        tmp_path / "d", [line(0.0, complete_s=1.0), line(1.2, format=2, recalled=True, features=None, arrival=after)]
    )
    (example,) = examples_of(read([path], models.VECTOR))
    assert example.label is not None
    assert (example.label.call_class, example.label.sign) == (CallClass.THROUGHPUT, "next_row_at_once")


def test_a_damaged_archive_gives_what_can_still_be_read(tmp_path: Path) -> None:
    whole = gzip.compress(
        b"".join(orjson.dumps(line(float(number), id=f"{number:09}")) + b"\n" for number in range(2000))
    )
    (tmp_path / "d.gz").write_bytes(whole[: len(whole) // 2])
    log = read([tmp_path / "d.gz"], models.VECTOR)
    assert 100 < len(log.lines) < 2000
    assert log.passed_over["not a whole line of JSON"] >= 1


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read([tmp_path / "d"], models.VECTOR)

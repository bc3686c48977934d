"""What is recognised in a file, and what is said of one that is not."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard

from classifiers.api import CallClass
from router.observe.logfiles import raw_lines
from router.replay import recognise
from router.replay.recognise import load, merged
from router.replay.recorded import NotReplayable
from tests.router.replay.logs import line, write

OWN = "t_s,input_tokens,output_tokens,source,client,session,turn,prefix_tokens,hash_ids\n"


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_a_log_is_read_with_all_parts_that_were_set_aside(tmp_path: Path) -> None:
    log = write(tmp_path / "d.jsonl", [line(3.0)])
    write(tmp_path / "d.jsonl.1", [line(2.0)])
    (tmp_path / "d.jsonl.2.gz").write_bytes(gzip.compress(orjson.dumps(line(1.0))))
    (tmp_path / "d.jsonl.3.zst").write_bytes(zstandard.compress(orjson.dumps(line(0.0))))
    write(tmp_path / "d.jsonl.salt", [b"00\n"])
    source = load(log)
    assert source.kind.startswith("decision log")
    assert [call.at_s - source.calls[0].at_s for call in source.calls] == [0.0, 1.0, 2.0, 3.0]
    assert not source.passed_over


def test_a_log_of_which_only_old_parts_are_left_is_read_too(tmp_path: Path) -> None:
    write(tmp_path / "d.jsonl.1", [line()])
    assert len(load(tmp_path / "d.jsonl").calls) == 1


def test_no_more_of_a_log_is_looked_at_than_it_takes_to_recognise_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0

    def counted(path: Path) -> Iterator[bytes]:
        nonlocal looked_at
        for raw in raw_lines(path):
            looked_at += 1
            yield raw

    monkeypatch.setattr(recognise, "raw_lines", counted)
    for name in ("d.jsonl.2", "d.jsonl.1", "d.jsonl"):
        write(tmp_path / name, [line()] * 200)
    assert len(load(tmp_path / "d.jsonl").calls) == 600
    assert looked_at == 50


def test_lines_that_cannot_be_read_are_counted_and_cost_nothing_else(tmp_path: Path) -> None:
    lines: list[dict[str, Any] | bytes] = [
        b'0, "class": "ttft"}\n',
        line(),
        line(format=3),
        b"[]\n",
        line(outcome="refused", status=400),
        line(complete_s=None),
        line() | {"class": "chat"},
        line(server={"engine": "vllm"}),
        line(stream=False),
        b'{"format": 1, "cla',
    ]
    source = load(write(tmp_path / "d.jsonl", lines))
    assert len(source.calls) == 2
    assert source.passed_over == {
        "not a whole line of JSON": 2,
        "not of format 1 or 2": 2,
        "the call was wrong": 1,
        "fields missing or of another kind": 3,
    }


def test_what_was_never_finished_is_as_long_as_was_expected(tmp_path: Path) -> None:
    gone = line(outcome="client_gone", status=499, left="during_answer", output_tokens=7, complete_s=0.4)
    turned_away = line(
        outcome="rejected", status=503, backend="", server=None, prompt_tokens=None, output_tokens=None, ttft_s=None
    )
    unknown = line(expected=None, output_tokens=None, prompt_tokens=None, asked={})
    source = load(write(tmp_path / "d.jsonl", [gone, turned_away, unknown]))
    left, rejected, odd = source.calls
    assert (left.output_tokens, left.leaves_after_s) == (40, 0.4)
    assert (rejected.output_tokens, rejected.prompt_tokens, rejected.leaves_after_s) == (40, 110, None)
    assert (odd.output_tokens, odd.prompt_tokens) == (40, 1)
    assert any("2 answers were not finished" in note for note in source.notes)


def test_lines_of_an_older_router_are_replayed_with_what_they_have(tmp_path: Path) -> None:
    old = {name: value for name, value in line().items() if name not in ("asked", "session", "server", "model")}
    (call,) = load(write(tmp_path / "d.jsonl", [old])).calls
    assert (call.session, call.asked, call.prompt_tokens) == ("", {}, 100)
    assert call.logged is not None
    assert call.logged.server is None


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (OWN + "0.5,10,20,azure2023_conv,,,,,\n2.5,11,21,azure2023_conv,,,,,\n", "trace"),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n"
            "2023-11-16 18:15:46.6805900,10,20\n2023-11-16 18:15:48.6805900,11,21\n",
            "Azure",
        ),
        (
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
            "5,ChatGPT,10,20,30,x\n7,GPT-4,11,21,32,x\n",
            "Burst",
        ),
        (
            '{"timestamp": 0, "input_length": 10, "output_length": 20, "hash_ids": [0]}\n'
            '{"timestamp": 2000, "input_length": 11, "output_length": 21, "hash_ids": [0]}\n',
            "Mooncake",
        ),
    ],
)
def test_public_traces_are_known_by_their_columns(tmp_path: Path, content: str, kind: str) -> None:
    source = load(text(tmp_path / "t", content))
    assert source.kind.startswith(kind)
    assert [(call.prompt_tokens, call.output_tokens) for call in source.calls] == [(10, 20), (11, 21)]
    assert source.calls[1].at_s - source.calls[0].at_s == pytest.approx(2.0)
    assert not source.passed_over


def test_rows_that_are_broken_are_counted(tmp_path: Path) -> None:
    rows = "x,10,20,a,,,,,\n1,10\n2,-5,20,a,,,,,\n3,10,20,a,,,,,\n4,10,99999999999,a,,,,,\n"
    source = load(text(tmp_path / "t.csv", OWN + rows))
    assert [call.at_s for call in source.calls] == [3.0]
    assert sum(source.passed_over.values()) == 4


@pytest.mark.parametrize("time", ["nan", "inf", "-inf"])
def test_a_row_that_would_never_come_is_counted_as_broken(tmp_path: Path, time: str) -> None:
    source = load(text(tmp_path / "t.csv", OWN + f"{time},10,20,a,,,,,\n3,10,20,a,,,,,\n"))
    assert [call.at_s for call in source.calls] == [3.0]
    assert source.passed_over == {"numbers missing or of another kind": 1}


@pytest.mark.parametrize("counts", [{"prompt_tokens": -5}, {"output_tokens": -5}, {"prompt_tokens": 10**12}])
def test_a_line_whose_counts_cannot_be_is_passed_over(tmp_path: Path, counts: dict[str, int]) -> None:
    source = load(write(tmp_path / "d.jsonl", [line(), line(1.0, **counts)]))
    assert len(source.calls) == 1
    assert source.passed_over == {"fields missing or of another kind": 1}


def test_calls_that_lie_years_apart_are_refused_and_not_waited_for(tmp_path: Path) -> None:
    source = load(text(tmp_path / "t.csv", OWN + "0,10,20,a,,,,,\n1e300,10,20,a,,,,,\n"))
    with pytest.raises(NotReplayable, match="days after the first"):
        merged([source])
    assert len(merged([source], limit=1)) == 1


def test_classes_of_a_trace_come_from_its_name_or_from_who_replays_it(tmp_path: Path) -> None:
    rows = "0,10,20,azure2023_conv,,,,,\n1,10,20,agent_calls,,,,,\n2,10,20,arxiv_summarization,,,,,\n"
    path = text(tmp_path / "t.csv", OWN + rows)
    assert [call.verdict.call_class for call in load(path).calls] == [
        CallClass.TTFT,
        CallClass.MIXED,
        CallClass.THROUGHPUT,
    ]
    told = load(path, as_class=CallClass.MIXED)
    assert {call.verdict.call_class for call in told.calls} == {CallClass.MIXED}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("hello\nworld\n", "not recognised"),
        ('{"a": 1}\n', "not recognised"),
        (OWN, "without a call"),
        (OWN + "x,y,z,,,,,,\n", "1 lines"),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_the_reason(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(NotReplayable, match=says):
        load(text(tmp_path / "t", content))


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotReplayable, match="no such file"):
        load(tmp_path / "none")
    with pytest.raises(NotReplayable, match="is a folder"):
        load(tmp_path)


def test_bytes_that_are_no_text_are_not_recognised(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(bytes(range(256)) * 50)
    with pytest.raises(NotReplayable, match="not recognised"):
        load(path)


def test_inputs_begin_together_and_a_speed_up_presses_times(tmp_path: Path) -> None:
    chat = load(text(tmp_path / "a.csv", OWN + "100,10,20,chat,,,,,\n104,10,20,chat,,,,,\n"))
    batch = load(text(tmp_path / "b.csv", OWN + "7,10,20,batch,,,,,\n9,10,20,batch,,,,,\n"))
    calls = merged([chat, batch], speed_up=2.0)
    assert [(call.at_s, call.verdict.call_class.value) for call in calls] == [
        (0.0, "ttft"),
        (0.0, "throughput"),
        (1.0, "throughput"),
        (2.0, "ttft"),
    ]
    assert len(merged([chat, batch], limit=3)) == 3


def test_prompts_of_two_traces_have_nothing_in_common_though_both_count_from_0(tmp_path: Path) -> None:
    row = '{"timestamp": 0, "input_length": 2048, "output_length": 5, "hash_ids": [0, 1, 2, 3]}\n'
    sources = [load(text(tmp_path / name, row * 2)) for name in ("a.jsonl", "b.jsonl")]
    first, again, *others = merged(sources)
    assert first.blocks == again.blocks
    assert all(set(first.blocks).isdisjoint(other.blocks) for other in others)
    assert merged(sources[:1])[0].blocks == (0, 1, 2, 3)


def test_a_trace_without_times_arrives_at_the_rate_that_was_asked_for(tmp_path: Path) -> None:
    source = load(text(tmp_path / "a.csv", OWN + ",10,20,chat,,,,,\n" * 400))
    calls = merged([source], rate=5.0, seed=3)
    assert calls == merged([source], rate=5.0, seed=3)
    assert 400 / calls[-1].at_s == pytest.approx(5.0, rel=0.2)

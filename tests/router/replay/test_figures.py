"""Figures of calls that ended: of the log and of a replay by the same measure."""

from __future__ import annotations

from pathlib import Path

import pytest

from classifiers.api import CallClass
from policies.api import Lane
from router.replay.figures import Judge, as_logged, as_simulated, column
from router.replay.recognise import load, merged
from router.replay.recorded import Recorded
from router.replay.run import Candidate
from router.replay.sending import Sharing, arriving
from router.settings.load import parse
from router.simulate.calls import Became
from router.simulate.driver import Simulation
from router.simulate.pace import DESK
from tests.router.replay.logs import SETTINGS, line, write


def judge() -> Judge:
    return Judge(Candidate(name="x", file=Path("x"), settings=parse(SETTINGS, "x.yaml", {})).promises())


def calls(tmp_path: Path, *lines: dict[str, object]) -> list[Recorded]:
    return merged([load(write(tmp_path / "d.jsonl", lines))])


def became(call: Recorded, **more: object) -> Became:
    (sent,) = arriving([call], Sharing())
    found = Became(sent)
    for name, value in more.items():
        setattr(found, name, value)
    return found


def test_the_log_itself_is_judged_as_the_router_did(tmp_path: Path) -> None:
    logged = calls(
        tmp_path,
        line(0.0),
        line(1.0, ttft_s=3.0, complete_s=4.0),
        line(2.0, outcome="rejected", status=503, backend="", server=None, ttft_s=None, tpot_s=None, complete_s=60.0),
        line(3.0, outcome="client_gone", status=499, left="before_first_token", ttft_s=None, complete_s=0.5),
        line(4.0, outcome="backend_error", status=502, ttft_s=None),
    )
    total = column(as_logged(logged, judge(), {"desk": Lane.LATENCY})).total
    assert (total.calls, total.judged, total.kept) == (5, 4, 1)
    assert (total.completed, total.shed, total.left, total.failed, total.spilled) == (2, 1, 1, 1, 0)
    assert total.output_tokens == 62
    assert total.longest_wait_s == 60.0
    assert total.seconds == pytest.approx(62.0)
    assert total.share == 0.25


def test_tokens_are_counted_of_whole_answers_alone_in_the_log_and_in_a_replay(tmp_path: Path) -> None:
    gone = line(outcome="client_gone", status=499, left="during_answer", output_tokens=7, complete_s=0.4)
    (call,) = logged = calls(tmp_path, gone)
    end = became(call, status=499, backend="desk", placed_s=0.0, first_s=0.1, ended_s=0.4)
    for ended in (as_logged(logged, judge(), {}), as_simulated(logged, [end], judge(), {})):
        assert (ended[0].outcome, ended[0].output_tokens) == ("client_gone", 0)


def test_a_replayed_call_is_timed_from_its_arrival(tmp_path: Path) -> None:
    (call,) = calls(tmp_path, line())
    end = became(call, status=200, backend="desk", placed_s=0.5, first_s=1.0, end_s=4.0, ended_s=4.0)
    (ended,) = as_simulated([call], [end], judge(), {"desk": Lane.THROUGHPUT})
    assert (ended.waited_s, ended.ttft_s, ended.complete_s, ended.kept) == (0.5, 1.0, 4.0, True)
    assert ended.tpot_s == pytest.approx(0.1)
    assert ended.spilled


def test_who_got_no_place_waited_until_told_so(tmp_path: Path) -> None:
    (call,) = calls(tmp_path, line())
    (ended,) = as_simulated([call], [became(call, status=503, ended_s=60.0)], judge(), {})
    assert (ended.outcome, ended.waited_s, ended.kept, ended.output_tokens) == ("rejected", 60.0, False, 0)


def test_classes_count_alike_in_the_mean(tmp_path: Path) -> None:
    logged = calls(
        tmp_path,
        *(line(number) for number in range(3)),
        line(4.0, ttft_s=5.0),
        line(5.0, complete_s=100.0, stream=False) | {"class": "mixed"},
    )
    made = column(as_logged(logged, judge(), {}))
    assert made.mean_share == pytest.approx((0.75 + 0.0) / 2)
    assert made.classes[CallClass.MIXED].ttft_s["p50"] is None
    assert made.backends.keys() == {"desk"}


def test_no_calls_have_no_figures() -> None:
    made = column([])
    assert (made.mean_share, made.total.share, made.total.goodput_per_s) == (None, None, 0.0)


def test_the_simulation_fills_what_figures_need(tmp_path: Path) -> None:
    (call,) = calls(tmp_path, line())
    (end,) = Simulation(parse(SETTINGS, "x.yaml", {}), {"desk": DESK}).run(arriving([call], Sharing()))
    assert end.ended_s == end.end_s
    assert end.verdict is call.verdict

"""The pace of a backend is found again in its log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from router.replay.fit import FEWEST, fitted, trials
from router.replay.recognise import load, merged
from router.simulate.pace import DESK
from tests.router.replay.logs import SLOW, line, served_by, write


def test_a_pace_that_is_unlike_the_usual_one_is_found(tmp_path: Path) -> None:
    source = load(write(tmp_path / "d.jsonl", served_by(SLOW, 150, per_s=0.4)))
    tried: list[int] = []
    found = fitted(merged([source]), "desk", replace(DESK, sequences=3), lambda: tried.append(1))
    assert found is not None
    assert found.calls == 150
    assert found.whole_error < 0.05
    assert found.first_error is not None
    assert found.first_error < 0.1
    pace = found.spec.pace
    assert pace.step_s + 2 * pace.sequence_s == pytest.approx(0.038, rel=0.1)
    assert pace.prefill_tokens_per_s == pytest.approx(2_000, rel=0.2)
    assert len(tried) <= 1.1 * trials()


def test_from_a_few_calls_nothing_is_concluded(tmp_path: Path) -> None:
    source = load(write(tmp_path / "d.jsonl", served_by(SLOW, FEWEST - 1)))
    assert fitted(merged([source]), "desk", DESK) is None
    assert fitted(merged([source]), "other", DESK) is None


def test_answers_that_were_not_streamed_are_enough(tmp_path: Path) -> None:
    lines = [{**each, "stream": False, "ttft_s": None, "tpot_s": None} for each in served_by(SLOW, 80)]
    found = fitted(merged([load(write(tmp_path / "d.jsonl", lines))]), "desk", replace(DESK, sequences=3))
    assert found is not None
    assert found.first_error is None
    assert found.whole_error < 0.1


def test_times_that_cannot_be_are_survived(tmp_path: Path) -> None:
    odd = [line(number, ttft_s=0.0, complete_s=0.0, output_tokens=1) for number in range(30)]
    assert fitted(merged([load(write(tmp_path / "d.jsonl", odd))]), "desk", DESK) is not None


def test_waiting_inside_an_engine_that_has_too_much_to_do_is_no_slowness(tmp_path: Path) -> None:
    source = load(write(tmp_path / "d.jsonl", served_by(SLOW, 150, per_s=2.0)))
    found = fitted(merged([source]), "desk", replace(DESK, sequences=3))
    assert found is not None
    assert found.whole_error < 0.1
    assert found.spec.pace.step_s + 3 * found.spec.pace.sequence_s == pytest.approx(0.042, rel=0.4)

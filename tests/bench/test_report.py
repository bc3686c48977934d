"""A run as a table and as JSON."""

import io
import json
from datetime import UTC, datetime

from rich.console import Console

from bench import report
from bench.peers import SGLANG_ROUTER, TWOLANE
from bench.results import CALL_CPU, DIRECT, Failure, Run


def a_run() -> Run:
    run = Run(
        launched={TWOLANE: {"command": ["twolane"], "settings": {}}, SGLANG_ROUTER: {"command": [], "settings": {}}},
        missing={"nginx": "no nginx on the PATH"},
        failures=[Failure(peer="smg", measurement="idle", reason="3 of 9 [streams] did not begin")],
        notes=["a note"],
        sklearn_imported=False,
    )
    for mine, theirs in ((30.0, 20.0), (33.0, 22.0), (90.0, 40.0)):
        run.rounds.add(CALL_CPU, TWOLANE, mine)
        run.rounds.add(CALL_CPU, SGLANG_ROUTER, theirs)
    return run


def shown(run: Run) -> str:
    out = io.StringIO()
    report.show(run, Console(file=out, width=120))
    return out.getvalue()


def test_the_table_has_medians_ratios_and_extremes() -> None:
    text = shown(a_run())
    assert "33.0 (1.50x)" in text
    assert "30.0 .. 90.0" in text
    assert DIRECT in text


def test_each_target_is_judged_and_the_unmeasured_is_called_so() -> None:
    text = shown(a_run())
    assert "holds CPU per call <= 2x sglang-router's, judged by the learned model too (measured: 1.5)" in text
    assert "not measured CPU per paced token" in text
    assert "holds serving does not import scikit-learn" in text


def test_the_missing_and_the_failed_are_named_with_their_reasons() -> None:
    text = shown(a_run())
    assert "missing nginx: no nginx on the PATH" in text
    assert "failed smg, idle: 3 of 9 [streams] did not begin" in text
    assert "note a note" in text


def test_the_json_has_all_rounds_and_where_they_come_from() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    told = report.as_json(a_run(), at=at, command="python -m bench", facts=report.machine(), plan={"rounds": 3})
    data = json.loads(told)
    assert data["date"] == "2026-01-02T03:04:05+00:00"
    assert data["machine"]["cores"] >= 1
    assert data["rounds"][CALL_CPU.key][TWOLANE] == [30.0, 33.0, 90.0]
    assert data["summary"][CALL_CPU.key][TWOLANE] == {
        "least": 30.0,
        "median": 33.0,
        "most": 90.0,
        "ratio_to_sglang_router": 1.5,
    }
    assert data["missing"] == {"nginx": "no nginx on the PATH"}
    assert data["targets"][1]["holds"] is True


def test_only_a_missed_target_fails_the_check() -> None:
    run = a_run()
    assert not report.failed(run.findings())
    run.sklearn_imported = True
    assert report.failed(run.findings())

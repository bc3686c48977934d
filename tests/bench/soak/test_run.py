"""A short soak of the real router, and the report of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from rich.console import Console

from bench.soak import report
from bench.soak.judge import Kind
from bench.soak.run import Plan, soak


async def test_five_thousand_calls_under_faults_get_what_is_promised() -> None:
    plan = Plan(calls=5000, seed=20)
    found = await soak(plan, print)
    assert [f"{violation.n}: {violation.words}" for violation in found.violations] == []
    assert found.calls == plan.calls
    assert found.tally.kinds[Kind.COMPLETE] > plan.calls / 2
    assert found.weather.keys() & {"backend restarts", "ports closed for new connections"}
    assert found.weather.keys() & {"new settings", "wrong settings", "storms of SIGHUP"}

    console = Console(record=True, width=report.NARROWEST)
    report.show(found, console)
    text = console.export_text()
    assert "Nothing wrong." in text
    assert "5,000 calls" in text
    document = json.loads(report.as_json(found, at=datetime.now(UTC), command="soak"))
    assert document["calls"] == plan.calls
    assert document["violations"] == []

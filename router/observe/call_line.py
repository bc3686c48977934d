"""The line in the log that a call leaves behind: flat, numbers and fixed words, never text."""

from __future__ import annotations

from typing import Any

from router.observe.facts import CallFacts, JudgedCall


def call_line(facts: CallFacts, judged: JudgedCall | None) -> dict[str, Any]:
    """What was measured of it, and of its promises those that it `missed` (null: nothing that could be told)."""
    line = facts._asdict()
    line.pop("considered", None)  # one for each backend: too much for a line
    trace, flow, predicted = line.pop("trace"), line.pop("flow"), line.pop("predicted")
    if flow is not None:
        line |= {f"gap_{name}": value for name, value in flow._asdict().items()}
    if predicted is not None:
        line |= {f"predicted_{name}": value for name, value in predicted._asdict().items()}
    if trace is not None:
        line["trace_id"] = trace.trace_id
    missed = judged.missed(facts) if judged is not None else None
    line["missed"] = None if missed is None else list(missed)
    return line

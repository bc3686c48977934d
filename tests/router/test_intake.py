"""What is decided of a call before a place is looked for: whose word a verdict is."""

from __future__ import annotations

from pathlib import Path

from classifiers.api import CallClass, Source, Verdict
from router.arrivals import Arrivals
from router.fleet.fleet import Fleet
from router.intake import Intake
from router.plan import Plan
from router.settings.load import parse
from tests.router.pipelines.calls import features_of, user

SETTINGS = """
backends:
  - {name: desk, url: "http://127.0.0.1:1"}
"""


def verdicts(headers: dict[str, str]) -> list[Verdict]:
    """Of a task with two steps, the second of which is streamed."""
    settings = parse(SETTINGS, "x.yaml", {})
    plan, intake = Plan.of(settings), Intake(Fleet(settings), Arrivals())
    found = []
    for number, stream in enumerate((False, True)):
        features = features_of([user(f"step {number}")], headers, stream=stream)
        judged = intake.judge(plan, "10.0.0.1 program", features, float(number))
        assert judged.hop is not None
        intake.pipelines.ended(
            judged.hop,
            number + 0.5,
            complete=True,
            first_s=None,
            prompt_tokens=1,
            cached_tokens=0,
            output_tokens=1,
        )
        found.append(judged.verdict)
    return found


def test_a_hop_that_is_taken_for_the_last_one_is_no_word_of_its_caller() -> None:
    first, last = verdicts({"x-twolane-pipeline": "p"})
    assert (first.call_class, first.source) == (CallClass.MIXED, Source.HEADER)
    assert (last.call_class, last.source) == (CallClass.TTFT, Source.BUILTIN)
    assert last.reasons == ("pipeline_header", "streamed_at_last")


def test_what_a_caller_said_of_a_hop_stays_its_word() -> None:
    _, last = verdicts({"x-twolane-pipeline": "p", "x-twolane-hop": "internal"})
    assert (last.call_class, last.source, last.reasons) == (CallClass.MIXED, Source.HEADER, ("hop_header",))


def test_what_is_decided_of_a_call_is_the_same_whether_decisions_are_logged_or_not(tmp_path: Path) -> None:
    told = []
    for more in ("", f"decisions: {{file: {tmp_path / 'd.jsonl'}}}"):
        settings = parse(SETTINGS + more, "x.yaml", {})
        plan, intake = Plan.of(settings), Intake(Fleet(settings), Arrivals())
        features = features_of([user("Write a poem about the sea.")], {})
        judged = intake.judge(plan, "10.0.0.1 program", features, 0.0)
        rules = plan.rules[judged.verdict.call_class]
        ask = intake.ask(plan, "10.0.0.1 program", features, judged, rules, 0.0)
        told.append((ask.verdict, ask.rules, ask.lengths, ask.due_s, ask.hoped_s, judged.lengths is not None))

    assert [row[:-1] for row in told] == [told[0][:-1]] * 2
    assert [row[-1] for row in told] == [False, True], "it is foretold for the log"

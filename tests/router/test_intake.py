"""What is decided of a call before a place is looked for: whose word a verdict is."""

from __future__ import annotations

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

"""What a model said of earlier calls counts in training as it does in the router."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from classifiers.api import CallClass
from classifiers.learned import Probabilities
from router import models
from router.arrivals import Arrivals
from router.fleet.fleet import Fleet
from router.intake import Intake
from router.learning.carrying import carried_over, judged
from router.learning.examples import Example, examples_of
from router.learning.labels import Label
from router.learning.lines import read
from router.plan import Plan
from router.settings.load import parse
from tests.router.learning.makers import line, tagged, write
from tests.router.pipelines.calls import features_of, said, user

SETTINGS = """
backends:
  - {name: desk, url: "http://127.0.0.1:1"}
decisions: {file: decisions.jsonl}
"""
TAG = Label(CallClass.TTFT, 1.0, "header", strong=True)


def example(client: str = "c", **given: Any) -> Example:
    usual = Example(vector=(), client=client, history=True, stream=False, program="", life=0, label=TAG)
    return replace(usual, **given)


def served() -> tuple[list[Example], list[Probabilities]]:
    """Calls of two programs of one client as the router judged them, some streamed, far enough apart that none is
    recalled; and how sure it was of them."""
    settings = parse(SETTINGS, "x.yaml", {})
    plan, intake = Plan.of(settings), Intake(Fleet(settings), Arrivals())
    examples, live = [], []
    for number in range(24):
        program = ("You are a planner.", "You translate rows.")[number % 2]
        messages = [{"role": "system", "content": program}, user(f"{'word ' * (number * 7)} and {number}?")]
        if number % 3 == 0:
            messages += [said("Yes."), user("Why?")]
        features = features_of(messages, stream=number % 5 == 0)
        call = intake.judge(plan, "10.0.0.1 program", features, 60.0 * number)
        assert call.seen is not None
        assert call.seen.judgement is not None
        assert call.hop is not None
        assert features.arrival is not None
        examples.append(
            example(
                vector=call.seen.numbers,
                history=features.arrival.calls > 0,
                stream=features.stream,
                program=program,
            )
        )
        live.append(call.seen.judgement.probabilities)
    return examples, live


def test_a_log_is_judged_as_the_router_judged_its_calls() -> None:
    examples, live = served()
    assert judged(_builtin(), examples).probabilities == live
    alone = [_builtin().judge(each.vector, each.history) for each in examples]
    assert alone != live, "something was carried over"


def _builtin() -> Any:
    found = models.builtin()
    assert found is not None
    return found


def test_what_came_before_the_calls_that_are_measured_counts() -> None:
    examples, live = served()
    assert judged(_builtin(), examples, 20).probabilities == live[20:]


def test_nothing_is_carried_from_client_to_client_nor_over_a_restart_nor_to_calls_that_stream() -> None:
    sure = (3.0, 0.0, -3.0)
    torn = (0.0, 0.0, 0.0)
    others = [example("d"), example(life=1), example(stream=True)]
    first, *found, same = carried_over([example(), *others, example()], [sure, *[torn] * 4], 1.0, 0.5)
    assert first == sure
    assert found == [torn] * 3
    assert same == (1.5, 0.0, -1.5)


def test_a_program_goes_by_what_was_said_of_it_and_a_new_one_by_what_its_client_did() -> None:
    known, new, torn = (3.0, 0.0, -3.0), (-3.0, 0.0, 3.0), (0.0, 0.0, 0.0)
    calls = [example(program=name) for name in ("a", "b", "a", "c")]
    _, second, third, _ = carried_over(calls, [known, new, torn, torn], 1.0, 0.5)
    assert second == (0.0, 0.0, 0.0), "half of it is what was said of the other program"
    assert third == (1.5, 0.0, -1.5)


def test_the_log_tells_of_programs_and_of_clients_that_were_forgotten(tmp_path: Path) -> None:
    text = {"system": "aa", "tools": None, "template": "bb"}
    path = write(
        tmp_path / "d",
        [
            tagged("ttft", 0.0, arrival={}),
            tagged("ttft", 1.0, arrival={"calls": 1}, text=text),
            tagged("ttft", 2.0, arrival={"calls": 1}, client="c2"),
            line(3.0, arrival={}),
            tagged("ttft", 4.0, arrival={"calls": 1}, text={**text, "template": "cc"}),
        ],
    )
    found = examples_of(read([path], models.VECTOR))
    assert [each.life for each in found] == [1, 1, 0, 2, 2]
    assert [bool(each.program) for each in found] == [False, True, False, False, True]
    assert found[1].program == found[4].program


def test_a_model_that_was_moved_is_measured_as_it_will_serve(tmp_path: Path) -> None:
    """A penalty so large that nothing moves: then calls held out are judged as by the model that is written."""
    pytest.importorskip("sklearn", reason="training needs scikit-learn")
    from router.learning import adapt
    from router.learning.making import Data, Prior
    from router.learning.train import learned_of
    from tests.router.learning.makers import traffic
    from tests.router.learning.test_train import knowing

    plain = knowing("stream", "tools").document
    document = {**plain, "arrival": {**plain["request"], "carry": 0.5}}
    examples = examples_of(read([write(tmp_path / "d", traffic(400))], models.VECTOR))
    known = [each for each in examples if each.history]
    data = Data(examples=examples, known=known, clients=9, folds=3)
    made = adapt.moved(data, Prior(model=learned_of(document), document=document), 1e12)
    served = judged(learned_of(made.document), examples).probabilities
    for ours, theirs in zip(made.measured.probabilities, served, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)

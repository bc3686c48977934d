"""The bench of a decision: its bodies are what they say, and its goals are judged by the dearest call."""

from __future__ import annotations

import json

import orjson
import pytest

from bench.deciding import KINDS, SIZES, STEPS, Case, Goal, as_json, findings, measure
from classifiers.learned import Learned
from router import models
from tests.classifiers.models import document, each


def small_model() -> Learned:
    name = models.NAMES[0]
    feature = {"name": name, "words": name, "kind": "amount", "usual": 0.0}
    weights = {"transform": "none", "mean": 0.0, "scale": 1.0, "weights": each(1.0, 0.0, 0.0)}
    stage = {
        "kind": "linear",
        "clip": 3.0,
        "features": [feature | weights],
        "intercept": each(0.0, 0.0, 0.0),
        "calibration": {"temperature": 1.0},
    }
    return Learned.parse(document(stage), models.NAMES)


def case_of(size: str, **us: float) -> Case:
    return Case(kind="chat", size=size, body_bytes=1, us={step: [value, value, value] for step, value in us.items()})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_bodies_have_about_the_size_that_is_asked_for(kind: str, size: str) -> None:
    body = KINDS[kind](SIZES[size])

    assert 0.9 * SIZES[size] <= len(body) <= SIZES[size]
    assert isinstance(orjson.loads(body)["messages"], list)


def test_every_step_is_measured_in_every_round() -> None:
    cases = measure(small_model(), ["1 KB"], rounds=2)

    assert [case.kind for case in cases] == list(KINDS)
    for case in cases:
        assert set(case.us) == set(STEPS)
        assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in case.us.values())
        assert case.summary("decide").median > case.summary("parse").median


def test_a_goal_is_judged_by_the_dearest_kind_of_call() -> None:
    goals = (Goal(step="decide", size="8 KB", limit_us=150.0), Goal(step="decide", size="1 MB", limit_us=1.0))
    cheap, dear, missing = case_of("8 KB", decide=100.0), case_of("8 KB", decide=151.0), case_of("1 KB", decide=1.0)

    assert [finding.holds for finding in findings([cheap, missing], goals)] == [True, None]
    assert [finding.holds for finding in findings([cheap, dear], goals)] == [False, None]
    assert findings([cheap, dear], goals)[0].measured == 151.0


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    case = Case(kind="chat", size="1 KB", body_bytes=1, us={"parse": [1.0, 2.0, 4.0], "read": [3.0, 6.0, 40.0]})

    assert case.ratio("read") == 3.0


def test_the_file_holds_every_step_and_goal() -> None:
    case = case_of("8 KB", **dict.fromkeys(STEPS, 20.0))
    written = json.loads(as_json([case], findings([case]), {"model": "m"}))

    assert written["cases"][0]["steps"]["learned"] == {
        "least": 20.0,
        "median": 20.0,
        "most": 20.0,
        "ratio_to_orjson_loads": 1.0,
    }
    assert {goal["holds"] for goal in written["goals"]} == {True, None}

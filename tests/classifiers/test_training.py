"""What is exported judges as scikit-learn does, and the same rows give the same bytes."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from classifiers.learned import Learned
from classifiers.measures import confusion, likeliest, macro_accuracy
from classifiers.modelfile import CLASSES, softmax, written
from classifiers.training import (
    Recipe,
    Rows,
    TrainingError,
    balanced,
    fit,
    fit_stage,
    held_out,
    temperature_of,
)
from tests.classifiers.models import NAMES, VOCABULARY, drawn_rows

ROWS = drawn_rows()
LINEAR = Recipe(kind="linear")
TREES = Recipe(trees=12, least_rows=10)


def fitted(rows: Rows, recipe: Recipe) -> Any:
    return fit(rows, None, recipe, VOCABULARY, version="test")


def model_of(rows: Rows, recipe: Recipe, temperature: float = 1.0) -> Learned:
    document = json.loads(written(fitted(rows, recipe)))
    document["request"]["calibration"]["temperature"] = temperature
    return Learned.parse(document, NAMES)


def ordered(model: Any, vectors: Any) -> Any:
    """Probabilities of scikit-learn, in our order."""
    return model.predict_proba(vectors)[:, [list(model.classes_).index(name) for name in CLASSES]]


def test_exported_trees_judge_as_scikit_learn_does() -> None:
    # Every value is one of few, so that scikit-learn's own bins are those that the training makes.
    vectors = [[stream, tools, float(min(50, tokens // 40)), turns] for stream, tools, tokens, turns in ROWS.vectors]
    weights = np.asarray(ROWS.weights) / np.mean(ROWS.weights)
    theirs = HistGradientBoostingClassifier(
        max_iter=12, max_leaf_nodes=8, min_samples_leaf=10, l2_regularization=1.0, early_stopping=False, random_state=0
    ).fit(np.asarray(vectors), ROWS.labels, sample_weight=weights)
    ours = model_of(replace(ROWS, vectors=vectors), TREES)

    expected = ordered(theirs, np.asarray(vectors))

    assert [ours.judge(vector) for vector in vectors] == pytest.approx(expected, abs=1e-6)
    assert expected.max() > 0.8


def test_exported_weights_judge_as_scikit_learn_does() -> None:
    values = np.asarray(ROWS.vectors)
    values[:, 2] = np.log1p(values[:, 2])
    weights = np.asarray(ROWS.weights) / np.mean(ROWS.weights)
    mean = np.average(values, axis=0, weights=weights)
    scale = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights))
    scaled = np.clip((values - mean) / scale, -4, 4)
    theirs = LogisticRegression(max_iter=2000, tol=1e-8).fit(scaled, ROWS.labels, sample_weight=weights)
    ours = model_of(ROWS, LINEAR)

    expected = ordered(theirs, scaled)

    assert [ours.judge(vector) for vector in ROWS.vectors] == pytest.approx(expected, abs=1e-6)
    assert expected.max() > 0.8


@pytest.mark.parametrize("recipe", [LINEAR, TREES], ids=["linear", "trees"])
def test_the_same_rows_give_the_same_bytes(recipe: Recipe) -> None:
    assert written(fitted(ROWS, recipe)) == written(fitted(drawn_rows(), recipe))


@pytest.mark.parametrize("recipe", [LINEAR, TREES], ids=["linear", "trees"])
def test_what_was_learned_holds_for_groups_that_were_not_seen(recipe: Recipe) -> None:
    figures = fitted(ROWS, recipe)["request"]["figures"]

    assert figures["macro_accuracy"] > 0.65
    assert figures["expected_calibration_error"] < 0.08
    assert (figures["rows"], figures["groups"]) == (900, 6)


def test_values_that_are_many_are_cut_at_few_places() -> None:
    chance = random.Random(3)
    vectors = [[*vector[:3], chance.random()] for vector in ROWS.vectors]
    document = fitted(replace(ROWS, vectors=vectors), replace(TREES, bins=8))
    features = [entry["name"] for entry in document["request"]["features"]]
    cuts = {
        (features[place], threshold)
        for trees in document["request"]["trees"].values()
        for tree in trees
        for place, threshold in zip(tree["feature"], tree["threshold"], strict=True)
        if place >= 0
    }

    assert 0 < sum(name == "turns" for name, _ in cuts) <= 7
    assert 0 < sum(name == "prompt_tokens" for name, _ in cuts) <= 7


@pytest.mark.parametrize("recipe", [LINEAR, TREES], ids=["linear", "trees"])
def test_a_class_that_never_occurred_is_never_judged(recipe: Recipe) -> None:
    rows = drawn_rows(600, ("ttft", "throughput"))
    model = model_of(rows, recipe)
    judged = [model.judge(vector) for vector in rows.vectors]
    table = confusion(rows.labels, [likeliest(row) for row in judged])

    assert macro_accuracy(table) > 0.8
    assert max(row[1] for row in judged) < 0.02


def test_the_stage_for_single_calls_is_blind_to_what_only_the_second_may_see() -> None:
    document = fit(ROWS, ROWS, TREES, VOCABULARY, version="two", only_with_arrival=frozenset({"turns", "tools"}))

    names = [{entry["name"] for entry in document[stage]["features"]} for stage in ("request", "arrival")]
    assert names[0] == {"stream", "prompt_tokens"}
    assert {"tools", "stream"} <= names[1]


def test_features_are_told_as_they_are() -> None:
    by_name = {entry["name"]: entry for entry in fitted(ROWS, LINEAR)["request"]["features"]}

    assert (by_name["stream"]["kind"], by_name["prompt_tokens"]["kind"]) == ("flag", "amount")
    assert by_name["prompt_tokens"]["words"] == "tokens of the prompt"
    assert (by_name["prompt_tokens"]["transform"], by_name["turns"]["transform"]) == ("log1p", "none")


def test_a_feature_that_never_changes_is_left_out() -> None:
    rows = replace(ROWS, vectors=[[*vector[:3], 1.0] for vector in ROWS.vectors])

    for recipe in (LINEAR, TREES):
        assert "turns" not in {entry["name"] for entry in fitted(rows, recipe)["request"]["features"]}


def test_scores_that_are_too_sure_get_a_temperature_above_one() -> None:
    scores = held_out(ROWS, LINEAR, VOCABULARY)
    fair = temperature_of(scores, ROWS.labels, ROWS.weights)
    sure = [(3 * one, 3 * two, 3 * three) for one, two, three in scores]

    assert temperature_of(sure, ROWS.labels, ROWS.weights) == pytest.approx(3 * fair, rel=0.01)
    assert softmax(sure[0], 3 * fair) == pytest.approx(softmax(scores[0], fair))


def test_rows_of_one_group_get_no_temperature_and_no_figures() -> None:
    stage = fit_stage(replace(ROWS, groups=["g"] * 900), LINEAR, VOCABULARY)

    assert stage["calibration"] == {"temperature": 1.0}
    assert stage["figures"] == {"groups": 1, "rows": 900}


def test_balanced_weights_count_classes_alike_and_groups_by_the_root_of_their_size() -> None:
    labels, groups = ["ttft"] * 100 + ["mixed"] * 8, ["big"] * 81 + ["small"] * 19 + ["only"] * 8
    weights = balanced(labels, groups)

    assert sum(weights) == pytest.approx(108)
    assert sum(weights[:100]) == pytest.approx(sum(weights[100:]))
    assert sum(weights[:81]) / sum(weights[81:100]) == pytest.approx(9 / 19**0.5)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (replace(ROWS, labels=ROWS.labels[:-1]), "a label, a weight and a group"),
        (replace(ROWS, vectors=[[1.0]] * 900), "vectors of 4 numbers"),
        (replace(ROWS, labels=["fast"] * 900), "'fast' is no class"),
        (replace(ROWS, labels=["mixed"] * 900), "all rows are mixed"),
        (replace(ROWS, weights=[float("nan")] * 900), "not finite"),
        (replace(ROWS, vectors=[[1.0] * 4] * 900), "nothing to tell them apart"),
        (Rows(vectors=[], labels=[], weights=[], groups=[]), "at least one row"),
        (replace(ROWS, groups=ROWS.labels), "without one of the groups"),
    ],
)
def test_rows_that_cannot_be_learned_from_are_refused(rows: Rows, says: str) -> None:
    if says.startswith("without"):  # two classes, each in a group of its own
        rows = replace(rows, labels=[label.replace("mixed", "ttft") for label in rows.labels], groups=rows.labels)
        rows = replace(rows, groups=[label.replace("mixed", "ttft") for label in rows.groups])
    with pytest.raises(TrainingError, match=says):
        fitted(rows, LINEAR)


def test_trees_of_more_leaves_than_can_be_judged_are_refused() -> None:
    with pytest.raises(TrainingError, match="at most 8 leaves"):
        fitted(ROWS, replace(TREES, leaves=9))


def test_trees_that_find_nothing_say_so() -> None:
    with pytest.raises(TrainingError, match="no feature tells"):
        fitted(ROWS, replace(TREES, least_rows=500))

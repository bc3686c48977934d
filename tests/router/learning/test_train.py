"""A model from a decision log: refused where there is too little, measured on clients that it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

pytest.importorskip("sklearn", reason="training needs scikit-learn")

from classifiers.learned import Learned
from classifiers.measures import accuracy, confusion, expected_calibration_error, likeliest
from classifiers.training import TrainingError
from router import models
from router.learning.lines import Log, read
from router.learning.rows import LEAST_TAGS
from router.learning.train import Trained, learned_of, train
from tests.router.learning.makers import line, tagged, traffic, write


def log_of(folder: Path, lines: list[dict[str, Any]]) -> Log:
    return read([write(folder / "d", lines)], models.VECTOR)


def share_right(made: Trained) -> float:
    measured = made.measured
    return accuracy(confusion(measured.labels, [likeliest(row) for row in measured.probabilities]))


@pytest.mark.parametrize("kind", ["linear", pytest.param("trees", marks=pytest.mark.slow)])
def test_it_learns_what_clients_do_and_says_how_well_on_others(tmp_path: Path, kind: Any) -> None:
    made = train(log_of(tmp_path, traffic(400)), kind, None)
    assert len(made.measured.labels) == 400
    assert made.clients == 9
    assert 0.85 < share_right(made) < 1.0
    assert expected_calibration_error(made.measured.labels, made.measured.probabilities) < 0.1
    model = learned_of(made.document)
    assert model.trained["tags"] == 400
    talk = models.from_numbers({"stream": 1, "last_chars": 30, "answered": 1})
    assert likeliest(model.judge(talk)) == "ttft"
    assert likeliest(model.judge(models.from_numbers({"last_chars": 900, "answered": 1, "tools": 1}))) == "mixed"


def test_the_same_log_gives_the_same_bytes(tmp_path: Path) -> None:
    log = log_of(tmp_path, traffic(400))
    first, second = (orjson.dumps(train(log, "linear", None).document) for _ in range(2))
    assert first == second


def test_too_few_tags_are_refused_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(
        TrainingError, match=rf"has 50 tagged calls \(.*\); training needs {LEAST_TAGS}.*x-twolane-class"
    ):
        train(log_of(tmp_path, traffic(50)), "linear", None)


def test_tags_of_one_class_are_refused(tmp_path: Path) -> None:
    calls = [tagged("throughput", float(number), client=f"c{number % 3}") for number in range(500)]
    with pytest.raises(TrainingError, match=r"500 throughput.*at least two classes"):
        train(log_of(tmp_path, calls), "linear", None)


def contrary(folder: Path) -> Learned:
    """A model that takes everything for a batch, and is sure of it."""
    document = train(log_of(folder, traffic(300)), "linear", None).document
    document["arrival"] = None
    for feature in document["request"]["features"]:
        feature["weights"] = dict.fromkeys(feature["weights"], 0.0)
    document["request"]["intercept"] = {"ttft": 0.0, "mixed": 0.0, "throughput": 9.0}
    return learned_of(document)


def test_few_tags_leave_the_model_near_the_one_before_and_many_do_not(tmp_path: Path) -> None:
    prior = contrary(tmp_path)
    talk = models.from_numbers({"stream": 1, "last_chars": 30, "answered": 1})
    unlike = []
    for count in (210, 1500):
        made = train(log_of(tmp_path, traffic(count)), "linear", prior)
        assert made.before is not None
        assert set(map(likeliest, made.before.probabilities)) == {"throughput"}
        unlike.append(1.0 - learned_of(made.document).judge(talk)[2])
    assert unlike[0] + 0.05 < unlike[1]


def test_a_class_of_one_client_is_measured_all_the_same(tmp_path: Path) -> None:
    """Held out by client, nobody would have seen that class before."""
    made = train(log_of(tmp_path, traffic(600, clients=3)), "linear", None)
    assert share_right(made) > 0.85
    assert any(f"{name} by 1" in note for note in made.notes for name in ("ttft", "mixed", "throughput"))


def test_a_site_that_does_otherwise_than_is_known_beforehand_is_believed(tmp_path: Path) -> None:
    """Batches that stream and talk that does not: no weight may speak for that, unless the log alone is asked."""
    swapped = {"ttft": "throughput", "throughput": "ttft", "mixed": "mixed"}
    made = train(log_of(tmp_path, [{**each, "class": swapped[each["class"]]} for each in traffic(400)]), "linear", None)
    assert share_right(made) > 0.85
    assert made.document["trained"]["way"] == "by the log alone"
    assert train(log_of(tmp_path, traffic(400)), "linear", None).document["trained"]["way"].startswith("with what is")


def test_one_client_is_split_by_time_and_that_is_said(tmp_path: Path) -> None:
    calls = [{**each, "client": "the only one"} for each in traffic(400)]
    made = train(log_of(tmp_path, calls), "linear", None)
    assert made.clients == 1
    assert any("split by time" in note for note in made.notes)


def test_calls_of_unknown_clients_have_a_stage_that_does_not_look_at_history(tmp_path: Path) -> None:
    made = train(log_of(tmp_path, traffic(400)), "linear", None)
    used = [feature["name"] for feature in made.document["request"]["features"]]
    assert not set(used) & models.ONLY_WITH_ARRIVAL
    assert made.document["arrival"] is not None
    fresh = [{**each, "arrival": {}} for each in traffic(400)]
    assert train(log_of(tmp_path, fresh), "linear", None).document["arrival"] is None


def test_guesses_are_learned_from_but_not_measured_by(tmp_path: Path) -> None:
    calls = traffic(300) + [line(1000.0 + number, stream=True, client="u") for number in range(100)]
    made = train(log_of(tmp_path, calls), "linear", None)
    assert len(made.measured.labels) == 300
    assert made.document["trained"]["calls"] == 400
    assert made.document["trained"]["weights"]["guesses"] > 0

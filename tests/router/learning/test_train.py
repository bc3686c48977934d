"""A model from a decision log: refused where there is too little, measured on clients that it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

pytest.importorskip("sklearn", reason="training needs scikit-learn")

from classifiers.measures import accuracy, confusion, expected_calibration_error, likeliest
from classifiers.training import TrainingError
from router import models
from router.learning import adapt, fresh
from router.learning.examples import examples_of
from router.learning.lines import Log, read
from router.learning.making import Data, Prior
from router.learning.rows import LEAST_TAGS
from router.learning.train import Trained, learned_of, train
from tests.router import opinions
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


def test_the_last_calls_are_judged_by_a_model_of_those_before(tmp_path: Path) -> None:
    """A habit that begins late is not known to it."""
    calls = traffic(400)
    turned = [{**each, "class": "mixed"} if number >= 320 else each for number, each in enumerate(calls)]
    later = train(log_of(tmp_path, turned), "linear", None).later["new without them, last calls"]
    assert set(later.labels) == {"mixed"}
    assert len(later.labels) == 80
    assert accuracy(confusion(later.labels, [likeliest(row) for row in later.probabilities])) < 0.6
    same = train(log_of(tmp_path, calls), "linear", None).later["new without them, last calls"]
    assert accuracy(confusion(same.labels, [likeliest(row) for row in same.probabilities])) > 0.85


def test_the_same_log_gives_the_same_bytes(tmp_path: Path) -> None:
    log = log_of(tmp_path, traffic(400))
    first, second = (orjson.dumps(train(log, "linear", None).document) for _ in range(2))
    assert first == second


def test_too_few_tags_are_refused_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(
        TrainingError, match=rf"has 50 tagged calls \(.*\); training needs {LEAST_TAGS}.*x-twolane-class"
    ):
        train(log_of(tmp_path, traffic(50)), "linear", None)


def test_lines_that_were_passed_over_are_named_where_too_few_are_left(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"has 0 tagged.*without 300 lines \(features of another version"):
        train(log_of(tmp_path, [{**each, "vector": "old"} for each in traffic(300)]), "linear", None)


def test_tags_of_one_class_are_refused(tmp_path: Path) -> None:
    calls = [tagged("throughput", float(number), client=f"c{number % 3}") for number in range(500)]
    with pytest.raises(TrainingError, match=r"500 throughput.*at least two classes"):
        train(log_of(tmp_path, calls), "linear", None)


def always(call_class: str) -> Prior:
    document = opinions.always(call_class)
    return Prior(model=learned_of(document), document=document)


def test_a_model_of_another_kind_is_asked_for_its_opinion_which_fades_with_the_number_of_tags(tmp_path: Path) -> None:
    talk = models.from_numbers({"stream": 1, "last_chars": 30, "answered": 1})
    unlike = []
    for count in (210, 1500):
        data = Data(examples=examples_of(log_of(tmp_path, traffic(count))), known=(), clients=9, folds=3)
        way, vocabulary = next(fresh.ways("linear"))
        made = fresh.fitted(data, always("throughput"), "linear", way, vocabulary)
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
    assert train(log_of(tmp_path, traffic(400)), "linear", None).document["trained"]["way"].endswith("known beforehand")


def test_one_client_is_split_by_time_and_that_is_said(tmp_path: Path) -> None:
    calls = [{**each, "client": "the only one"} for each in traffic(400)]
    made = train(log_of(tmp_path, calls), "linear", None)
    assert made.clients == 1
    assert any("split by time" in note for note in made.notes)


def test_a_class_of_few_calls_is_said_to_be_measured_by_few(tmp_path: Path) -> None:
    """One by each of 20 clients, and all of them at the end."""
    calls = [{**each, "class": "ttft"} for each in traffic(235)]
    calls += [tagged("mixed", 300.0 + number, client=f"d{number}", arrival={"calls": 1}) for number in range(20)]
    notes = train(log_of(tmp_path, calls), "linear", None).notes
    assert any("Few calls are tagged of a class (20 mixed)" in note and "0.2 by chance" in note for note in notes)
    assert any("Only the last calls are tagged mixed" in note for note in notes)
    plenty = train(log_of(tmp_path, traffic(400)), "linear", None).notes
    assert not any("by chance" in note or "Only the last" in note for note in plenty)


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


def knowing(*names: str) -> Prior:
    """A model that knows some features: what streams is talk, tools make a hop, the rest are rows."""
    leans = {
        "stream": (2.0, 0.0, -2.0),
        "tools": (0.0, 3.0, 0.0),
        "suffix": (4.0, -2.0, -2.0),
        "seed": (-1.0, 0.0, 1.0),
    }
    document = opinions.always("throughput", 0.5)
    (feature,) = document["request"]["features"]
    document["request"]["features"] = [
        {
            **feature,
            "name": name,
            "mean": 0.1,
            "scale": 0.3,
            "weights": dict(zip(("ttft", "mixed", "throughput"), leans[name], strict=True)),
        }
        for name in names
    ]
    return Prior(model=learned_of(document), document=document)


def test_a_linear_model_is_moved_and_keeps_what_the_log_says_nothing_of(tmp_path: Path) -> None:
    """No call of the log has a suffix; where the log contradicts, it is believed."""
    prior = knowing("stream", "tools", "suffix", "seed")
    swapped = {"ttft": "throughput", "throughput": "ttft", "mixed": "mixed"}
    made = train(
        log_of(tmp_path, [{**each, "class": swapped[each["class"]]} for each in traffic(400)]), "linear", prior
    )
    assert made.before is not None
    assert accuracy(confusion(made.before.labels, [likeliest(row) for row in made.before.probabilities])) < 0.5
    assert share_right(made) > 0.85
    assert made.document["trained"]["way"].startswith("adapted")
    assert made.document["trained"]["before"] == prior.model.version
    model = learned_of(made.document)
    assert likeliest(model.judge(models.from_numbers({"stream": 1}))) == "throughput"
    assert likeliest(prior.model.judge(models.from_numbers({"stream": 1}))) == "ttft"
    weights = {each["name"]: each["weights"]["ttft"] for each in made.document["request"]["features"]}
    assert weights["suffix"] == pytest.approx(4.0), "no call has one, so nothing moved it"
    assert weights["stream"] < 1.0


def test_the_more_it_may_be_moved_the_nearer_it_comes_to_the_log(tmp_path: Path) -> None:
    prior = knowing("stream", "tools", "seed")
    examples = examples_of(log_of(tmp_path, traffic(300)))
    data = Data(examples=examples, known=(), clients=9, folds=3)
    before = prior.document["request"]["features"][0]["weights"]["mixed"]
    steps = []
    for penalty in sorted(adapt.PENALTIES, reverse=True):
        made = adapt.moved(data, prior, penalty)
        steps.append(abs(made.document["request"]["features"][0]["weights"]["mixed"] - before))
    assert steps == sorted(steps)
    assert steps[0] < steps[-1]


def test_what_the_model_before_says_of_known_clients_is_kept_where_the_log_has_too_few(tmp_path: Path) -> None:
    prior = knowing("stream", "tools")
    arrival = opinions.always("mixed")["request"]
    document = {**prior.document, "arrival": arrival}
    both = Prior(model=learned_of(document), document=document)
    few = [{**each, "arrival": {"calls": 2} if number < 50 else {}} for number, each in enumerate(traffic(400))]
    made = train(log_of(tmp_path, few), "linear", both)
    assert made.document["arrival"] == arrival
    assert [likeliest(row) for row in made.measured.probabilities][:50] == ["mixed"] * 50
    assert train(log_of(tmp_path, traffic(400)), "linear", both).document["arrival"] != arrival

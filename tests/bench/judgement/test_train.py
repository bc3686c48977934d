"""Training over a few calls of our own: the same calls give the same model, and a model that judges."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn", reason="training needs scikit-learn")

from bench.judgement import data
from bench.judgement.data import Row, load
from bench.judgement.replay import replay
from bench.judgement.train import ROUNDS, learnable, train
from classifiers.api import CallClass
from classifiers.learned import Learned
from classifiers.modelfile import CLASSES, written
from classifiers.training import Recipe
from classifiers.vector import LEANS, NAMES, vector
from router import models

FIXTURE = Path(__file__).with_name("fixture_model.json")
RECIPE = Recipe(kind="linear", strength=0.05, folds=2)
CHAT = "/v1/chat/completions"
TOPICS = ("ferries", "orchids", "tax forms", "violins", "glaciers", "bread")


def _chats(number: int, topic: str) -> dict[str, Any]:
    system = {"role": "system", "content": "You are a friendly assistant in a chat. Keep it short."}
    asked = {"role": "user", "content": f"Hi, can you tell me something about {topic}?"}
    return {"stream": number % 4 != 3, "temperature": 0.7, "messages": [system, asked] if number % 2 else [asked]}


def _infills(number: int, topic: str) -> dict[str, Any]:
    name = topic.replace(" ", "_")
    return {"stream": True, "max_tokens": 64, "prompt": f"def {name}(count):\n    return cou", "suffix": "\n\n"}


def _jobs(number: int, topic: str) -> dict[str, Any]:
    text = f"Classify the review. Answer with one label only.\n\nTitle: {topic}\nReview: Arrived late, number {number}."
    return {"temperature": 0, "max_tokens": 8, "messages": [{"role": "user", "content": text}]}


def _exams(number: int, topic: str) -> dict[str, Any]:
    text = f"Question: What are {topic}?\nAnswer: Things.\n\nQuestion: How many {topic} are {number} {topic}?\nAnswer:"
    return {"stop": ["Question:"], "seed": 1, "prompt": text}


def _agents(number: int, topic: str) -> dict[str, Any]:
    tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}
    call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": f'{{"for": "{topic}"}}'}}
    messages = [
        {"role": "system", "content": "You are an agent. Use the tools step by step."},
        {"role": "user", "content": f"Find {number} facts on {topic}."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": '{"found": 3}'},
    ]
    return {"tools": [tool], "messages": messages[: 2 + 2 * (number % 2)]}


def _loops(number: int, topic: str) -> dict[str, Any]:
    steps = f"Thought 1: look\nAction 1: open[{topic}]\nObservation 1: 7\nThought 2:"
    text = f"Interleave Thought, Action, Observation.\nTask: {topic}\n{steps}"
    return {"stop": ["\nObservation"], "messages": [{"role": "user", "content": text}]}


MADE = {
    "ttft": {"chats": _chats, "infills": _infills},
    "mixed": {"agents": _agents, "loops": _loops},
    "throughput": {"jobs": _jobs, "exams": _exams},
}


def _records(workload: str) -> Iterator[dict[str, Any]]:
    for source, make in MADE[workload].items():
        for number in range(12):
            body = make(number, TOPICS[number % len(TOPICS)])
            yield {
                "id": f"{source}-{number}",
                "source": source,
                "group": f"{source}:{number}",
                "workload": workload,
                "path": "/v1/completions" if "prompt" in body else CHAT,
                "headers": {"User-Agent": "thing/1"},
                "body": {"model": "m", **body},
                "reference_output_chars": 80,
            }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("data") / "prompts"
    where.mkdir()
    for workload in MADE:
        lines = "".join(json.dumps(record) + "\n" for record in _records(workload))
        (where / f"{workload}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return where


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[Row]:
    return load(folder)


@pytest.fixture(scope="module")
def document(rows: list[Row]) -> dict[str, Any]:
    return train(rows, request=RECIPE)


def test_the_same_calls_give_the_same_bytes(rows: list[Row], document: dict[str, Any]) -> None:
    assert written(train(rows, request=RECIPE)) == written(document)


def test_it_is_the_model_that_it_was(document: dict[str, Any]) -> None:
    """Features and fit have not changed unnoticed; `python -m tests.bench.judgement.test_train` writes it anew."""
    expected = json.loads(FIXTURE.read_text(encoding="utf-8"))
    features = {feature["name"]: feature for feature in document["request"]["features"]}
    assert list(features) == [feature["name"] for feature in expected["request"]["features"]]
    for feature in expected["request"]["features"]:
        assert features[feature["name"]]["weights"] == pytest.approx(feature["weights"], abs=1e-3)
        assert features[feature["name"]]["mean"] == pytest.approx(feature["mean"], abs=1e-6)


def test_it_judges_what_it_learned(rows: list[Row], document: dict[str, Any]) -> None:
    model = Learned.parse(document, NAMES)
    right = [CLASSES[model.look(vector(row.features)).place] is row.label for row in rows]
    assert sum(right) == len(right)


def test_known_clients_have_a_stage_of_their_own(rows: list[Row], folder: Path) -> None:
    document = train(rows, replay(folder), request=RECIPE, arrival=RECIPE)
    assert Learned.parse(document, NAMES).arrival is not None
    assert document["trained"]["rows_with_arrival"] > 0


def test_calls_of_apis_that_say_what_they_are_for_are_left_out(rows: list[Row]) -> None:
    embedding = data.read_row(
        {
            "id": "e",
            "source": "e",
            "workload": "throughput",
            "path": "/v1/embeddings",
            "headers": {},
            "body": {"model": "m", "input": "text"},
        }
    )
    assert learnable([*rows, embedding]) == rows
    assert embedding.label is CallClass.THROUGHPUT


def test_the_shipped_model_keeps_to_the_leans() -> None:
    shipped = json.loads(models.BUILTIN_FILE.read_text(encoding="utf-8"))
    for stage in ("request", "arrival"):
        for feature in shipped[stage]["features"]:
            for sign, call_class in zip(LEANS[feature["name"]], CLASSES, strict=True):
                weight = feature["weights"][call_class]
                assert sign == "*" or weight == 0 or (weight > 0) == (sign == "+"), feature["name"]


def test_the_shipped_model_is_what_the_command_makes() -> None:
    where = data.folder()
    if where is None:
        pytest.skip(f"{data.VARIABLE} names no labelled calls")
    made = dict(_leaves(json.loads(written(train(load(where), replay(where, rounds=ROUNDS))))))
    shipped = dict(_leaves(json.loads(models.BUILTIN_FILE.read_text(encoding="utf-8"))))
    # Processors add in different orders, which moves the ninth digit.
    numbers = {at: value for at, value in shipped.items() if isinstance(value, float)}
    assert {at: made.get(at) for at in numbers} == pytest.approx(numbers, rel=1e-5, abs=1e-8)
    assert {at: value for at, value in made.items() if at not in numbers} == {
        at: value for at, value in shipped.items() if at not in numbers
    }


def _leaves(node: object, at: str = "") -> Iterator[tuple[str, object]]:
    """Each value of a document by its path; numbers as floats, since a whole one is written without a point."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from _leaves(value, f"{at}/{name}")
    elif isinstance(node, list):
        for place, value in enumerate(node):
            yield from _leaves(value, f"{at}/{place}")
    else:
        yield at, float(node) if isinstance(node, int) and not isinstance(node, bool) else node


def _write() -> None:
    made = [data.read_row(record) for workload in MADE for record in _records(workload)]
    FIXTURE.write_text(written(train(made, request=RECIPE)), encoding="utf-8")


if __name__ == "__main__":
    _write()

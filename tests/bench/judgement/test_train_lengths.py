"""Training of the length model: the same from the same calls, finds what is there, and ships what it makes."""

from __future__ import annotations

import json
import random
from typing import Any

import orjson
import pytest

from bench.judgement.answers import Answer, bucket, weights
from bench.judgement.data import folder, read_row
from bench.judgement.lengths import by_global, by_limit, figures, judged, with_history
from bench.judgement.train_lengths import FILE, fit, folds, four_things, one_thing, trained
from classifiers.lengths import COLUMNS, LengthModel
from classifiers.modelfile import written
from router.fleet.output_lengths import shipped

SUBJECTS = ("the harbour", "a bakery", "two brothers", "the last winter", "an old radio", "the village school")

STORY_TOKENS = {"source 0": 80, "source 2": 300, "source 4": 1200}
"""What only a client's earlier answers tell."""


def labelled(chance: random.Random, source: str) -> Answer:
    text = f"{chance.choice(SUBJECTS)} and {chance.choice(SUBJECTS)}, number {chance.randrange(900)}"
    talk = int(source[-1]) % 2 == 0
    said = f"Please tell me a story about {text}!" if talk else f"Review: {text}\nAnswer with one label only.\nLabel:"
    body: dict[str, Any] = {"model": "m", "stream": talk, "messages": [{"role": "user", "content": said}]}
    if not talk:
        body["max_tokens"] = 8
    record = {"path": "/v1/chat/completions", "headers": {}, "body": body, "source": source, "workload": "ttft"}
    usual = STORY_TOKENS[source] if talk else 2
    tokens = round(usual * chance.uniform(0.8, 1.2))
    return Answer(read_row({**record, "id": "1"}).features, source, tokens)


@pytest.fixture(scope="module")
def calls() -> list[Answer]:
    chance = random.Random(9)
    return [labelled(chance, f"source {number}") for number in range(6) for _ in range(12 + number)]


def test_training_twice_gives_the_same_file_and_it_finds_what_is_there(calls: list[Answer]) -> None:
    document = trained(calls)
    assert written(trained(calls)) == written(document)
    model = LengthModel.parse(orjson.loads(written(document)))
    for call in calls:
        said = bucket(model.predict(call.features).p50_tokens)
        assert said == 0 if call.tokens < 16 else said > 0


def test_each_source_is_held_out_once(calls: list[Answer]) -> None:
    held = [call.source for seen, out in folds(calls) for call in out if call.source not in {s.source for s in seen}]
    assert len(held) == len(calls)


def test_a_source_of_four_times_the_rows_counts_twice() -> None:
    each = weights(["a"] * 4 + ["b"])
    assert 4 * each[0] == pytest.approx(2 * each[-1])
    assert sum(each) == pytest.approx(len(each))


def test_every_call_is_sent_once_by_each_kind_of_client(calls: list[Answer]) -> None:
    for clients in (one_thing(calls), four_things(calls)):
        assert sorted(id(call) for client in clients for call in client) == sorted(map(id, calls))


def test_the_model_is_judged_better_than_what_it_is_compared_with(calls: list[Answer]) -> None:
    model = LengthModel.parse(fit(calls))
    models = {call.source: model for call in calls}
    loss = {
        "limit": judged(calls, by_limit),
        "global": judged(calls, by_global(calls)),
        "model": judged(calls, lambda call: model.predict(call.features)),
        "history": with_history(models, one_thing(calls), after=5),
    }
    mean = {name: sum(row.loss(0.5) for row in rows) / len(rows) for name, rows in loss.items()}
    assert mean["history"] < mean["model"] < min(mean["global"], mean["limit"])
    assert "0." in figures("model", loss["model"])


def test_the_shipped_file_is_what_training_wrote() -> None:
    document = json.loads(FILE.read_text(encoding="utf-8"))
    assert written(document) == FILE.read_text(encoding="utf-8")
    assert [row["name"] for row in document["columns"]] == list(COLUMNS)
    assert document["trained"]["sources"] > 30
    assert shipped() == LengthModel.parse(document)


@pytest.mark.slow
@pytest.mark.skipif(folder() is None, reason="TWOLANE_DATA names no data")
def test_training_on_the_data_gives_the_shipped_lines() -> None:
    from bench.judgement.answers import read_answers

    where = folder()
    assert where is not None
    document = json.loads(FILE.read_text(encoding="utf-8"))
    again = fit(read_answers(where), document["answers"])
    for before, after in zip(document["columns"], again["columns"], strict=True):
        assert after == pytest.approx(before, abs=0.02)

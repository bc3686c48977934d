"""Expected lengths: what the call says, what was seen before, and the limit, each with its weight."""

from __future__ import annotations

import math
from typing import Any

import pytest

from classifiers.api import Features
from classifiers.lengths import COLUMNS, LengthModel, Lengths, columns
from classifiers.modelfile import ModelError
from classifiers.online_quantiles import NOTHING, Seen
from classifiers.shape import shape_of


def document(**more: Any) -> dict[str, Any]:
    """64 tokens, one octave more where it streams; the 90th percentile two octaves above."""
    weights = {"stream": 1.0}
    rows = [{"name": name, "words": words} for name, words in COLUMNS.items()]
    return {
        "format": 1,
        "intercept": {"p50": 6.0, "p90": 8.0},
        "columns": [row | dict.fromkeys(("p50", "p90"), weights.get(row["name"], 0.0)) for row in rows],
        "answers": {"centre": 2.0, "spread": 6.0, "tight_octaves": 1.0},
        **more,
    }


MODEL = LengthModel.parse(document())


def call(**fields: Any) -> Features:
    return Features(surface="openai_chat", **fields)


def seen(answers: int, p50: float, p90: float) -> Seen:
    return Seen(answers, math.log2(p50), math.log2(p90))


def test_the_call_alone() -> None:
    assert MODEL.predict(call()) == Lengths(64, 256)
    assert MODEL.predict(call(stream=True)) == Lengths(128, 512)


def test_the_limit_bounds_both() -> None:
    assert MODEL.predict(call(max_tokens=100)) == Lengths(64, 100)
    assert MODEL.predict(call(max_tokens=10)) == Lengths(10, 10)
    assert MODEL.predict(call(max_tokens=0)) == Lengths(0, 0)


def test_as_many_answers_as_the_model_counts_move_it_half_way() -> None:
    said = MODEL.predict(call(), [seen(2, 1024, 1024)])
    assert said.p50_tokens == 256  # between 64 and 1024, on the scale of logarithms
    assert said.p90_tokens == round(256 * 4 ** (6 / 8))
    assert said.seen == 2


def test_many_answers_outweigh_the_model() -> None:
    said = MODEL.predict(call(), [seen(32, 1000, 1500)])
    assert said.p50_tokens == pytest.approx(1000, rel=0.25)
    assert said.p50_tokens < said.p90_tokens < 2500


def test_scattered_answers_tell_little() -> None:
    scattered = MODEL.predict(call(), [seen(32, 1000, 32_000)])
    assert scattered.p50_tokens < 80


def test_the_narrowest_kind_has_the_last_word() -> None:
    said = MODEL.predict(call(), [seen(32, 1000, 1000), NOTHING, seen(32, 5, 5)])
    assert said.p50_tokens < 9
    assert said.seen == 32


def test_the_order_of_quantiles_holds_even_where_the_lines_cross() -> None:
    crossed = LengthModel.parse(document(intercept={"p50": 6.0, "p90": 3.0}))
    assert crossed.predict(call()) == Lengths(64, 64)


def test_no_answer_is_expected_to_be_endless() -> None:
    endless = LengthModel.parse(document(intercept={"p50": 1e6, "p90": 1e6}))
    assert endless.predict(call()) == Lengths(2**17, 2**17)


def test_a_row_has_a_number_for_each_column_whatever_the_call() -> None:
    body = {"messages": [{"role": "user", "content": "(A) one\n(B) two\n\nWhich one? Answer with the letter only."}]}
    text = [body["messages"][0]["content"]]
    for features in (call(), call(shape=shape_of(body, system=[], last=text), max_tokens=9, tools=1)):
        row = columns(features)
        assert len(row) == len(COLUMNS)
        assert all(math.isfinite(float(value)) for value in row)


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"format": 2}, "format"),
        ({"columns": []}, "columns"),
        ({"columns": document()["columns"][::-1]}, "columns[0].name"),
        ({"intercept": {"p50": 1.0}}, "intercept.p90"),
        ({"intercept": {"p50": float("nan"), "p90": 1.0}}, "intercept.p50"),
        ({"answers": {"centre": 0, "spread": 1, "tight_octaves": 1}}, "answers.centre"),
    ],
)
def test_a_document_of_something_else_says_where(wrong: dict[str, Any], key: str) -> None:
    with pytest.raises(ModelError) as error:
        LengthModel.parse(document(**wrong))
    assert error.value.key == key

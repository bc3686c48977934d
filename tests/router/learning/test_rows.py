"""What weighs how much when a model is trained on a log."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

pytest.importorskip("sklearn", reason="training needs scikit-learn")

from classifiers.api import CallClass
from router.learning.examples import Example
from router.learning.labels import Label
from router.learning.rows import PRIOR_CALLS, weighed

TTFT, BATCH = CallClass.TTFT, CallClass.THROUGHPUT


def example(call_class: CallClass | None, weight: float = 1.0, *, strong: bool = True, client: str = "c") -> Example:
    label = None if call_class is None else Label(call_class, weight, "sign", strong)
    return Example(vector=(1.0, 2.0), client=client, history=False, stream=False, program="", life=0, label=label)


def sure(vector: Sequence[float], history: bool) -> tuple[float, float, float]:
    return (0.9, 0.095, 0.005)


def test_tags_alone_weigh_as_many_as_they_are() -> None:
    found = weighed([example(TTFT), example(BATCH), example(BATCH)], None)
    assert found.tag_weight == pytest.approx(3.0)
    assert list(found.tags) == [0, 1, 2]
    assert (found.guess_weight, found.prior_weight) == (0.0, 0.0)


def test_classes_count_alike_and_a_large_client_by_the_root_of_its_calls() -> None:
    calls = [example(TTFT)] + [example(BATCH, client="big")] * 16 + [example(BATCH, client="small")]
    rows = weighed(calls, None).rows
    by_class = {
        name: sum(w for w, label in zip(rows.weights, rows.labels, strict=True) if label == name)
        for name in rows.labels
    }
    assert by_class["ttft"] == pytest.approx(by_class["throughput"])
    big = sum(weight for weight, client in zip(rows.weights, rows.groups, strict=True) if client == "big")
    small = sum(weight for weight, client in zip(rows.weights, rows.groups, strict=True) if client == "small")
    assert big == pytest.approx(4 * small)


def test_guesses_together_never_weigh_more_than_tags() -> None:
    calls = (
        [example(TTFT), example(BATCH)]
        + [example(TTFT, 0.5, strong=False)] * 50
        + [example(BATCH, 0.5, strong=False)] * 50
    )
    found = weighed(calls, None)
    assert found.guess_weight == pytest.approx(found.tag_weight)
    assert sum(found.rows.weights) == pytest.approx(2 * found.tag_weight)
    few = weighed([example(TTFT), example(BATCH), example(TTFT, 0.1, strong=False)], None)
    assert few.guess_weight < few.tag_weight


def test_what_the_model_before_thinks_weighs_as_a_fixed_number_of_tags_however_many_calls_there_are() -> None:
    for count in (10, 1000):
        found = weighed([example(TTFT), *[example(None)] * (count - 1)], sure)
        assert found.prior_weight == pytest.approx(PRIOR_CALLS, rel=0.01)
        assert list(found.tags) == [0]
        opinions = dict.fromkeys(found.rows.labels, 0.0)
        for name, weight in list(zip(found.rows.labels, found.rows.weights, strict=True))[1:]:
            opinions[name] += weight
        assert opinions["ttft"] == pytest.approx(0.9 * PRIOR_CALLS)
        assert opinions["mixed"] == pytest.approx(0.095 * PRIOR_CALLS)
        assert "throughput" not in opinions, "too unlikely to be worth a row"


def test_opinions_stay_on_the_side_of_their_client() -> None:
    rows = weighed([example(TTFT, client="a"), example(None, client="b")], sure).rows
    assert rows.groups == ["a", "a", "a", "b", "b"]

"""The measures of a classifier, by hand."""

from __future__ import annotations

import pytest

from classifiers.api import CallClass
from classifiers.measures import (
    accuracy,
    confusion,
    expected_calibration_error,
    likeliest,
    macro_accuracy,
    precision_and_recall,
)

LABELS = ["ttft", "ttft", "ttft", "ttft", "mixed"]
JUDGED = ["ttft", "ttft", "ttft", "mixed", "mixed"]


def test_confusion_counts_by_truth_and_verdict() -> None:
    table = confusion(LABELS, JUDGED)

    assert table[CallClass.TTFT] == {"ttft": 3, "mixed": 1, "throughput": 0}
    assert table[CallClass.MIXED] == {"ttft": 0, "mixed": 1, "throughput": 0}
    assert confusion(LABELS, JUDGED, [2, 0, 0, 1, 1])[CallClass.TTFT] == {"ttft": 2, "mixed": 1, "throughput": 0}


def test_macro_accuracy_counts_classes_alike_and_leaves_out_those_that_do_not_occur() -> None:
    assert macro_accuracy(confusion(LABELS, JUDGED)) == pytest.approx((0.75 + 1) / 2)
    assert accuracy(confusion(LABELS, JUDGED)) == pytest.approx(0.8)
    assert macro_accuracy(confusion([], [])) == accuracy(confusion([], [])) == 0


def test_precision_and_recall() -> None:
    assert precision_and_recall(confusion(LABELS, JUDGED), CallClass.MIXED) == (0.5, 1.0)
    assert precision_and_recall(confusion(LABELS, JUDGED), CallClass.THROUGHPUT) == (0.0, 0.0)


def test_calibration_compares_confidence_with_what_came_true() -> None:
    sure, unsure = (0.95, 0.05, 0.0), (0.45, 0.15, 0.4)

    assert expected_calibration_error(["ttft", "ttft"], [sure, sure]) == pytest.approx(0.05)
    assert expected_calibration_error(["mixed", "mixed"], [sure, sure]) == pytest.approx(0.95)
    assert expected_calibration_error(["ttft", "mixed"], [sure, unsure]) == pytest.approx((0.05 + 0.45) / 2)
    assert expected_calibration_error(["ttft", "mixed"], [sure, unsure], [3, 1]) == pytest.approx(0.0375 + 0.1125)
    assert expected_calibration_error([], []) == 0


def test_certainty_falls_into_the_last_bin() -> None:
    assert expected_calibration_error(["ttft"], [(1.0, 0.0, 0.0)]) == 0


def test_the_first_of_equals_is_the_likeliest() -> None:
    assert likeliest((0.4, 0.4, 0.2)) is CallClass.TTFT
    assert likeliest((0.1, 0.3, 0.6)) is CallClass.THROUGHPUT


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        confusion(LABELS, JUDGED[:2])

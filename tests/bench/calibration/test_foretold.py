"""How far predictions are off is counted in times, too long and too short alike."""

from __future__ import annotations

from typing import Any

import pytest

from bench.calibration.foretold import off_by, ratios


def test_too_long_and_too_short_are_alike() -> None:
    assert off_by([1.0, 1.0, 1.0]) == 1.0
    assert off_by([2.0]) == off_by([0.5]) == pytest.approx(2.0)


def test_only_what_was_both_foretold_and_seen_is_compared() -> None:
    lines: list[dict[str, Any]] = [
        {"predicted": None, "ttft_s": 1.0},
        {"predicted": {"ttft_s": 2.0}, "ttft_s": None},
        {"predicted": {"ttft_s": 2.0}, "ttft_s": 3.0},
    ]
    assert ratios(lines, "ttft_s") == [1.5]

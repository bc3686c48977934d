"""What seeing costs: the arithmetic, and that all routers start and take calls."""

from __future__ import annotations

import pytest

from bench.observing.__main__ import ALL, BLIND, NAMES, ON, Figures, measure


def figures(calls: float, token_us: float) -> Figures:
    made = Figures()
    for blind in (100.0, 200.0, 400.0):
        made.add("calls/s", BLIND, blind)
        made.add("CPU us per token", BLIND, 20.0)
        for name in ON:
            made.add("calls/s", name, blind * calls if name == ALL else blind)
            made.add("CPU us per token", name, token_us if name == ALL else 20.0)
    return made


def test_ratios_are_taken_within_a_round() -> None:
    assert figures(0.95, 21.0).ratio("calls/s", ALL) == pytest.approx(0.95)


@pytest.mark.parametrize(("calls", "token_us", "missed"), [(0.95, 21.0, 0), (0.8, 21.0, 1), (0.95, 23.0, 1)])
def test_a_target_that_does_not_hold_is_told(calls: float, token_us: float, missed: int) -> None:
    assert len(figures(calls, token_us).missed()) == missed


@pytest.mark.slow
def test_all_routers_start_and_are_measured() -> None:
    found = measure(2, 1, 0.2, 0.2, NAMES)
    for values in found.values.values():
        assert [*values] == [*NAMES]
        assert all(len(each) == 2 and min(each) > 0 for each in values.values())

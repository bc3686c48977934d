"""Medians, percentiles, ratios by round, and targets."""

import pytest

from bench.peers import SGLANG_ROUTER, TWOLANE, TWOLANE_RULES
from bench.results import CALL_CPU, IDLE_STREAM, TARGETS, TOKEN_CPU, Rounds, Run, judge, percentile, summarise


def rounds_of(metric_values: dict[str, list[float]]) -> Rounds:
    rounds = Rounds()
    for peer, values in metric_values.items():
        for value in values:
            rounds.add(CALL_CPU, peer, value)
    return rounds


def test_a_summary_is_least_median_and_most() -> None:
    summary = summarise([3.0, 1.0, 10.0])
    assert (summary.least, summary.median, summary.most) == (1.0, 3.0, 10.0)


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.95, 95), (0.951, 96), (1.0, 100), (0.0, 1)])
def test_a_percentile_is_a_value_that_was_measured(share: float, expected: float) -> None:
    assert percentile([float(number) for number in range(100, 0, -1)], share) == expected


def test_a_ratio_compares_rounds_and_not_medians_of_a_machine_that_slowed_down() -> None:
    rounds = rounds_of({TWOLANE: [10, 20, 40], SGLANG_ROUTER: [10, 20, 40]})
    assert rounds.ratio(CALL_CPU, TWOLANE) == 1.0
    rounds = rounds_of({TWOLANE: [20, 20, 80], SGLANG_ROUTER: [10, 20, 40]})
    assert rounds.ratio(CALL_CPU, TWOLANE) == 2.0


def test_a_ratio_of_unequal_rounds_is_that_of_the_medians() -> None:
    assert rounds_of({TWOLANE: [10, 30], SGLANG_ROUTER: [10]}).ratio(CALL_CPU, TWOLANE) == 2.0


def test_there_is_no_ratio_to_what_was_not_measured() -> None:
    assert rounds_of({TWOLANE: [10]}).ratio(CALL_CPU, TWOLANE) is None
    assert rounds_of({TWOLANE: [10], SGLANG_ROUTER: [0.0]}).ratio(CALL_CPU, TWOLANE) is None


def test_a_target_against_a_peer_holds_up_to_its_limit() -> None:
    rounds = rounds_of({TWOLANE: [200], SGLANG_ROUTER: [100]})
    finding = judge(rounds)[1]
    assert (finding.measured, finding.holds) == (2.0, True)
    assert judge(rounds_of({TWOLANE: [201], SGLANG_ROUTER: [100]}))[1].holds is False


def test_a_target_looks_at_the_variant_that_it_is_about() -> None:
    rounds = rounds_of({TWOLANE: [300], TWOLANE_RULES: [180], SGLANG_ROUTER: [100]})
    assert [finding.holds for finding in judge(rounds)[:2]] == [True, False]


def test_a_target_of_its_own_looks_at_the_median() -> None:
    rounds = Rounds()
    for value in (90.0, 99.0, 500.0):
        rounds.add(IDLE_STREAM, TWOLANE, value)
    findings = {finding.words: finding for finding in judge(rounds)}
    assert findings["an idle open stream <= 100 KB"].holds is True


def test_what_was_not_measured_is_neither_held_nor_missed() -> None:
    rounds = Rounds()
    rounds.add(TOKEN_CPU, TWOLANE, 20.0)
    assert [finding.holds for finding in judge(rounds)] == [None] * len(TARGETS)


@pytest.mark.parametrize(("imported", "holds"), [(True, False), (False, True), (None, None)])
def test_importing_scikit_learn_while_serving_is_a_missed_target(imported: bool | None, holds: bool | None) -> None:
    assert Run(sklearn_imported=imported).findings()[-1].holds is holds

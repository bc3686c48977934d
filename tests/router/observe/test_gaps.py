"""The gaps of an answer: exact while it is short, close when it is long, nothing where there are none."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest

from router.observe.gaps import Gaps


def told(gaps_s: list[float], run: int = 20) -> Gaps:
    """What came after these gaps, shown in runs."""
    gaps = Gaps()
    times = list(accumulate(gaps_s, initial=100.0))
    for start in range(0, len(times), run):
        gaps.came(times[start : start + run])
    return gaps


def test_an_answer_of_one_piece_has_no_gap() -> None:
    assert told([]).flow() is None
    assert Gaps().flow() is None


def test_a_steady_answer_has_no_stall() -> None:
    flow = told([0.02] * 99).flow()
    assert flow is not None
    assert flow.mean_s == pytest.approx(0.02)
    assert flow.p95_s == pytest.approx(0.02)
    assert flow.longest_s == pytest.approx(0.02)
    assert flow.stalls == 0


def test_a_stall_is_more_than_four_times_the_median() -> None:
    flow = told([0.02] * 97 + [0.079, 0.082, 0.5]).flow()
    assert flow is not None
    assert flow.stalls == 2
    assert flow.longest_s == pytest.approx(0.5)
    assert flow.p95_s == pytest.approx(0.02)


def test_bursts_too_quick_to_see_make_no_stalls_of_the_steps_between_them() -> None:
    flow = told([0.0001, 0.0001, 0.0001, 0.015] * 30).flow()
    assert flow is not None
    assert flow.stalls == 0


@pytest.mark.parametrize("run", [1, 7, 32])
def test_it_does_not_matter_how_the_pieces_were_shown(run: int) -> None:
    draw = random.Random(3)
    gaps_s = [draw.expovariate(50.0) for _ in range(500)]
    assert told(gaps_s, run).flow() == told(gaps_s).flow()


def test_a_long_answer_is_measured_to_its_end_in_little_memory() -> None:
    draw = random.Random(5)
    gaps_s = [draw.expovariate(50.0) for _ in range(20_000)]
    gaps_s[15_000] = 3.0
    seen = told(gaps_s)
    flow = seen.flow()
    assert flow is not None
    assert flow.mean_s == pytest.approx(sum(gaps_s) / len(gaps_s))
    gaps_s.sort()
    assert flow.p95_s == pytest.approx(gaps_s[19_000], rel=0.02)
    assert flow.longest_s == pytest.approx(3.0)
    limit_s = 4.0 * gaps_s[10_000]
    assert flow.stalls == pytest.approx(sum(gap > limit_s for gap in gaps_s), rel=0.05)
    assert len(seen._at_s) <= 1024

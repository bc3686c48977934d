"""Foreign load: what a scrape shows beyond our own calls, fading with age."""

from __future__ import annotations

import pytest

from router.engines.api import Load
from router.fleet.foreign import ForeignLoad


def test_calls_beyond_our_own_are_foreign() -> None:
    foreign = ForeignLoad(half_life_s=5.0)
    foreign.scraped(Load(running=4.0, waiting=3.0), own_peak=2, now_s=10.0)
    assert foreign.calls(10.0) == 5.0
    assert foreign.queued(10.0) == 3.0


def test_a_figure_counts_half_after_each_half_life_and_nothing_in_the_end() -> None:
    foreign = ForeignLoad(half_life_s=5.0)
    foreign.scraped(Load(running=8.0), own_peak=0, now_s=0.0)
    assert foreign.calls(5.0) == pytest.approx(4.0)
    assert foreign.calls(10.0) == pytest.approx(2.0)
    assert foreign.calls(60.0) == 0.0


def test_our_own_calls_that_an_engine_still_counts_are_not_foreign() -> None:
    foreign = ForeignLoad(half_life_s=5.0)
    foreign.scraped(Load(running=6.0), own_peak=6, now_s=0.0)
    foreign.scraped(Load(running=6.0), own_peak=0, now_s=1.0)  # ours ended, the figure lags
    assert foreign.calls(1.0) == 0.0
    for now_s in (2.0, 3.0):
        foreign.scraped(Load(running=6.0), own_peak=0, now_s=now_s)
    assert foreign.calls(3.0) == 6.0


def test_calls_just_sent_that_an_engine_does_not_count_yet_never_go_below_zero() -> None:
    foreign = ForeignLoad(half_life_s=5.0)
    foreign.scraped(Load(running=1.0), own_peak=9, now_s=0.0)
    assert foreign.calls(0.0) == 0.0


def test_a_scrape_that_says_nothing_leaves_the_old_figure_fading() -> None:
    foreign = ForeignLoad(half_life_s=5.0)
    foreign.scraped(Load(running=4.0), own_peak=0, now_s=0.0)
    foreign.scraped(None, own_peak=0, now_s=5.0)
    assert foreign.calls(5.0) == pytest.approx(2.0)
    assert foreign.age_s(5.0) == 5.0


def test_unknown_is_not_zero_and_not_a_crash() -> None:
    foreign = ForeignLoad(half_life_s=5.0)
    foreign.scraped(Load(running=None, waiting=None), own_peak=0, now_s=0.0)
    assert foreign.calls(0.0) == 0.0
    assert foreign.queued(0.0) == 0.0
    assert ForeignLoad(half_life_s=5.0).queued(0.0) == 0.0

"""Buckets of the last hour: what was served when."""

from __future__ import annotations

import pickle

import pytest

from router.dashboard.buckets import KEPT_S, Bucket, Buckets, Cell
from tests.router.dashboard.calls import ended


class Wall:
    now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


def test_calls_are_counted_where_they_ended_with_what_was_kept() -> None:
    wall = Wall()
    buckets = Buckets(wall)
    buckets.add(ended(), True, False, wall())
    buckets.add(ended(ttft_s=0.9), False, False, wall())
    buckets.add(ended(output_tokens=None, outcome="backend_error"), False, True, wall())
    buckets.add(ended(backend="rack", call_class="throughput"), None, False, wall())
    [bucket] = buckets.window(60)
    desk = bucket.cells["ttft", "desk"]
    assert (desk.calls, desk.judged, desk.kept, desk.failed) == (3, 3, 1, 1)
    assert (desk.output_tokens, desk.kept_tokens) == (80, 40)
    rack = bucket.cells["throughput", "rack"]
    assert (rack.judged, rack.kept_tokens) == (0, 40), "where nothing is promised, a whole answer is in time"


def test_a_bucket_is_closed_when_its_time_is_over_and_told_once() -> None:
    wall, closed = Wall(), list[Bucket]()
    buckets = Buckets(wall, closed.append)
    buckets.add(ended(), True, False, wall())
    wall.now_s += 9.9
    buckets.add(ended(), True, False, wall())
    assert closed == []
    wall.now_s += 0.1
    assert [bucket.start_s for bucket in buckets.window(60)] == [1_000_000]
    assert [cell.calls for bucket in closed for cell in bucket.cells.values()] == [2]
    buckets.close()
    assert len(closed) == 1


def test_no_more_than_an_hour_is_kept_and_what_was_before_the_start_comes_first() -> None:
    wall = Wall()
    buckets = Buckets(wall)
    for _ in range(500):
        buckets.add(ended(), True, False, wall())
        wall.now_s += 10
    assert len(buckets.window(1e9)) == KEPT_S // 10
    fresh = Buckets(wall)
    fresh.add(ended(), True, False, wall())
    fresh.close()
    fresh.remember([Bucket(int(wall.now_s) - 120, 60), Bucket(int(wall.now_s) - 60, 60)])
    starts = [bucket.start_s for bucket in fresh.window(3600)]
    assert starts == sorted(starts)
    assert len(starts) == 3


def test_a_clock_that_is_set_back_loses_nothing() -> None:
    wall = Wall()
    buckets = Buckets(wall)
    buckets.add(ended(), True, False, wall())
    wall.now_s -= 5000
    buckets.add(ended(), True, False, wall())
    assert sum(cell.calls for bucket in buckets.since(0) for cell in bucket.cells.values()) == 2


def test_percentiles_are_of_all_calls_and_a_closed_bucket_is_small() -> None:
    wall = Wall()
    buckets = Buckets(wall)
    for number in range(5000):
        buckets.add(ended(ttft_s=number / 1000), True, False, wall())
    buckets.close()
    [bucket] = buckets.window(60)
    [cell] = bucket.cells.values()
    assert cell.ttft.quantiles((0.5, 0.95)) == pytest.approx([2.5, 4.75], rel=0.01)
    assert len(pickle.dumps(cell)) < 2500
    assert Cell().ttft.quantiles((0.5, 0.95)) == [None, None]

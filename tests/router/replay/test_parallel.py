"""Several works at once, in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable

import pytest

from router.replay.parallel import Broken, cores, run


def work(number: int) -> Callable[[Callable[[int], None]], tuple[int, int]]:
    def done(tell: Callable[[int], None]) -> tuple[int, int]:
        tell(10 * number)
        return number, os.getpid()

    return done


@pytest.mark.parametrize("jobs", [1, 2, 8])
def test_results_come_in_order_and_it_is_told_how_far_each_is(jobs: int) -> None:
    told: dict[int, int] = {}
    results = run([work(number) for number in range(4)], jobs, lambda number, count: told.update({number: count}))
    assert [number for number, _ in results] == [0, 1, 2, 3]
    assert told == {0: 0, 1: 10, 2: 20, 3: 30}


def test_one_job_stays_in_this_process_and_more_do_not() -> None:
    assert {pid for _, pid in run([work(1), work(2)], 1, lambda number, count: None)} == {os.getpid()}
    if "fork" in multiprocessing.get_all_start_methods():
        assert os.getpid() not in {pid for _, pid in run([work(1), work(2)], 2, lambda number, count: None)}


def test_a_process_that_dies_is_told() -> None:
    def dies(tell: Callable[[int], None]) -> tuple[int, int]:
        os._exit(9)

    with pytest.raises(Broken, match="exit code 9"):
        run([work(1), dies], 2, lambda number, count: None)


def test_there_is_a_core() -> None:
    assert cores() >= 1

"""The load generator counts what happened, and fails where the measured server did not do its part."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from bench import load
from bench.load import LoadError
from bench.loader import Loader
from bench.scripted_backend import NOT_FOUND
from tests.bench.serving import Always, serving


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with serving() as port:
        yield port


async def test_calls_are_counted_over_a_window_with_the_cpu_time_of_the_measured(port: int) -> None:
    done = await load.calls(port=port, concurrency=4, seconds=0.1, warm_s=0.02, pid=os.getpid())
    assert done.calls > 10
    assert 0.1 <= done.seconds < 1
    assert done.cpu_s is not None
    assert 0 < done.cpu_s <= done.seconds * 2
    assert done.reconnects == 0


async def test_without_a_process_to_measure_there_is_no_cpu_time(port: int) -> None:
    assert (await load.calls(port=port, concurrency=1, seconds=0.05, warm_s=0)).cpu_s is None


async def test_tokens_of_paced_streams_come_to_the_pace_times_the_time(port: int) -> None:
    done = await load.tokens(port=port, streams=10, interval_ms=10, seconds=0.5, warm_s=0.05)
    assert done.tokens == pytest.approx(done.seconds / 0.010 * 10, rel=0.1)


async def test_first_tokens_are_timed_one_by_one(port: int) -> None:
    done = await load.first_tokens(port=port, streams=8, warm=2)
    assert len(done.first_ms) == 8
    assert all(0 < value < 1000 for value in done.first_ms)


async def test_idle_streams_are_held_open_while_memory_is_read(port: int) -> None:
    held = await load.idle(port=port, streams=60, pid=os.getpid(), warm_calls_s=0.05, settle_s=0.01)
    assert held.streams == 60
    assert held.before_pss_bytes > 0
    # This very process is measured, which other tests have made large: a page of it may have gone in between.
    assert held.open_pss_bytes > 0.99 * held.before_pss_bytes


async def test_answers_that_are_not_200_fail_the_job() -> None:
    async with serving(lambda: Always(NOT_FOUND)) as port:
        with pytest.raises(LoadError, match="status 404"):
            await load.calls(port=port, concurrency=2, seconds=0.05, warm_s=0)
        with pytest.raises(LoadError, match="status 404"):
            await load.first_tokens(port=port, streams=1)
        with pytest.raises(LoadError, match="3 of 3 streams did not begin"):
            await load.tokens(port=port, streams=3, interval_ms=10, seconds=0.05)


async def test_a_closed_connection_is_opened_again_and_counted() -> None:
    closing = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    async with serving(lambda: Always(closing, hang_up=True)) as port:
        done = await load.calls(port=port, concurrency=2, seconds=0.1, warm_s=0)
    assert done.reconnects > 2
    assert done.calls > 2


async def test_a_server_that_never_answers_fails_the_job_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "PATIENCE_S", 0.1)
    async with serving(lambda: Always(b"")) as port:
        with pytest.raises(TimeoutError):
            await load.calls(port=port, concurrency=2, seconds=0.05, warm_s=0)


async def test_the_load_process_does_jobs_one_after_the_other_and_survives_a_failed_one(port: int) -> None:
    def ask() -> None:
        with Loader() as loader:
            with pytest.raises(LoadError, match="ConnectionRefusedError"):
                loader.calls(port=1, concurrency=1, seconds=0.1)
            assert loader.calls(port=port, concurrency=2, seconds=0.1).calls > 0
            assert len(loader.first_tokens(port=port, streams=3).first_ms) == 3

    await asyncio.to_thread(ask)

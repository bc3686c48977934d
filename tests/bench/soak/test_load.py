"""The three loads, in small. What is compared here is the middle of the calls: a busy machine is no reason to fail."""

from __future__ import annotations

from bench.soak import load


async def test_streams_that_are_open_at_once_get_every_token() -> None:
    found = await load.streams(400, pieces=5, gap_ms=500)
    assert found.wrong == 0
    assert found.open_at_once == 400
    assert found.stream_kb < load.MOST_STREAM_KB


async def test_calls_go_on_while_a_backend_hangs() -> None:
    found = await load.hang(100, rounds=1)
    assert found.wrong == 0
    assert found.hung > 0
    assert found.p50_ms < 2 * found.quiet_p50_ms
    assert found.p99_ms < 1500  # half of the time in which the router gives a silent backend up


async def test_slow_readers_of_long_streams_hold_up_nobody_and_little_memory() -> None:
    found = await load.slow_readers(5, calls=60)
    assert found.wrong == 0
    assert found.reader_mb < load.MOST_READER_MB
    assert found.closed_s < load.CLOSED_S
    assert found.p50_ms < 2 * found.quiet_p50_ms


def test_a_bound_that_does_not_hold_is_told() -> None:
    good = load.Hang(calls=9, quiet_p50_ms=1, quiet_p99_ms=2, p50_ms=1, p99_ms=4, wrong=0, hung=1)
    assert good.failures() == []
    assert load.Streams(streams=5, open_at_once=4, wrong=1, stream_kb=100).failures() == [
        "1 of 5 streams are wrong",
        "only 4 of 5 streams were open at once",
        "100.0 KB for each stream, 64 are allowed",
    ]
    bad = load.Hang(calls=9, quiet_p50_ms=1, quiet_p99_ms=2, p50_ms=1, p99_ms=5, wrong=0, hung=1)
    assert bad.failures() == ["p99 beside the load is 2.50 times that without; 2 are allowed"]

"""What a backend promises about its connections, and what it does."""

from __future__ import annotations

import pytest

from router.wire.keep_alive import REST_AFTER_STREAM_S, SEEN_COUNTS_FOR_S, KeepAlive, promised_s


@pytest.mark.parametrize(
    ("field", "kept_s"),
    [
        (b"", 4.0),
        (b"max=7", 4.0),
        (b"timeout=5, max=100", 4.0),
        (b"max=100, Timeout = 20", 19.0),
        (b'timeout="20"', 19.0),
        (b"timeout=1", 0.5),
        (b"timeout=0", 0.0),
        (b"timeout=86400", 60.0),
        (b"timeout=-1", 4.0),
    ],
)
def test_a_promise_is_used_up_to_a_margin(field: bytes, kept_s: float) -> None:
    assert promised_s(field) == kept_s


def test_an_idle_limit_that_was_seen_is_kept_clear_of() -> None:
    keep_alive = KeepAlive()
    assert keep_alive.trusts(0.98, now_s=0)
    keep_alive.ended(1.0, streamed=False, now_s=10)
    assert keep_alive.trusts(0.7, now_s=11)
    assert not keep_alive.trusts(0.98, now_s=11)


def test_the_shortest_of_several_limits_counts() -> None:
    keep_alive = KeepAlive()
    keep_alive.ended(1.0, streamed=False, now_s=10)
    keep_alive.ended(3.0, streamed=False, now_s=11)
    assert not keep_alive.trusts(0.98, now_s=12)


def test_a_limit_is_forgotten_since_a_restart_ends_connections_of_any_age() -> None:
    keep_alive = KeepAlive()
    keep_alive.ended(0.0, streamed=False, now_s=10)
    assert not keep_alive.trusts(0.0, now_s=11)
    assert keep_alive.trusts(3.9, now_s=10 + SEEN_COUNTS_FOR_S)
    keep_alive.ended(3.0, streamed=False, now_s=100)
    assert keep_alive.trusts(2.0, now_s=101)


def test_an_end_right_after_a_stream_says_nothing_about_idle_limits() -> None:
    keep_alive = KeepAlive()
    keep_alive.ended(0.1, streamed=True, now_s=10)
    assert keep_alive.ends_after_streams
    assert keep_alive.trusts(1.0, now_s=11)


def test_an_end_long_after_a_stream_is_an_idle_limit() -> None:
    keep_alive = KeepAlive()
    keep_alive.ended(2.0, streamed=True, now_s=10)
    assert not keep_alive.ends_after_streams
    assert not keep_alive.trusts(1.9, now_s=11)


def test_the_rest_after_streams_ends_when_a_connection_has_lived_through_it() -> None:
    keep_alive = KeepAlive()
    assert keep_alive.rest_s == REST_AFTER_STREAM_S
    keep_alive.lived()
    assert keep_alive.rest_s == 0.0

"""Figures of a process, and what may be left of a run."""

from __future__ import annotations

import os
import socket
from collections import Counter
from dataclasses import replace

import pytest

from bench.soak import watch
from bench.soak.aftermath import Books, Rest, complaints
from bench.soak.watch import Sample

NOTHING = Rest(leases=0, waiting=0, open_calls=0, calls_at_backends=0, watch_failures=0, sockets=4)


def samples(*rss_kb: int) -> list[Sample]:
    """One each 10,000 calls."""
    return [Sample(number * 10_000, kb, 4, 1.0) for number, kb in enumerate(rss_kb)]


def test_growth_is_that_after_the_warm_up() -> None:
    flat = samples(0, 50_000, 60_000, 65_000, 70_000, 70_000, 70_000, 70_000, 70_000, 70_000)
    assert watch.growth_kb(flat, 90_000) == 0
    leak = samples(0, 0, 0, 0, *range(1000, 7000, 1000))
    assert watch.growth_kb(leak, 90_000) == pytest.approx(1000)


def test_a_few_samples_say_nothing() -> None:
    assert watch.growth_kb(samples(1, 2), 10_000) is None


def test_open_sockets_are_counted_and_memory_is_read() -> None:
    before = watch.sockets(os.getpid())
    with socket.socket():
        assert watch.sockets(os.getpid()) == before + 1
    assert watch.sockets(os.getpid()) == before
    assert watch.rss_kb(os.getpid()) > 10_000


def test_what_is_left_is_told() -> None:
    assert list(NOTHING.left_over(4)) == []
    assert list(NOTHING.left_over(3)) == ["the router has 4 sockets at the end and had 3 before"]
    assert list(replace(NOTHING, leases=2).left_over(4)) == ["open leases at the end: 2"]


def test_calls_are_counted_once_or_their_clients_had_left() -> None:
    books = Books(by_outcome=Counter(completed=90, client_gone=5), left_unplaced=2)
    assert list(books.mistakes(95, 5)) == []
    assert list(books.mistakes(98, 5)) == []
    assert list(books.mistakes(94, 5)) == ["the router counted 95 of 94 calls, of which 5 were left by their clients"]
    assert len(list(books.mistakes(101, 5))) == 1
    bug = Books(by_outcome=Counter(completed=1, router_error=1), left_unplaced=0)
    assert list(bug.mistakes(2, 0)) == ["outcome router_error: 1 calls"]


def test_only_what_faults_do_not_explain_is_a_complaint() -> None:
    usual = '{"event":"reload_refused","level":"error"}\ntwolane 0.1 serves on http://127.0.0.1:1\n'
    assert list(complaints(usual)) == []
    bug = '{"event":"call_failed","level":"error"}'
    assert list(complaints(f"{usual}{bug}\nTraceback (most recent call last):\n")) == [
        bug,
        "Traceback (most recent call last):",
    ]

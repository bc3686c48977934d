"""Workloads that are mostly people: a steady stream of them, bursts, a day over a backlog, a few among many rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from bench.mixes.flood import CHAT, ROW
from bench.mixes.plan import Call, Client, Workload
from bench.mixes.senders import Lengths, chats, client, poisson, rows
from bench.mixes.traces import load as load_trace
from bench.mixes.traces import window


def _people(chance: Random, count: int = 12) -> list[Client]:
    return [client(chance, f"person-{number}", browser=True) for number in range(count)]


def _workload(name: str, seed: int, seconds: float, calls: list[Call]) -> Workload:
    calls.sort(key=lambda call: call.at_s)
    return Workload(name=name, seed=seed, seconds=seconds, calls=calls)


def steady_chat(seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload:
    """Nobody but people, at random."""
    chance = Random(f"steady chat {seed}")
    calls = chats(chance, poisson(chance, 12.0 * load, seconds), CHAT, _people(chance))
    return _workload("steady_chat", seed, seconds, list(calls))


def chat_bursts(seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload:
    """People as they came to a public service: recorded times and lengths, ten times the usual rate for moments."""
    chance = Random(f"chat bursts {seed}")
    people = _people(chance, 30)
    calls: list[Call] = []
    trace = load_trace("azure2023_conv")
    for arrival in window(trace, chance, calls=max(2, round(5.0 * load * seconds)), seconds=seconds):
        exact = Lengths(
            prompt=min(max(arrival.input_tokens, 16), 6_000),
            output=min(max(arrival.output_tokens, 4), 800),
            prompt_sigma=0.0,
            output_sigma=0.0,
        )
        calls += chats(chance, [arrival.at_s], exact, people)
    return _workload("chat_bursts", seed, seconds, calls)


def rows_and_a_few(seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload:
    """Nine rows of jobs for each call of a person, all at random: two jobs of two owners."""
    chance = Random(f"rows and a few {seed}")
    calls = list(chats(chance, poisson(chance, 0.6 * load, seconds), CHAT, _people(chance, 4)))
    for owner in ("job-a", "job-b"):
        times = poisson(chance, 2.7 * load, seconds)
        calls += rows(chance, times, ROW, client(chance, owner))
    return _workload("rows_and_a_few", seed, seconds, calls)


def day_over_backlog(seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload:
    """People come and go like in a day while a backlog of rows, all sent at the start, is worked off."""
    chance = Random(f"day over backlog {seed}")
    calls = list(chats(chance, _waves(chance, 4.0 * load, seconds), CHAT, _people(chance)))
    backlog = [chance.uniform(0, 1.0) for _ in range(round(160 * load * seconds / 40))]
    calls += rows(chance, sorted(backlog), ROW, client(chance, "job"))
    return _workload("day_over_backlog", seed, seconds, calls)


def _waves(chance: Random, mean_per_s: float, seconds: float) -> Iterator[float]:
    """A Poisson process whose rate goes from a tenth of the mean to almost twice the mean and back."""
    most_per_s = 1.9 * mean_per_s
    for at_s in poisson(chance, most_per_s, seconds):
        rate_per_s = mean_per_s * (1 - 0.9 * math.cos(2 * math.pi * at_s / seconds))
        if chance.random() < rate_per_s / most_per_s:
            yield at_s

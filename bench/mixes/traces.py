"""Recorded arrivals and lengths, from the folder that `TWOLANE_DATA` names; nothing of them is kept here."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

VARIABLE = "TWOLANE_DATA"


class NoTraces(Exception):
    """The folder is not there; the message says what to set."""


@dataclass(frozen=True, slots=True)
class Arrival:
    at_s: float
    input_tokens: int
    output_tokens: int


def load(name: str) -> Sequence[Arrival]:
    """A trace with times, in order. Raises `NoTraces`."""
    folder = os.environ.get(VARIABLE)
    path = Path(folder or ".") / "traces" / f"{name}.csv.gz"
    if not folder or not path.exists():
        raise NoTraces(f"this workload needs {name}.csv.gz: set {VARIABLE} to the folder that has traces/ in it")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [
            Arrival(float(row["t_s"]), int(row["input_tokens"]), int(row["output_tokens"]))
            for row in csv.DictReader(file)
            if row["t_s"]
        ]


def window(trace: Sequence[Arrival], chance: Random, *, calls: int, seconds: float) -> list[Arrival]:
    """So many arrivals in a row, from a random place, their times stretched or pressed to last `seconds`.

    Scaling time keeps the bursts that leaving out rows would lose.
    """
    first = chance.randrange(max(1, len(trace) - calls))
    part = trace[first : first + calls]
    lasts_s = max(part[-1].at_s - part[0].at_s, 1e-9)
    scale = seconds / lasts_s * (1 - 1 / (len(part) + 1))
    return [Arrival((each.at_s - part[0].at_s) * scale, each.input_tokens, each.output_tokens) for each in part]

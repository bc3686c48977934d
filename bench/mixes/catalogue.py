"""The workloads by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from bench.mixes.flood import flood
from bench.mixes.plan import Workload


class Make(Protocol):
    def __call__(self, seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload: ...


MIXES: Mapping[str, Make] = {"flood": flood}

"""The workloads by name."""

from __future__ import annotations

from typing import Protocol

from bench.mixes.chat import chat_bursts, day_over_backlog, rows_and_a_few, steady_chat
from bench.mixes.flood import flood
from bench.mixes.held_out import office, studio
from bench.mixes.plan import Workload
from bench.mixes.programs import coding_agents, documents, fan_out, faults


class Make(Protocol):
    def __call__(self, seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload:
        """`load` multiplies the rates. Raises `NoTraces` where recorded arrivals are needed and not there."""
        ...


MIXES: dict[str, Make] = {
    "flood": flood,
    "steady_chat": steady_chat,
    "chat_bursts": chat_bursts,
    "rows_and_a_few": rows_and_a_few,
    "day_over_backlog": day_over_backlog,
    "coding_agents": coding_agents,
    "fan_out": fan_out,
    "documents": documents,
    "faults": faults,
}
HELD_OUT: dict[str, Make] = {"office": office, "studio": studio}
"""For final figures only."""

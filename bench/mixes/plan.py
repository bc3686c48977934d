"""A workload: calls in the order in which they arrive, with what nobody but the judge may see beside each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

from bench.emulator.reading import Asked, read
from classifiers.api import CallClass

MODEL = "emulated"
PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a call of a class was promised, in seconds; None: nothing of that kind."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    complete_s: float | None = None


PROMISES: Mapping[CallClass, Promise] = {
    CallClass.TTFT: Promise(ttft_s=0.5, tpot_s=0.05),
    CallClass.MIXED: Promise(complete_s=6.0),
    CallClass.THROUGHPUT: Promise(complete_s=60.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One program on one machine, as a server sees it."""

    name: str
    address: str
    """On the loopback network: connections come from there."""
    user_agent: str
    key: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call. `label` and `promise` are for judging, and for routers that are given labels."""

    at_s: float
    client: Client
    body: Mapping[str, Any]
    label: CallClass
    promise: Promise
    session: str = ""
    """What belongs together; never sent."""
    direct: str = ""
    """The lane whose server it goes to past the router; such calls are nobody's success or failure."""

    @cached_property
    def data(self) -> bytes:
        return orjson.dumps(dict(self.body))

    @cached_property
    def asked(self) -> Asked:
        """As an emulated server reads it."""
        return read(self.data, chat=True)

    @property
    def stream(self) -> bool:
        return self.asked.stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that happens to a backend, `latency` or `throughput`, or to what it says of itself."""

    at_s: float
    lane: str
    speed: float | None = None
    """Times as fast as it was at the start."""
    sequences: int | None = None
    """Calls that it takes at once from then on."""
    frozen: bool | None = None
    """Whether what it says of its load stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    name: str
    seed: int
    seconds: float
    """Of arrivals."""
    calls: Sequence[Call]
    faults: Sequence[Fault] = ()

    def of(self, label: CallClass) -> list[Call]:
        return [call for call in self.calls if call.label is label]

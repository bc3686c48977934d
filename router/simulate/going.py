"""A modelled server, and a call between its arrival and its end, as the simulation keeps them."""

from __future__ import annotations

import math

from router.applicant import Applicant, Placed
from router.arrivals import Presence
from router.engines.api import Load as Scraped
from router.fleet.evidence import Answered
from router.fleet.prefixes import Prefix
from router.pipelines import Hop, Pipelines
from router.simulate.calls import Became
from router.simulate.engine import SimulatedEngine
from router.simulate.pace import EngineSpec, Flavour
from router.simulate.sequence import Sequence as InEngine


class Server:
    """One modelled engine, when it wakes next, and what it said of itself lately."""

    __slots__ = ("engine", "frozen", "name", "said", "wakes_s")

    def __init__(self, name: str, spec: EngineSpec) -> None:
        self.name = name
        self.engine = SimulatedEngine(spec)
        self.wakes_s = math.inf
        self.frozen = False
        self.said: list[tuple[float, Scraped]] = []
        """Time and figures, the newest last."""


class Going:
    """A call between its arrival and its end."""

    __slots__ = ("applicant", "became", "client", "hop", "placed", "prefix", "presence", "sequence")

    def __init__(self, became: Became) -> None:
        self.became = became
        self.client = ""
        self.applicant: Applicant | None = None
        self.presence: Presence | None = None
        self.prefix: Prefix | None = None
        self.hop: Hop | None = None
        self.placed: Placed | None = None
        self.sequence: InEngine | None = None

    @property
    def streams(self) -> bool:
        return self.applicant is not None and self.applicant.ask.features.stream

    def sent(self, backend: str, model: str | None, now_s: float) -> None:
        """It has its place."""
        if self.prefix is not None:
            self.prefix.sent(backend)
        if self.hop is not None:
            self.hop.placed(backend, model, now_s)

    def remembered(self, pipelines: Pipelines, now_s: float, *, complete: bool) -> None:
        """It has ended: tell those who keep count of tasks and of caches."""
        became = self.became
        tokens = became.call.output_tokens if complete else None
        if self.hop is not None:
            pipelines.ended(
                self.hop,
                now_s,
                complete=complete,
                first_s=became.first_s,
                prompt_tokens=became.call.prompt_tokens,
                cached_tokens=became.cached_tokens,
                output_tokens=tokens,
            )
        if self.prefix is not None:
            self.prefix.ended(
                prompt_tokens=became.call.prompt_tokens,
                cached_tokens=became.cached_tokens,
                output_tokens=tokens,
                complete=complete,
            )

    def answered(self, now_s: float) -> Answered:
        """What the server and the stream would tell of a whole answer."""
        sequence = self.sequence
        assert sequence is not None
        timed = sequence.first_s is not None and sequence.admitted_s is not None
        tells = timed and self.placed is not None and self.placed.backend.engine.name == Flavour.SLOTS
        return Answered(
            last_s=now_s if self.streams else None,
            prompt_tokens=sequence.prompt_tokens,
            cached_tokens=sequence.cached_tokens,
            output_tokens=sequence.output_tokens,
            prompt_s=(sequence.first_s or 0.0) - (sequence.admitted_s or 0.0) if tells else None,
            decode_s=now_s - (sequence.first_s or 0.0) if tells else None,
        )

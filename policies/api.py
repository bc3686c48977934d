"""Where should this call go, and when? The words in which a policy is asked and answers.

This page is for authors of policies. A policy is a frozen dataclass whose fields are its YAML options and whose one
method, `decide`, looks at frozen views and answers `Dispatch`, `Wait` or `Reject`. It does no I/O, reads no clock and
draws no random numbers: `now_s` and `chance` are arguments. It may not keep state between calls; what it needs to know
about the past is in the views.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from classifiers.api import CallClass, Features, Verdict
from classifiers.lengths import Lengths


class Lane(StrEnum):
    """The role of a backend."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast a backend is. Engines work in steps; each decodes a token of every running sequence and prefills a piece
    of the prompts that are next, and takes

        step_s + sequence_s x decoding sequences + prefill_token_s x prompt tokens prefilled in it
    """

    step_s: float
    sequence_s: float
    prefill_token_s: float
    """For a prompt token that is not in its cache."""
    step_tokens: int
    """Most prompt tokens that one step prefills."""
    call_s: float = 0.0
    """What a call takes beside, before its first token: the network, its template, its tokens."""
    known: bool = True
    """Whether it says anything of this backend: its kind makes such a pace likely, or enough answers were seen."""
    seen: int = 0
    """Answers that this was learned from; 0: it is what the kind of engine makes likely."""
    first_spread: float = 2.0
    """Nine times in ten a first token comes in less than so many times of what was predicted when it was sent."""
    tpot_spread: float = 2.0
    """The same of the mean time between tokens."""
    spread: float = 2.0
    """The same of the whole answer, had its length been known."""


UNKNOWN_PACE: Final = Pace(known=False, step_s=0.015, sequence_s=0.001, prefill_token_s=1 / 4000, step_tokens=512)


class Protected(NamedTuple):
    """A running call of ours that was promised something, and what other work may still cost it."""

    slack_s: float
    """By how much it would keep its promise if nothing came in between; below 0: it is likely to miss it anyway."""
    left_tokens: float
    """Of its answer, as far as can be told."""
    sure_s: float
    """The slack that is left also where the answer is as short, or as long, as one in ten."""
    call_class: CallClass


class Work(NamedTuple):
    """What our own calls on a backend still need, as of `at_s`. Between first and last token it is an estimate from
    time and pace."""

    at_s: float = 0.0
    decoding: float = 0.0
    """Sequences that get a token with each step."""
    prefilling: int = 0
    """Calls that have no token yet."""
    prefill_tokens: float = 0.0
    """Of their prompts: not in the cache and not prefilled yet."""
    ends_s: Sequence[float] = ()
    """When each of the running calls is expected to end, the soonest first; on the clock of `at_s`."""
    protected: Sequence[Protected] = ()
    prefill_0_1: float = 0.0
    """Share of the engine's time that prompts of ours took in the last seconds, and so held up what decoded."""


NO_WORK: Final = Work()


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What those ask for who wait for a first token, in the whole fleet, of late."""

    per_s: float = 0.0
    prompt_tokens: float = 0.0
    """A large one among the usual."""
    output_tokens: float = 0.0
    ttft_s: float = math.inf
    """What they are promised."""
    tpot_s: float = math.inf


NO_DEMAND: Final = Demand()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One backend at one instant. Only backends that can serve the call are shown to a policy."""

    name: str
    lane: Lane
    engine: str
    cap: int | None
    """Most calls that may be in flight there at once (the slots of a llama.cpp server); None: no limit known."""
    own: int
    """Open leases of this router: exact."""
    foreign: float = 0.0
    """Calls of other clients, as last scraped, decayed with the age of the figure."""
    own_by_class: Mapping[CallClass, int] = field(default_factory=dict)
    queued: float = 0.0
    """Calls that wait inside the engine, as last scraped and decayed."""
    context_tokens: int | None = None
    weight: float = 1.0
    """How much the operator says this backend takes, relative to its lane."""
    dispatched: int = 0
    """Leases ever opened there."""
    pace: Pace = field(default_factory=lambda: UNKNOWN_PACE)
    """How fast it is, as learned so far."""
    work: Work = NO_WORK
    demand: Demand = NO_DEMAND
    """The same in all views."""

    @property
    def in_flight(self) -> float:
        return self.own + self.foreign

    @property
    def free(self) -> float:
        """Calls that still fit; infinite where no cap is known."""
        return float("inf") if self.cap is None else self.cap - self.own - self.foreign


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRules:
    """What the operator promised to calls of one class."""

    lanes: tuple[Lane, ...]
    """In order of preference; a lane that is missing is never used."""
    keep_free: Mapping[Lane, int] = field(default_factory=dict)
    """Slots of a lane that calls of this class leave to others."""
    max_wait_s: float
    """Longest stay in the router's line."""
    slo_ttft_s: float | None = None
    slo_tpot_s: float | None = None
    slo_complete_s: float | None = None
    ageing_s: float = math.inf
    """Who has waited for this long goes before everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One call that wants a place."""

    features: Features
    verdict: Verdict
    rules: ClassRules
    arrived_s: float
    client: str = ""
    """Who asks: name of a key or an address, and the program. For fairness; never shown."""
    affinity_key: str = ""
    """What calls of one conversation have in common; empty: nothing known."""
    home: str = ""
    """Backend that served the previous call of the same conversation; empty: none that is known."""
    cached_tokens: Mapping[str, int] = field(default_factory=dict)
    """Tokens at the head of the prompt that a backend is likely to have in its cache, by its name; 0 where missing."""
    lengths: Lengths | None = None
    """How many tokens its answer is likely to have; None: not known, or it has no text. The router does not tell it
    (`docs/lengths.md` says why); a simulation may."""
    due_s: float | None = None
    """When it should have its answer, where its pipeline or its caller set a time; on the same clock as `arrived_s`."""
    hoped_s: float | None = None
    """When it should have its answer if that costs nobody anything, since its class was only guessed, and it may be a
    hop of a pipeline after all; None: its class is beyond doubt, or it has a promise."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Send it there, now."""

    backend: str
    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """No room now; stay in the router's line and ask again when something changes."""

    reason: str
    again_s: float = math.inf
    """Ask again then at the latest, also if nothing changes; on the same clock as `now_s`."""


@dataclass(frozen=True, slots=True)
class Reject:
    """It will not get a place; tell the caller when to come back."""

    reason: str
    status: int = 503
    retry_after_s: float = 1.0


Decision = Dispatch | Wait | Reject


class Policy(Protocol):
    def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
        """Choose among `views` (never empty, in the order of the settings).

        `chance` is uniform in [0, 1): use it to break ties, so that equals share. Must be quick: it runs for each
        call and again for the head of each waiting group whenever room may have appeared.
        """
        ...

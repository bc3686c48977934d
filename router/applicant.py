"""A call that wants a place, what calls must have in common to stand in one group of the line, and a place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from classifiers.api import CallClass
from policies.api import Ask, Lane
from router.errors import RouterError
from router.fleet.backend import Backend
from router.fleet.fleet import Candidate
from router.fleet.ledger import Lease
from router.observe.facts import Alternative
from router.waiting import Entry


@dataclass(frozen=True, slots=True)
class Placed:
    """A call has its place: the lease is open."""

    backend: Backend
    model: str | None
    """The name that the backend knows the model by."""
    lease: Lease
    reason: str
    considered: tuple[Alternative, ...] = ()
    """What was to be expected on each backend that it could have gone to; empty: nobody looked."""


@dataclass(slots=True, eq=False)
class Applicant:
    """One call that wants a place."""

    ask: Ask
    model: str | None
    surface: str
    occupies_slot: bool = True
    pinned: str | None = None
    """The only backend that can answer, e.g. the holder of a stored response."""
    tried: set[str] = field(default_factory=set)
    """Backends that already failed this call, or turned it away."""
    keeps_model: str | None = None
    """What answered the loop that it goes on with; another only where that is down."""
    min_context_tokens: int = 0
    """Backends known to have less were found too small."""
    granted: Callable[[Placed | RouterError], None] | None = None
    """Told the result when it comes later."""
    entry: Entry[Kind, Applicant] | None = None
    """Its place in the line; None: it does not wait."""


class Kind(NamedTuple):
    """What calls of one group have in common: where one finds no room, the others do not either."""

    call_class: CallClass
    occupies_slot: bool
    backends: tuple[str, ...]
    lanes: Sequence[Lane]


def kind_of(applicant: Applicant, candidates: Sequence[Candidate]) -> Kind:
    names = tuple([candidate.backend.name for candidate in candidates])
    ask = applicant.ask
    return Kind(ask.verdict.call_class, applicant.occupies_slot, names, ask.rules.lanes)


def may_serve(candidate: Candidate, applicant: Applicant) -> bool:
    """Whether it is in a lane of the call's class, and not down."""
    return candidate.backend.health.hopeful and candidate.backend.lane in applicant.ask.rules.lanes


def fits(candidate: Candidate, needed: int, at_least: int) -> bool:
    context = candidate.backend.context_tokens
    return context is None or (context >= needed and context > at_least)

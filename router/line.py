"""The router's line: who waits, in what order, until when. Decides; does no I/O and sets no timer.

Engines queue first come, first served, and a call that was sent cannot be taken back. So calls that find no room wait
here, where they can still be reordered, expire, or leave without touching a slot.

Calls of one class that could go to the same backends form a group, first come, first served. Whenever room may have
appeared, the heads of the groups are asked in the order of their rank; where a head finds no place its followers would
not either, so the cost of a change is one decision per group and per placed call, however long the line is.

    rank = position of the class (ttft 0, mixed 1, throughput 2) - time waited / ageing

lowest first: after one `ageing` of wait a call stands with fresh calls of the next higher class, so nothing starves.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from classifiers.api import CallClass
from policies.api import Ask, Dispatch, Policy, Reject, Wait
from router.errors import ModelLoading, NoBackend, Overloaded, RouterError, UnknownModel, WaitedTooLong
from router.fleet.backend import Backend
from router.fleet.fleet import Candidate, Fleet
from router.fleet.health import State
from router.fleet.ledger import Lease

_CLASS_POSITION = {CallClass.TTFT: 0, CallClass.MIXED: 1, CallClass.THROUGHPUT: 2}
_LISTED_MODELS = 20


@dataclass(frozen=True, slots=True)
class Placed:
    """A call has its place: the lease is open."""

    backend: Backend
    model: str | None
    """The name that the backend knows the model by."""
    lease: Lease
    reason: str


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
    min_context_tokens: int = 0
    """Backends known to have less were found too small."""
    granted: Callable[[Placed | RouterError], None] | None = None
    """Told the result when it comes later."""


_Group = deque[Applicant]


class Line:
    """Places calls on backends, or keeps them until room appears."""

    def __init__(
        self,
        fleet: Fleet,
        policy: Policy,
        *,
        max_waiting: int,
        ageing_s: float,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._fleet = fleet
        self.policy = policy
        self.max_waiting = max_waiting
        self.ageing_s = ageing_s
        self._chance = chance
        self._groups: dict[tuple[object, ...], _Group] = {}
        self._waiting = 0
        self._pumping = False
        self._pump_again = False
        self._pace = _Pace()

    def __repr__(self) -> str:
        per_class = ", ".join(f"{call_class} {count}" for call_class, count in self.depth().items())
        return f"<Line {per_class}>"

    def __len__(self) -> int:
        return self._waiting

    def depth(self) -> dict[CallClass, int]:
        counts = dict.fromkeys(CallClass, 0)
        for group in self._groups.values():
            counts[group[0].ask.verdict.call_class] += len(group)
        return counts

    # --- arriving and leaving

    def apply(self, applicant: Applicant, now_s: float) -> Placed | None:
        """A place at once, or None: the call now waits and `granted` will be told.

        Raises `UnknownModel`, `NoBackend`, or `Overloaded` where the line is full.
        """
        if not self._waiting:
            result = self._place(applicant, now_s)
            if isinstance(result, Placed):
                return result
        elif not self._candidates(applicant):
            raise self._nothing_serves(applicant)
        if self._waiting >= self.max_waiting:
            raise Overloaded(
                f"{self._waiting} calls wait already (line.max_waiting); try again later",
                retry_after_s=self.retry_after_s(),
            )
        self._enqueue(applicant)
        if self._waiting == 1:
            return None
        return self._pump_for(applicant, now_s)

    def leave(self, applicant: Applicant) -> bool:
        """Take a waiting call out, e.g. because its client left. False: it was not waiting (any more)."""
        for key, group in self._groups.items():
            if applicant in group:
                group.remove(applicant)
                self._waiting -= 1
                if not group:
                    del self._groups[key]
                return True
        return False

    def waited_too_long(self, applicant: Applicant) -> RouterError:
        """The error for a call whose `max_wait` has passed."""
        loading = self._still_loading(applicant)
        if loading is not None:
            return loading
        wait_s = applicant.ask.rules.max_wait_s
        return WaitedTooLong(
            f"no backend had room within {wait_s:g} s, the most that {applicant.ask.verdict.call_class} calls wait "
            f"(classes.{applicant.ask.verdict.call_class}.max_wait); try again later",
            retry_after_s=self.retry_after_s(),
        )

    def _still_loading(self, applicant: Applicant) -> ModelLoading | None:
        """The error for a call that waited for a model alone; None: there were others, only without room."""
        backends = [candidate.backend for candidate in self._candidates(applicant)]
        loading = [backend for backend in backends if backend.health.state is State.LOADING]
        if not loading or any(backend.health.state is State.UP for backend in backends):
            return None
        return still_loading(loading[0].health.said_loading, [backend.name for backend in loading])

    def dismiss(self, error: RouterError) -> None:
        """Tell all who wait that they will not get a place."""
        groups, self._groups, self._waiting = self._groups, {}, 0
        for group in groups.values():
            for applicant in group:
                _tell(applicant, error)

    def lease_ended(self, now_s: float) -> None:
        self._pace.ended(now_s)

    def retry_after_s(self) -> float:
        """When a call that is turned away now may find room: the line's length over the pace at which calls end."""
        return min(60.0, max(1.0, (self._waiting + 1) * self._pace.interval_s))

    # --- placing

    def pump(self, now_s: float) -> None:
        """Room may have appeared: offer it to those who wait, highest rank first."""
        if self._pumping:
            self._pump_again = True  # a call that was offered a place had just left; its room is offered anew
            return
        self._pumping = True
        try:
            while self._waiting:
                self._pump_again = False
                for key, _ in sorted(self._groups.items(), key=lambda item: self._rank(item[1][0], now_s)):
                    self._serve(key, now_s)
                if not self._pump_again:
                    return
        finally:
            self._pumping = False

    def _serve(self, key: tuple[object, ...], now_s: float) -> None:
        group = self._groups[key]
        while group:
            head = group[0]
            result: Placed | RouterError | None
            try:
                result = self._place(head, now_s)
            except RouterError as error:
                result = error
            if result is None:
                return
            group.popleft()
            self._waiting -= 1
            _tell(head, result)
        del self._groups[key]

    def _pump_for(self, applicant: Applicant, now_s: float) -> Placed | None:
        """Pump, and take the applicant's own result if there is one already."""
        results: list[Placed | RouterError] = []
        later, applicant.granted = applicant.granted, results.append
        self.pump(now_s)
        applicant.granted = later
        if not results:
            return None
        result = results[0]
        if isinstance(result, RouterError):
            raise result
        return result

    def _rank(self, head: Applicant, now_s: float) -> float:
        return _CLASS_POSITION[head.ask.verdict.call_class] - (now_s - head.ask.arrived_s) / self.ageing_s

    def _enqueue(self, applicant: Applicant) -> None:
        names = tuple(candidate.backend.name for candidate in self._candidates(applicant))
        key = (applicant.ask.verdict.call_class, names, applicant.occupies_slot)
        self._groups.setdefault(key, deque()).append(applicant)
        self._waiting += 1

    def _place(self, applicant: Applicant, now_s: float) -> Placed | None:
        """Decide and claim in one step. None: it has to wait."""
        candidates = self._candidates(applicant)
        views = self._fleet.views(candidates, now_s)
        if not views:
            error = self.why_not(applicant, candidates)
            if error is None:
                return None
            raise error
        if not applicant.occupies_slot:
            least = min(views, key=lambda view: view.in_flight)
            return self._claim(applicant, candidates, least.name, "no_slot_needed", now_s)
        match self.policy.decide(applicant.ask, views, now_s=now_s, chance=self._chance()):
            case Dispatch(backend, reason):
                return self._claim(applicant, candidates, backend, reason, now_s)
            case Wait():
                return None
            case Reject(reason, status, retry_after_s):
                kind = Overloaded if status == 429 else NoBackend
                raise kind(f"turned away by the policy: {reason}", retry_after_s=retry_after_s)

    def _claim(
        self, applicant: Applicant, candidates: Sequence[Candidate], name: str, reason: str, now_s: float
    ) -> Placed:
        chosen = next(candidate for candidate in candidates if candidate.backend.name == name)
        ask = applicant.ask
        lease = self._fleet.lease(chosen.backend, ask.verdict.call_class, now_s, slot=applicant.occupies_slot, ask=ask)
        return Placed(chosen.backend, chosen.model, lease, reason)

    def _candidates(self, applicant: Applicant) -> Sequence[Candidate]:
        """Backends that serve it, less those that failed it, and those that it fits if it fits any."""
        found: Sequence[Candidate] = self._fleet.candidates(applicant.model, applicant.surface)
        if applicant.pinned is not None:
            found = [candidate for candidate in found if candidate.backend.name == applicant.pinned]
        if applicant.tried:
            found = [candidate for candidate in found if candidate.backend.name not in applicant.tried]
        needed = applicant.ask.features.prompt_tokens
        if needed > 256 or applicant.min_context_tokens:
            # A known context size is a hint, not a reason to refuse unasked.
            least = applicant.min_context_tokens
            found = [one for one in found if _fits(one, needed, least) and may_serve(one, applicant)] or found
        return found

    # --- saying no

    def why_not(self, applicant: Applicant, candidates: Sequence[Candidate]) -> RouterError | None:
        """The error where none of `candidates` can take calls now; None: one of them may soon, so it waits."""
        if not candidates:
            return self._nothing_serves(applicant)
        if any(candidate.backend.health.hopeful for candidate in candidates):
            return None
        return self._nothing_up(candidates)

    def _nothing_serves(self, applicant: Applicant) -> RouterError:
        if applicant.tried:
            names = ", ".join(sorted(applicant.tried))
            return NoBackend(f"no backend could take the call (tried: {names}); try again later", retry_after_s=2.0)
        backends = self._fleet.backends()
        silent = [backend.name for backend in backends if not backend.known]
        if silent:
            return NoBackend(
                f"no backend that answers serves this call; not reached yet: {', '.join(silent)}", retry_after_s=2.0
            )
        if not any(applicant.surface in backend.engine.surfaces for backend in backends):
            kinds = ", ".join(sorted({backend.engine.name for backend in backends}))
            return UnknownModel(f"none of the backends ({kinds}) offers this API; call another path")
        known = list(self._fleet.model_names())
        listed = ", ".join(known[:_LISTED_MODELS]) + (", ..." if len(known) > _LISTED_MODELS else "")
        asked = (applicant.model or "")[:200]
        return UnknownModel(f"no backend serves the model {asked!r} here; known: {listed or 'none'}", param="model")

    def _nothing_up(self, candidates: Sequence[Candidate]) -> NoBackend:
        tried = "; ".join(f"{candidate.backend.name} is {candidate.backend.health.words}" for candidate in candidates)
        return NoBackend(f"no backend for this call is up: {tried}; try again later", retry_after_s=2.0)


class _Pace:
    """Mean time between the ends of calls, exponentially weighted over about the last ten."""

    _WEIGHT = 0.1

    def __init__(self) -> None:
        self.interval_s = 1.0
        self._last_s: float | None = None

    def ended(self, now_s: float) -> None:
        if self._last_s is not None:
            self.interval_s += self._WEIGHT * (min(60.0, now_s - self._last_s) - self.interval_s)
        self._last_s = now_s


def still_loading(said: bytes, names: Sequence[str]) -> ModelLoading:
    """The error for a call that no model was ready for; `said`: see there."""
    why = f"Loading model: {', '.join(names)} did not have it in memory within classes.*.max_wait; try again later"
    return ModelLoading(why, said=said, retry_after_s=2.0)


def may_serve(candidate: Candidate, applicant: Applicant) -> bool:
    """Whether it is in a lane of the call's class, and not down."""
    return candidate.backend.health.hopeful and candidate.backend.lane in applicant.ask.rules.lanes


def _fits(candidate: Candidate, needed: int, at_least: int) -> bool:
    context = candidate.backend.context_tokens
    return context is None or (context >= needed and context > at_least)


def _tell(applicant: Applicant, result: Placed | RouterError) -> None:
    if applicant.granted is not None:
        applicant.granted(result)

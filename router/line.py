"""The router's line: who waits, in what order, until when. Decides; does no I/O and sets no timer.

Engines queue first come, first served, and a call that was sent cannot be taken back. So calls that find no room wait
here, where they can still be reordered, expire, or leave without touching a slot.

Whenever room may have appeared it is offered to the first few of each group of alike calls (see `router.waiting`), in
this order: those who have waited for a whole `ageing`; then who can still keep a promise, ttft before mixed; then those
of these two classes who cannot any more; then throughput, in the same way. So the cost of a change is a few decisions
per group and one per placed call, however long the line is. A policy that makes a call wait may say when to ask again
though nothing happens; `on_look` is told the soonest such time.

Who is turned away, and only these: newcomers to a full line, unless somebody of a less urgent class waits there, of
whom the last one goes instead; and newcomers who would certainly wait for longer than their class may.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from math import inf
from typing import Final

import structlog

from classifiers.api import CallClass
from policies.api import Ask, Decision, Dispatch, Policy, Reject, View, Wait
from policies.outlook import lengths
from policies.urgency import urgency
from router.applicant import Applicant, Kind, Placed, fits, kind_of, may_serve
from router.errors import NoBackend, Overloaded, PolicyFailed, RouterError
from router.fleet.fleet import Candidate, Fleet
from router.observe.facts import Alternative
from router.refusals import nothing_serves, nothing_up, waited_too_long
from router.remaining import remaining
from router.turnover import Turnover
from router.waiting import Entry, Group, Shares

log = structlog.get_logger("twolane.line")

_CLASS_POSITION = {CallClass.TTFT: 0, CallClass.MIXED: 1, CallClass.THROUGHPUT: 2}
_PARTS: Final = ((0, False), (1, False), (0, True), (1, True), (2, False), (2, True))
"""Position of the class, and whether it is too late for the promise: the order in which room is offered."""
_LOOKS: Final = 3
"""Calls of one part of a group that are asked in vain before the rest is taken not to fit either."""
_LOOK_AGAIN_S: Final = 0.05
"""A group is not asked again within this time for a newcomer's sake: nothing can have changed that nobody told."""

_Group = Group[Kind, Applicant]
_Entry = Entry[Kind, Applicant]


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
        self.on_look: Callable[[float], None] = lambda at_s: None
        """Told when `pump` is to be called at the latest, though nothing happens."""
        self.witness: Callable[[Ask, Sequence[View], float], tuple[Alternative, ...]] | None = None
        """Told of decisions while somebody looks; what it makes of one goes along with the call."""
        self.turnover = Turnover()
        self._chance = chance
        self._groups: dict[Kind, _Group] = {}
        self._shares = {call_class: Shares() for call_class in CallClass}
        self._order = count()
        self._waiting = 0
        self._pumping = False
        self._pump_again = False
        self._again_s = inf
        """When the policy wants to be asked again."""

    def __repr__(self) -> str:
        per_class = ", ".join(f"{call_class} {count}" for call_class, count in self.depth().items())
        return f"<Line {per_class}>"

    def __len__(self) -> int:
        return self._waiting

    def depth(self) -> dict[CallClass, int]:
        counts = dict.fromkeys(CallClass, 0)
        for call_class, position in _CLASS_POSITION.items():
            counts[call_class] = sum([len(group) for group in self._groups.values() if group.place == position])
        return counts

    def expected_wait_s(self, call_class: CallClass) -> float:
        """How long one more call of the class would wait at the pace of late, if none more urgent came; 0 where nobody
        waits.
        """
        return self.turnover.seconds(self._ahead(call_class))

    def _ahead(self, call_class: CallClass, of: Sequence[str] | None = None) -> int:
        """Calls that are offered room before one more of the class. `of`: those who wait for one of these backends."""
        position, names = _CLASS_POSITION[call_class], None if of is None else set(of)
        return sum(
            [
                len(group)
                for kind, group in self._groups.items()
                if group.place <= position and (names is None or not names.isdisjoint(kind.backends))
            ]
        )

    # --- arriving and leaving

    def apply(self, applicant: Applicant, now_s: float) -> Placed | None:
        """A place at once, or None: the call now waits and `granted` will be told.

        Raises `UnknownModel`, `NoBackend`, or `Overloaded` where the line is full.
        """
        candidates = self._candidates(applicant)
        self._fleet.demand.came(applicant.ask, now_s)
        kind = kind_of(applicant, candidates)
        group = self._groups.get(kind)
        if group is None:
            result = self._place(applicant, candidates, now_s)
            if isinstance(result, Placed):
                return result
        elif not candidates:
            raise nothing_serves(self._fleet, applicant.model, applicant.surface, applicant.tried)
        self._admit(applicant.ask, kind)
        group = self._enqueue(applicant, kind, candidates, now_s)
        if len(group) > 1 and now_s - group.asked_s >= _LOOK_AGAIN_S:
            return self._pump_for(applicant, now_s)
        self._tell_look()
        return None

    def leave(self, applicant: Applicant) -> bool:
        """Take a waiting call out, e.g. because its client left. False: it was not waiting (any more)."""
        entry = applicant.entry
        if entry is None or entry.group is None:
            return False
        self._remove(entry)
        self._shares[applicant.ask.verdict.call_class].give_back(applicant.ask.client, entry.tokens)
        return True

    def waited_too_long(self, applicant: Applicant) -> RouterError:
        """The error for a call whose `max_wait` has passed."""
        retry_after_s = self.retry_after_s(applicant.ask.verdict.call_class)
        return waited_too_long(applicant.ask, self._candidates(applicant), retry_after_s)

    def dismiss(self, error: RouterError) -> None:
        """Tell all who wait that they will not get a place."""
        for group in tuple(self._groups.values()):
            while (entry := group.oldest()) is not None:
                self._remove(entry)
                _tell(entry.who, error)

    def slot_ended(self, now_s: float) -> None:
        """A call that had a slot is over."""
        if self._waiting:
            self.turnover.ended(now_s)
        else:
            self.turnover.idle()

    def retry_after_s(self, call_class: CallClass) -> float:
        """When a call that is turned away now may find room: the time that those before it are likely to need."""
        return min(300.0, max(1.0, self.expected_wait_s(call_class)))

    # --- placing

    def pump(self, now_s: float) -> None:
        """Room may have appeared: offer it to those who wait, in the order at the head of this module."""
        if self._pumping:
            self._pump_again = True  # a call that was offered a place had just left; its room is offered anew
            return
        self._pumping = True
        try:
            while self._waiting:
                self._pump_again = False
                self._again_s = inf
                self._offer(now_s)
                if not self._pump_again:
                    break
        finally:
            self._pumping = False
        self._tell_look()

    def _offer(self, now_s: float) -> None:
        groups = tuple(self._groups.values())
        for entry in self._aged(groups, now_s):
            self._takes(entry, now_s)
        for place, late in _PARTS:
            for group in groups:
                if group.place == place and len(group):
                    group.asked_s = now_s
                    group.offer(late=late, looks=_LOOKS, now_s=now_s, takes=lambda entry: self._takes(entry, now_s))

    def _aged(self, groups: Sequence[_Group], now_s: float) -> Iterator[_Entry]:
        """Those who have waited for a whole `ageing`, the oldest first, until one in each group finds no place."""
        stuck: set[int] = set()
        while True:
            oldest = [entry for group in groups if id(group) not in stuck and (entry := group.oldest()) is not None]
            first = min(oldest, key=lambda entry: entry.aged_s, default=None)
            if first is None or now_s < first.aged_s:
                return
            group = first.group
            yield first
            if first.group is not None:
                stuck.add(id(group))

    def _takes(self, entry: _Entry, now_s: float) -> bool:
        """Offer room to one who waits. True: it has its place, or will not get one."""
        applicant = entry.who
        result: Placed | RouterError | None
        try:
            result = self._place(applicant, self._candidates(applicant), now_s)
        except RouterError as error:
            result = error.with_traceback(None)  # else it keeps this frame, which keeps it
        if result is None:
            return False
        self._shares[applicant.ask.verdict.call_class].served(entry.start_tokens)
        self._remove(entry)
        _tell(applicant, result)
        return True

    def _pump_for(self, applicant: Applicant, now_s: float) -> Placed | None:
        """Pump, and take the applicant's own result if there is one already."""
        results: list[Placed | RouterError] = []
        later, applicant.granted = applicant.granted, results.append
        self.pump(now_s)
        applicant.granted = later
        if not results:
            return None
        result = results.pop()
        if isinstance(result, Placed):
            return result
        try:
            raise result
        finally:
            del result  # it keeps this frame, which would keep it until the collector comes

    def _tell_look(self) -> None:
        if self._waiting and self._again_s < inf:
            self.on_look(self._again_s)

    def _place(self, applicant: Applicant, candidates: Sequence[Candidate], now_s: float) -> Placed | None:
        """Decide and claim in one step. None: it has to wait."""
        views = self._fleet.views(candidates, now_s)
        if not views:
            error = self.why_not(applicant, candidates)
            if error is None:
                return None
            try:
                raise error
            finally:
                del error  # it keeps this frame, which would keep it until the collector comes
        if not applicant.occupies_slot:
            least = min(views, key=lambda view: view.in_flight)
            return self._claim(applicant, candidates, least.name, "no_slot_needed", now_s)
        match self._decide(applicant.ask, views, now_s):
            case Dispatch(backend, reason):
                considered = () if self.witness is None else self.witness(applicant.ask, views, now_s)
                return self._claim(applicant, candidates, backend, reason, now_s, considered)
            case Wait(_, again_s):
                self._again_s = min(self._again_s, again_s)
                return None
            case Reject(reason, status, retry_after_s):
                kind = Overloaded if status == 429 else NoBackend
                raise kind(f"turned away by the policy: {reason}", retry_after_s=retry_after_s)

    def _decide(self, ask: Ask, views: Sequence[View], now_s: float) -> Decision:
        """Raises `PolicyFailed`: a policy may be anybody's, and what it makes of one call must not harm another."""
        try:
            return self.policy.decide(ask, views, now_s=now_s, chance=self._chance())
        except Exception as error:
            log.error("policy_failed", policy=type(self.policy).__name__, exc_info=error)
            raise PolicyFailed("the router's policy failed on this call (policy.use); its log has the error") from error

    def _claim(
        self,
        applicant: Applicant,
        candidates: Sequence[Candidate],
        name: str,
        reason: str,
        now_s: float,
        considered: tuple[Alternative, ...] = (),
    ) -> Placed:
        chosen = next(candidate for candidate in candidates if candidate.backend.name == name)
        ask = applicant.ask
        lease = self._fleet.lease(chosen.backend, ask.verdict.call_class, now_s, slot=applicant.occupies_slot, ask=ask)
        return Placed(chosen.backend, chosen.model, lease, reason, considered)

    def _candidates(self, applicant: Applicant) -> Sequence[Candidate]:
        """Backends that serve it, less those that failed it, and those that it fits if it fits any."""
        found: Sequence[Candidate] = self._fleet.candidates(applicant.model, applicant.surface)
        found = remaining(found, applicant.pinned, applicant.tried, applicant.keeps_model)
        needed = applicant.ask.features.prompt_tokens
        if needed > 256 or applicant.min_context_tokens:
            # A known context size is a hint, not a reason to refuse unasked.
            least = applicant.min_context_tokens
            if not all([fits(one, needed, least) for one in found]):
                found = [one for one in found if fits(one, needed, least) and may_serve(one, applicant)] or found
        return found

    # --- the line

    def _admit(self, ask: Ask, kind: Kind) -> None:
        """Raises `Overloaded` where one more cannot wait, or would certainly wait in vain."""
        call_class = ask.verdict.call_class
        # Ends of calls elsewhere count as well, so it is less than they will need, and no more is certain.
        wait_s = self.turnover.seconds(self._ahead(call_class, kind.backends))
        if self.turnover.certain and wait_s > 2.0 * ask.rules.max_wait_s:
            raise Overloaded(
                f"those who wait already need about {wait_s:.0f} s, and {call_class} calls wait for at most "
                f"{ask.rules.max_wait_s:g} s (classes.{call_class}.max_wait); try again later",
                retry_after_s=self.retry_after_s(call_class),
            )
        if self._waiting < self.max_waiting:
            return
        below = [group for group in self._groups.values() if group.place > _CLASS_POSITION[call_class]]
        last = max(below, key=lambda group: group.place).youngest() if below else None
        if last is None:
            raise self._full(call_class)
        self._remove(last)
        _tell(last.who, self._full(call_class))

    def _full(self, call_class: CallClass) -> Overloaded:
        return Overloaded(
            f"{self.max_waiting} calls wait already (line.max_waiting); try again later",
            retry_after_s=self.retry_after_s(call_class),
        )

    def _enqueue(self, applicant: Applicant, kind: Kind, candidates: Sequence[Candidate], now_s: float) -> _Group:
        ask = applicant.ask
        group = self._groups.get(kind)
        if group is None:
            group = self._groups[kind] = Group(kind, _CLASS_POSITION[ask.verdict.call_class])
            group.asked_s = now_s
        views = self._fleet.views(candidates, now_s)
        aged_s = ask.arrived_s + min(self.ageing_s, ask.rules.ageing_s)
        hoped_s, latest_s, work_s = urgency(ask, views, aged_s) if views else (aged_s, aged_s, 0.0)
        entry = Entry(
            applicant,
            group,
            aged_s=aged_s,
            hoped_s=hoped_s,
            latest_s=latest_s,
            work_s=work_s,
            order=next(self._order),
        )
        entry.tokens = ask.features.prompt_tokens + lengths(ask).p50_tokens
        entry.start_tokens, entry.lead_s = self._shares[ask.verdict.call_class].take(ask.client, entry.tokens)
        applicant.entry = entry
        group.add(entry)
        self._waiting += 1
        return group

    def _remove(self, entry: _Entry) -> None:
        group = entry.group
        assert group is not None
        group.remove(entry)
        entry.who.entry = None
        self._waiting -= 1
        if not len(group):
            del self._groups[group.key]

    # --- saying no

    def why_not(self, applicant: Applicant, candidates: Sequence[Candidate]) -> RouterError | None:
        """The error where none of `candidates` can take calls now; None: one of them may soon, so it waits."""
        if not candidates:
            return nothing_serves(self._fleet, applicant.model, applicant.surface, applicant.tried)
        if any(candidate.backend.health.hopeful for candidate in candidates):
            return None
        return nothing_up(candidates)


def _tell(applicant: Applicant, result: Placed | RouterError) -> None:
    if applicant.granted is not None:
        applicant.granted(result)

"""What is known of a call when it has ended. Observers are told this and ask nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from classifiers.api import Features, Verdict
from classifiers.lengths import Lengths
from policies.api import ClassRules
from router.models import Seen
from router.observe.foretold import Predicted
from router.observe.gaps import Flow
from router.observe.trace_context import Trace

_WRONG_CALLS = frozenset({"refused", "denied", "limited", "backend_4xx"})
"""Outcomes of calls to which nobody owed an answer."""
MISSABLE: Final = ("ttft", "tpot", "complete", "answer")
"""What a call may miss: one of its times, or to be answered at all."""


class CallFacts(NamedTuple):
    """One ended call. Instants are differences to its arrival; None: that point was never reached.

    A named tuple since one is made for each call, and that takes a third of the time of a frozen dataclass.
    """

    request_id: str
    surface: str
    call_class: str
    """`none`: it was refused, or answered by the router itself, before it had one."""
    source: str
    reason: str
    backend: str
    """Empty: it never got one."""
    model: str
    stream: bool
    outcome: str
    """completed, refused (the call was wrong), denied (no such key), limited (its key has used up what it may use),
    rejected (no place), client_gone, backend_4xx, backend_busy, backend_error, backend_unreachable, shutdown or
    router_error."""
    status: int
    decide_s: float
    """Spent reading, classifying and deciding."""
    queue_s: float
    """Spent in the router's line."""
    complete_s: float
    ttft_s: float | None = None
    tpot_s: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    retries: int = 0
    key: str = ""
    """Name of the client's key; empty: none was needed, or it was wrong."""
    stalls: int = 0
    """How often the relay waited for a client that did not read what there was."""
    lane: str = ""
    """Of the backend, as it was then."""
    connect_s: float | None = None
    """Spent on a new connection to the backend; 0: one was kept."""
    first_byte_s: float | None = None
    """Until the head of the backend's answer."""
    flow: Flow | None = None
    """How steadily the tokens came; None: not a stream, or fewer than two pieces."""
    trace: Trace | None = None
    """Where it stands in the trace that it is part of; None: in none."""
    predicted: Predicted | None = None
    """What it was expected to see when it was sent; None: it was not, or took no slot."""

    @property
    def trace_id(self) -> str:
        """Empty: it is part of no trace."""
        return self.trace.trace_id if self.trace is not None else ""

    @property
    def left(self) -> str:
        """When the client left: `before_first_token` of a stream, `before_answer` where none was asked for,
        `during_answer`; empty: it did not."""
        if self.outcome != "client_gone":
            return ""
        if self.ttft_s is not None:
            return "during_answer"
        return "before_first_token" if self.stream else "before_answer"


class Server(NamedTuple):
    """What was known of the backend that got a call."""

    engine: str
    slots: int | None
    """Calls that it works on at once, as it said itself; None: it has no such number."""
    cap: int | None
    """Most of our calls there at once; None: no limit known."""
    context_tokens: int | None


class Alternative(NamedTuple):
    """What a call was expected to see on one backend when it was sent: medians, from then on."""

    backend: str
    first_s: float
    tpot_s: float
    whole_s: float
    keeps_0_1: float
    """How likely it would have kept its promise."""


@dataclass(slots=True)
class JudgedCall:
    """A generating call, and what was decided of it on which grounds. Not changed, but for what is remembered.

    Kept apart from `CallFacts`, which may be logged as they are: features hold headers, `client` may be an address.
    """

    features: Features
    verdict: Verdict
    rules: ClassRules
    """What its class was promised."""
    placement: str
    """Why it went where it went, in the policy's words; empty: it got no place."""
    client: str
    """Whose call it is: the name of a key, or an address, and the program."""
    lengths: Lengths | None = None
    """How long its answer was expected to be; None: it has no text."""
    affinity_key: str = ""
    """What calls of one conversation have in common; empty: nothing known."""
    server: Server | None = None
    """None: it got no place."""
    considered: tuple[Alternative, ...] = ()
    """The backends that it could have gone to; empty: nobody looked."""

    seen: Seen | None = None
    """The call as a model was told of it; None: nobody looked at its text for that."""
    recalled: bool = False
    """The verdict is that of calls like it."""
    _told: tuple[CallFacts, tuple[str, ...] | None] | None = field(default=None, init=False, repr=False, compare=False)
    """What was missed: several observers ask."""

    def kept(self, facts: CallFacts) -> bool | None:
        """Whether what was promised was kept. None: nothing was promised that can be told of this call."""
        missed = self.missed(facts)
        return None if missed is None else not missed

    def missed(self, facts: CallFacts) -> tuple[str, ...] | None:
        """Which of its promises were not kept, among `MISSABLE`. None: nothing was promised that can be told.

        A client that leaves before a promise was due says nothing about it.
        """
        told = self._told
        if told is None or told[0] is not facts:
            told = self._told = facts, self._missed(facts)
        return told[1]

    def _missed(self, facts: CallFacts) -> tuple[str, ...] | None:
        rules = self.rules
        first_s, per_token_s, complete_s = rules.slo_ttft_s, rules.slo_tpot_s, rules.slo_complete_s
        if not facts.stream:
            first_s = None
        if first_s is None and per_token_s is None and complete_s is None:
            return None
        if facts.outcome == "completed":
            return _missed(
                ("ttft", first_s, facts.ttft_s),
                ("tpot", per_token_s, facts.tpot_s),
                ("complete", complete_s, facts.complete_s),
            )
        if not facts.left:
            return None if facts.outcome in _WRONG_CALLS else ("answer",)
        so_far = _missed(
            ("ttft", first_s, facts.complete_s if facts.ttft_s is None else facts.ttft_s),
            ("tpot", per_token_s, facts.tpot_s),
            ("complete", complete_s, facts.complete_s),
        )
        return so_far or None


def _missed(*promises: tuple[str, float | None, float | None]) -> tuple[str, ...] | None:
    """What took longer (third) than was promised (second). None: nothing can be compared."""
    missed: tuple[str, ...] | None = None
    for name, limit_s, seconds in promises:
        if limit_s is not None and seconds is not None:
            if seconds > limit_s:
                missed = (*(missed or ()), name)
            elif missed is None:
                missed = ()
    return missed

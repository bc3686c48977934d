"""What came of calls, as figures: by class, by backend, and over all. Of a replay and of the log itself alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from classifiers.api import CallClass, Features
from policies.api import ClassRules, Lane
from router.observe.facts import CallFacts, JudgedCall
from router.replay.recorded import Recorded
from router.simulate.calls import Became

SHARES: Final = (0.5, 0.95, 0.99)
_NO_FEATURES: Final = Features(surface="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One call and its end. Times in seconds since its arrival; None: that point was never reached."""

    at_s: float
    call_class: CallClass
    backend: str
    outcome: str
    status: int
    waited_s: float
    ttft_s: float | None
    """Of streams alone: nobody sees the first token of another answer."""
    tpot_s: float | None
    complete_s: float
    output_tokens: int
    """Of whole answers; what a client got of an answer that it left, or that broke off, is 0."""
    kept: bool | None
    """Whether its promises were; None: nothing was promised that can be told of it."""
    spilled: bool
    """It was served by another lane than the one that its class prefers."""


Percentiles = Mapping[str, float | None]
"""`p50`, `p95`, `p99`; None: there was nothing to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of some calls."""

    calls: int
    judged: int
    """Calls of which it can be told whether promises were kept."""
    kept: int
    completed: int
    shed: int
    """Turned away with 429 or 503, at once or after they waited too long."""
    left: int
    """Their clients did not wait for the end."""
    failed: int
    spilled: int
    output_tokens: int
    kept_tokens: int
    seconds: float
    """From the first arrival to the last end."""
    ttft_s: Percentiles
    tpot_s: Percentiles
    complete_s: Percentiles
    waited_s: Percentiles
    longest_wait_s: float

    @property
    def share(self) -> float | None:
        return self.kept / self.judged if self.judged else None

    @property
    def goodput_per_s(self) -> float:
        return self.kept / self.seconds if self.seconds else 0.0

    @property
    def tokens_per_s(self) -> float:
        return self.output_tokens / self.seconds if self.seconds else 0.0

    @property
    def kept_tokens_per_s(self) -> float:
        """0 where no time went by: all calls were turned away at once."""
        return self.kept_tokens / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "judged": self.judged,
            "kept": self.kept,
            "share": self.share,
            "goodput_per_s": self.goodput_per_s,
            "completed": self.completed,
            "shed": self.shed,
            "left": self.left,
            "failed": self.failed,
            "spilled": self.spilled,
            "output_tokens": self.output_tokens,
            "tokens_per_s": self.tokens_per_s,
            "kept_tokens_per_s": self.kept_tokens_per_s,
            "ttft_s": dict(self.ttft_s),
            "tpot_s": dict(self.tpot_s),
            "complete_s": dict(self.complete_s),
            "waited_s": {**self.waited_s, "max": self.longest_wait_s},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What one policy gave, or the log: all calls, and those of each class and backend."""

    total: Figures
    classes: Mapping[CallClass, Figures]
    backends: Mapping[str, Figures]

    @property
    def mean_share(self) -> float | None:
        """Mean of the classes' shares, so that a class with few calls counts as much as one with many."""
        shares = [each.share for each in self.classes.values() if each.share is not None]
        return fmean(shares) if shares else None

    def as_json(self) -> dict[str, Any]:
        return {
            "mean_share": self.mean_share,
            "total": self.total.as_json(),
            "classes": {name.value: each.as_json() for name, each in self.classes.items()},
            "backends": {name: each.as_json() for name, each in self.backends.items()},
        }


def column(ended: Sequence[Ended]) -> Column:
    first_s = min((each.at_s for each in ended), default=0.0)
    seconds = max((each.at_s + each.complete_s for each in ended), default=0.0) - first_s
    classes = {name: [each for each in ended if each.call_class is name] for name in CallClass}
    backends = {name: [each for each in ended if each.backend == name] for name in _names(ended)}
    return Column(
        total=figures(ended, seconds),
        classes={name: figures(some, seconds) for name, some in classes.items() if some},
        backends={name: figures(some, seconds) for name, some in backends.items()},
    )


def _names(ended: Sequence[Ended]) -> list[str]:
    return sorted({each.backend for each in ended} - {""})


def figures(ended: Sequence[Ended], seconds: float) -> Figures:
    whole = [each for each in ended if each.outcome == "completed"]
    judged = [each for each in ended if each.kept is not None]
    placed = [each for each in ended if each.backend]
    return Figures(
        calls=len(ended),
        judged=len(judged),
        kept=sum(each.kept is True for each in judged),
        completed=len(whole),
        shed=sum(each.outcome == "rejected" for each in ended),
        left=sum(each.outcome == "client_gone" for each in ended),
        failed=sum(each.outcome not in ("completed", "rejected", "client_gone") for each in ended),
        spilled=sum(each.spilled for each in placed),
        output_tokens=sum(each.output_tokens for each in ended),
        kept_tokens=sum(each.output_tokens for each in judged if each.kept),
        seconds=seconds,
        ttft_s=_percentiles(each.ttft_s for each in ended),
        tpot_s=_percentiles(each.tpot_s for each in whole),
        complete_s=_percentiles(each.complete_s for each in whole),
        waited_s=_percentiles(each.waited_s for each in placed),
        longest_wait_s=max((each.waited_s for each in ended), default=0.0),
    )


def _percentiles(values: Iterable[float | None]) -> Percentiles:
    known = sorted(value for value in values if value is not None)
    if not known:
        return {f"p{100 * share:.0f}": None for share in SHARES}
    return {f"p{100 * share:.0f}": known[min(len(known) - 1, int(share * len(known)))] for share in SHARES}


# --- where ends come from


class Judge:
    """Holds ends against what was promised to their class, in one way for all columns."""

    def __init__(self, promises: Mapping[CallClass, ClassRules]) -> None:
        self._promises = promises

    def preferred(self, call_class: CallClass) -> Lane:
        """The lane that calls of a class are to go to as long as there is room."""
        return self._promises[call_class].lanes[0]

    def kept(self, call: Recorded, facts: CallFacts) -> bool | None:
        rules = self._promises[call.verdict.call_class]
        judged = JudgedCall(
            features=_NO_FEATURES, verdict=call.verdict, rules=rules, placement="", client="", lengths=call.lengths
        )
        return judged.kept(facts)


def as_logged(calls: Iterable[Recorded], judge: Judge, lanes: Mapping[str, Lane]) -> list[Ended]:
    """`lanes` of the backends, by name, for what counts as a spill."""
    found = []
    for call in calls:
        logged = call.logged
        if logged is None:
            continue
        facts = _facts(
            call,
            outcome=logged.outcome,
            status=logged.status,
            ttft_s=logged.ttft_s,
            tpot_s=logged.tpot_s,
            complete_s=logged.complete_s,
        )
        found.append(
            Ended(
                at_s=call.at_s,
                call_class=call.verdict.call_class,
                backend=logged.backend,
                outcome=logged.outcome,
                status=logged.status,
                waited_s=logged.waited_s if logged.backend else logged.complete_s,
                ttft_s=logged.ttft_s if call.stream else None,
                tpot_s=logged.tpot_s,
                complete_s=logged.complete_s,
                output_tokens=call.output_tokens if logged.outcome == "completed" else 0,
                kept=judge.kept(call, facts),
                spilled=_spilled(call.verdict.call_class, lanes.get(logged.backend), judge),
            )
        )
    return found


def as_simulated(
    calls: Sequence[Recorded], became: Sequence[Became], judge: Judge, lanes: Mapping[str, Lane]
) -> list[Ended]:
    return [_simulated(call, each, judge, lanes) for call, each in zip(calls, became, strict=True)]


def _simulated(call: Recorded, became: Became, judge: Judge, lanes: Mapping[str, Lane]) -> Ended:
    at_s = call.at_s
    outcome = {200: "completed", 499: "client_gone", 400: "backend_4xx"}.get(became.status, "rejected")
    complete_s = (became.ended_s if became.ended_s is not None else at_s) - at_s
    ttft_s = became.first_s - at_s if call.stream and became.first_s is not None else None
    whole = outcome == "completed"
    tpot_s = None
    if whole and ttft_s is not None and call.output_tokens > 1:
        tpot_s = (complete_s - ttft_s) / (call.output_tokens - 1)
    facts = _facts(call, outcome=outcome, status=became.status, ttft_s=ttft_s, tpot_s=tpot_s, complete_s=complete_s)
    return Ended(
        at_s=at_s,
        call_class=call.verdict.call_class,
        backend=became.backend,
        outcome=outcome,
        status=became.status,
        waited_s=(became.placed_s - at_s) if became.placed_s is not None else complete_s,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        complete_s=complete_s,
        output_tokens=call.output_tokens if whole else 0,
        kept=judge.kept(call, facts),
        spilled=_spilled(call.verdict.call_class, lanes.get(became.backend), judge),
    )


def _spilled(call_class: CallClass, lane: Lane | None, judge: Judge) -> bool:
    return lane is not None and lane is not judge.preferred(call_class)


def _facts(
    call: Recorded, *, outcome: str, status: int, ttft_s: float | None, tpot_s: float | None, complete_s: float
) -> CallFacts:
    return CallFacts(
        request_id="",
        surface=call.surface,
        call_class=call.verdict.call_class,
        source=call.verdict.source,
        reason="",
        backend="",
        model="",
        stream=call.stream,
        outcome=outcome,
        status=status,
        decide_s=0.0,
        queue_s=0.0,
        complete_s=complete_s,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
    )

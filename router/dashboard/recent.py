"""The calls that ended last: a tail to read, and times to draw distributions from. Bounded; never any text.

What is kept of a call is what was measured and decided. Its features are let go of, since they hold headers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from classifiers.api import Verdict
from classifiers.lengths import Lengths
from router.observe.facts import Alternative, CallFacts, JudgedCall
from router.observe.foretold import Predicted
from router.observe.steps import Steps

TAIL: Final = 200
TIMES: Final = 500
"""Calls of each class from which distributions are drawn."""
_PER_DECADE: Final = 8
_WRONG: Final = frozenset({"completed", "client_gone", "refused", "denied", "limited", "backend_4xx"})
"""Outcomes for which the router and its backends are not to blame."""


def failed(facts: CallFacts) -> bool:
    """Whether a caller who was in the right and stayed got no whole answer."""
    return facts.outcome not in _WRONG


class Ended(NamedTuple):
    """One call of the tail."""

    number: int
    """Counts up from 1, so that a reader sees what it missed."""
    unix_s: float
    """When it ended."""
    facts: CallFacts
    verdict: Verdict
    placement: str
    missed: tuple[str, ...] | None
    """Which of its promises were not kept; None: nothing was promised that can be told."""
    lengths: Lengths | None
    """How long its answer was expected to be."""
    considered: tuple[Alternative, ...]

    def document(self) -> dict[str, Any]:
        """For people: what it was, where it went, why, and how long everything took."""
        facts, verdict, lengths = self.facts, self.verdict, self.lengths
        return {
            "number": self.number,
            "time_s": round(self.unix_s, 3),
            "id": facts.request_id,
            "class": facts.call_class,
            "source": facts.source,
            "confidence": round(verdict.confidence, 3),
            "reasons": verdict.reasons,
            "placement": self.placement,
            "backend": facts.backend,
            "model": facts.model,
            "key": facts.key,
            "surface": facts.surface,
            "stream": facts.stream,
            "outcome": facts.outcome,
            "status": facts.status,
            "queue_s": _rounded(facts.queue_s),
            "decide_s": _rounded(facts.decide_s),
            "ttft_s": _rounded(facts.ttft_s),
            "tpot_s": _rounded(facts.tpot_s),
            "complete_s": _rounded(facts.complete_s),
            "prompt_tokens": facts.prompt_tokens,
            "cached_tokens": facts.cached_tokens,
            "output_tokens": facts.output_tokens,
            "expected_tokens": None if lengths is None else (lengths.p50_tokens, lengths.p90_tokens),
            "retries": facts.retries,
            "missed": self.missed,
            "predicted": None if facts.predicted is None else _predicted(facts.predicted),
            "considered": [_alternative(each) for each in self.considered],
        }


class Recent:
    """Owner of the tail."""

    def __init__(self) -> None:
        self._tail: deque[Ended] = deque(maxlen=TAIL)
        self._times: dict[str, deque[tuple[float | None, float | None]]] = {}
        self._number = 0

    def add(self, facts: CallFacts, judged: JudgedCall, missed: tuple[str, ...] | None, unix_s: float) -> None:
        """A judged call has just ended."""
        self._number += 1
        verdict, lengths, considered = judged.verdict, judged.lengths, judged.considered
        self._tail.append(Ended(self._number, unix_s, facts, verdict, judged.placement, missed, lengths, considered))
        if facts.ttft_s is not None or facts.tpot_s is not None:
            times = self._times.get(facts.call_class)
            if times is None:
                times = self._times[facts.call_class] = deque(maxlen=TIMES)
            times.append((facts.ttft_s, facts.tpot_s))

    @property
    def last(self) -> int:
        """Number of the newest call; 0: there was none yet."""
        return self._number

    def after(self, number: int) -> list[dict[str, Any]]:
        """Those of the tail that came after this one, oldest first."""
        first = len(self._tail) - max(0, min(len(self._tail), self._number - number))
        return [each.document() for index, each in enumerate(self._tail) if index >= first]

    def all(self) -> Steps[list[dict[str, Any]]]:
        """The whole tail, as it is now."""
        found = []
        for each in tuple(self._tail):
            found.append(each.document())
            yield
        return found

    def distributions(self) -> Steps[dict[str, dict[str, Any]]]:
        """By class: how the times of its last calls are spread, in bins of equal width on a logarithmic axis."""
        found = {}
        for name, times in tuple(self._times.items()):
            ttft = histogram([ttft_s for ttft_s, _ in times if ttft_s is not None])
            found[str(name)] = {"ttft": ttft, "tpot": histogram([tpot_s for _, tpot_s in times if tpot_s is not None])}
            yield
        return found


def histogram(times_s: Sequence[float]) -> dict[str, Any]:
    """`edges_s`: upper ends of the bins; `counts`: values in each, the last one for what is beyond all edges."""
    counts = [0] * (len(EDGES_S) + 1)
    for value in times_s:
        counts[bisect_left(EDGES_S, value)] += 1
    ordered = sorted(times_s)
    shares = (50, 95, 99) if ordered else ()
    last = len(ordered) - 1
    points = {f"p{share}_s": _rounded(ordered[min(last, share * len(ordered) // 100)]) for share in shares}
    return {"counts": counts, "calls": len(ordered), **points}


EDGES_S: Final = tuple(round(10 ** (step / _PER_DECADE), 6) for step in range(-4 * _PER_DECADE, 2 * _PER_DECADE + 1))
"""From a tenth of a millisecond to a hundred seconds."""


def _predicted(predicted: Predicted) -> dict[str, float]:
    """From its arrival, as what was seen is."""
    return {name: round(value, 5) for name, value in predicted._asdict().items()}


def _alternative(each: Alternative) -> dict[str, Any]:
    return {
        "backend": each.backend,
        "predicted": {
            "ttft_s": round(each.first_s, 5),
            "tpot_s": round(each.tpot_s, 5),
            "complete_s": round(each.whole_s, 5),
            "keeps_promise_0_1": round(each.keeps_0_1, 3),
        },
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 5)

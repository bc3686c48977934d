"""Figures of a run: the share of calls that got what they were promised, by class, and how long things took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.goodput.send import Outcome
from bench.results import percentile
from classifiers.api import CallClass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFigures:
    """Of the calls of one class. Times in seconds, over the calls that were answered; None: none was."""

    calls: int
    kept: int
    ttft_p50_s: float | None
    ttft_p95_s: float | None
    complete_p50_s: float | None
    complete_p95_s: float | None
    tpot_p95_s: float | None

    @property
    def share(self) -> float:
        return self.kept / self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    classes: dict[CallClass, ClassFigures]
    batch_tokens_per_s: float
    """Tokens of complete answers of the class `throughput`, over the time until the last of them."""
    errors: dict[str, int]
    """What calls ended with that got no answer, and how many."""

    @property
    def mean_share(self) -> float:
        """Mean of the classes' shares, so that a class with few calls counts as much as one with many."""
        return sum(each.share for each in self.classes.values()) / len(self.classes)

    def as_json(self) -> dict[str, Any]:
        classes = {label.value: {**asdict(each), "share": each.share} for label, each in self.classes.items()}
        return {
            "mean_share": self.mean_share,
            "classes": classes,
            "batch_tokens_per_s": self.batch_tokens_per_s,
            "errors": self.errors,
        }


def judge(everybody: Sequence[Outcome]) -> Figures:
    """Of those who came through the router."""
    outcomes = [outcome for outcome in everybody if not outcome.call.direct]
    labels = [label for label in CallClass if any(outcome.call.label is label for outcome in outcomes)]
    return Figures(
        classes={label: _class([each for each in outcomes if each.call.label is label]) for label in labels},
        batch_tokens_per_s=_batch_rate([each for each in outcomes if each.call.label is CallClass.THROUGHPUT]),
        errors=dict(Counter(_error(outcome) for outcome in outcomes if not outcome.complete)),
    )


def _class(outcomes: Sequence[Outcome]) -> ClassFigures:
    answered = [outcome for outcome in outcomes if outcome.complete]
    first = [outcome.first_s for outcome in answered if outcome.first_s is not None]
    whole = [outcome.end_s for outcome in answered if outcome.end_s is not None]
    gaps = [outcome.tpot_s for outcome in answered if outcome.tpot_s is not None]
    return ClassFigures(
        calls=len(outcomes),
        kept=sum(outcome.kept for outcome in outcomes),
        ttft_p50_s=_at(first, 0.5),
        ttft_p95_s=_at(first, 0.95),
        complete_p50_s=_at(whole, 0.5),
        complete_p95_s=_at(whole, 0.95),
        tpot_p95_s=_at(gaps, 0.95),
    )


def _at(values: Sequence[float], share: float) -> float | None:
    return percentile(values, share) if values else None


def _batch_rate(outcomes: Sequence[Outcome]) -> float:
    ends = [(each.call.at_s + each.end_s, each) for each in outcomes if each.complete and each.end_s is not None]
    if not ends:
        return 0.0
    tokens = sum(each.call.asked.output_tokens for _, each in ends)
    return tokens / (max(end_s for end_s, _ in ends) - min(each.call.at_s for each in outcomes))


def _error(outcome: Outcome) -> str:
    if outcome.status is not None and outcome.status != 200:
        return str(outcome.status)
    return outcome.error or "unanswered"

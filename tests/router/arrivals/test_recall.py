"""When a verdict stands for the next calls that are alike, and when each call is judged."""

from __future__ import annotations

from typing import Any

import pytest

from classifiers.api import CallClass, Features, Source, Verdict
from classifiers.marks import Marks
from router.arrivals import Arrivals
from router.arrivals.recall import AGREED, KEPT_S, ONE_IN

JUDGE = object()


def verdict(call_class: CallClass = CallClass.THROUGHPUT, confidence: float = 0.95, **more: Any) -> Verdict:
    return Verdict(
        **{"call_class": call_class, "confidence": confidence, "source": Source.MODEL, "reasons": (), **more}
    )


class Calls:
    """One client that sends call after call."""

    def __init__(self) -> None:
        self.arrivals = Arrivals()
        self.now_s = 100.0
        self.judged = 0

    def send(self, says: Verdict, judge: object | None = JUDGE, head: int = 1, **features: Any) -> Verdict | None:
        """What was recalled; None: it was judged."""
        self.now_s += 0.1
        call = Features(
            **{
                "surface": "openai_chat",
                "turns": 2,
                "prompt_tokens": 500,
                "marks": Marks(head=head, tail=9),
                **features,
            }
        )
        presence = self.arrivals.arrive("someone", call, self.now_s, judge)
        if presence.verdict is None:
            self.judged += 1
            presence.judged(says, self.now_s)
        presence.ended(self.now_s)
        return presence.verdict


def flood(calls: Calls, says: Verdict, count: int, **features: Any) -> int:
    """How many of them were judged."""
    before = calls.judged
    for _ in range(count):
        calls.send(says, **features)
    return calls.judged - before


def test_of_a_flood_one_call_in_many_is_judged() -> None:
    calls = Calls()
    assert flood(calls, verdict(), AGREED) == AGREED
    assert flood(calls, verdict(), 10 * ONE_IN) == 10


def test_what_is_recalled_is_the_last_judgement() -> None:
    calls = Calls()
    says = verdict()
    flood(calls, says, AGREED)
    assert calls.send(verdict(CallClass.TTFT)) is says


@pytest.mark.parametrize("source", [Source.BUILTIN, Source.HEADER, Source.RULE])
def test_only_what_a_model_said_is_recalled(source: Source) -> None:
    assert flood(Calls(), verdict(source=source), 50) == 50


def test_a_judge_that_changes_its_mind_is_asked_each_time() -> None:
    calls = Calls()
    for _ in range(20):
        assert calls.send(verdict(CallClass.TTFT)) is None
        assert calls.send(verdict(CallClass.MIXED)) is None


@pytest.mark.parametrize(
    "other",
    [
        {"head": 2, "marks": Marks(head=2, tail=3)},
        {"stream": True},
        {"turns": 4},
        {"prompt_tokens": 5000},
        {"max_tokens": 7},
        {"tools": 1},
        {"last_role": "tool"},
        {"response_format": "json_object"},
        {"marks": Marks(head=1, tail=9, system=5)},
        {"marks": Marks(head=1, tail=9, fields=5)},
        {"headers": {"origin": "https://chat.example"}},
        {"headers": {"x-title": "nightly batch"}},
        {"headers": {"traceparent": "00-1-2-01"}},
    ],
    ids=str,
)
def test_calls_that_are_not_alike_are_judged(other: dict[str, Any]) -> None:
    calls = Calls()
    flood(calls, verdict(), AGREED + 2)
    assert calls.send(verdict(), **other) is None


def test_another_judge_is_asked_anew() -> None:
    calls = Calls()
    flood(calls, verdict(), AGREED + 2)
    assert calls.send(verdict(), judge=object()) is None


def test_without_a_judge_nothing_is_recalled() -> None:
    calls = Calls()
    flood(calls, verdict(), AGREED + 2)
    assert calls.send(verdict(), judge=None) is None


def test_after_a_pause_a_call_is_judged() -> None:
    calls = Calls()
    flood(calls, verdict(), AGREED + 1)
    calls.now_s += KEPT_S
    assert calls.send(verdict()) is None


def test_the_history_goes_on_while_verdicts_are_recalled() -> None:
    calls = Calls()
    flood(calls, verdict(), AGREED + 8)
    presence = calls.arrivals.arrive("someone", Features(surface="openai_chat", marks=Marks(head=1, tail=9)), 102.0)
    assert presence.arrival.calls == AGREED + 8
    assert presence.arrival.template_calls == AGREED + 8


def test_floods_beside_each_other_are_each_recalled() -> None:
    """As of a client that sends the same few instructions with different system texts."""
    calls = Calls()
    for _ in range(AGREED):
        for system in range(3):
            calls.send(verdict(), marks=Marks(head=7, tail=7, system=system))
    before = calls.judged
    for _ in range(ONE_IN - 1):
        for system in range(3):
            assert calls.send(verdict(), marks=Marks(head=7, tail=7, system=system)) is not None
    assert calls.judged == before

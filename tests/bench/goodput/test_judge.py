"""When a call got what it was promised, and what a run's figures are made of."""

from __future__ import annotations

from typing import Any

import pytest

from bench.goodput.judge import judge
from bench.goodput.send import Outcome
from bench.mixes.plan import PROMISES, Call, Client
from classifiers.api import CallClass

CLIENT = Client(name="x", address="127.0.0.1", user_agent="x", key="x")


def outcome(label: CallClass, *, stream: bool = True, tokens: int = 11, at_s: float = 0.0, **seen: Any) -> Outcome:
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "seed": tokens, "stream": stream}
    call = Call(at_s=at_s, client=CLIENT, body=body, label=label, promise=PROMISES[label])
    return Outcome(call, **{"status": 200, "tokens": tokens, **seen})


@pytest.mark.parametrize(
    ("seen", "kept"),
    [
        ({"first_s": 0.4, "last_s": 0.8, "end_s": 0.8}, True),
        ({"first_s": 0.6, "last_s": 0.8, "end_s": 0.8}, False),
        ({"first_s": 0.4, "last_s": 0.91, "end_s": 1.0}, False),
        ({"first_s": 0.4, "last_s": 0.8, "end_s": None}, False),
        ({"status": 503, "end_s": 0.1}, False),
        ({"first_s": 0.4, "last_s": 0.4, "tokens": 1, "end_s": 0.4}, True),
    ],
)
def test_who_reads_along_wants_the_first_token_soon_and_the_others_evenly(seen: dict[str, Any], kept: bool) -> None:
    assert outcome(CallClass.TTFT, **seen).kept is kept


def test_a_chat_that_is_not_streamed_has_its_first_token_with_the_last() -> None:
    assert outcome(CallClass.TTFT, stream=False, end_s=0.45).kept
    assert not outcome(CallClass.TTFT, stream=False, end_s=0.55).kept


@pytest.mark.parametrize(("label", "limit_s"), [(CallClass.MIXED, 6.0), (CallClass.THROUGHPUT, 60.0)])
def test_hops_and_rows_want_their_whole_answer_in_time(label: CallClass, limit_s: float) -> None:
    assert outcome(label, end_s=limit_s - 0.01).kept
    assert not outcome(label, end_s=limit_s + 0.01).kept


def test_figures_are_shares_by_class_and_their_mean_counts_each_class_alike() -> None:
    good = [outcome(CallClass.THROUGHPUT, end_s=10.0, tokens=100, at_s=1.0) for _ in range(9)]
    bad = [outcome(CallClass.THROUGHPUT, status=503, end_s=0.1), outcome(CallClass.MIXED, end_s=7.0)]
    lost = [outcome(CallClass.TTFT, status=None, error="client left")]
    figures = judge([*good, *bad, *lost])
    assert figures.classes[CallClass.THROUGHPUT].share == 0.9
    assert figures.mean_share == pytest.approx((0.9 + 0.0 + 0.0) / 3)
    assert figures.errors == {"503": 1, "client left": 1}
    assert figures.batch_tokens_per_s == pytest.approx(900 / 11.0)
    assert figures.classes[CallClass.THROUGHPUT].complete_p95_s == 10.0
    assert figures.classes[CallClass.TTFT].ttft_p50_s is None
    assert figures.as_json()["classes"]["throughput"]["share"] == 0.9

"""Hops that are found, hops that are not, and chats that are taken for hops."""

from __future__ import annotations

from bench.judgement.data import Row
from bench.judgement.sessions import Figures, hops, is_read, last_hops, report
from bench.judgement.virtual import Replayed
from classifiers.api import CallClass, Features
from classifiers.arrival import Arrival

MIXED, TTFT = CallClass.MIXED, CallClass.TTFT


def call(
    label: CallClass, position: int, arrival: Arrival, *, stream: bool = False, kind: str = "", session: bool = False
) -> Replayed:
    features = Features(surface="openai_chat", stream=stream, arrival=arrival)
    row = Row(features=features, label=label, source=f"some_{label}", group="g", kind=kind)
    return Replayed(row=row, position=position, client=1, at_s=0.0, in_session=session)


FIRST = Arrival()
HOP = Arrival(calls=1, continues=True, hops=1)
CALLS = [
    call(MIXED, 0, FIRST, kind="tool_hop", session=True),
    call(MIXED, 1, HOP, kind="tool_hop", session=True),
    call(MIXED, 2, HOP, kind="final", stream=True, session=True),
    call(MIXED, 1, HOP, kind="final"),
    call(TTFT, 0, FIRST),
    call(TTFT, 1, Arrival(calls=1)),
    call(TTFT, 2, HOP),
]


def test_hops_count_from_the_second_call_of_a_session_on() -> None:
    assert hops(CALLS, [MIXED] * 7) == Figures(found=2, there=2, wrong=3)
    assert hops(CALLS, [MIXED] * 7, recognised=True) == Figures(found=2, there=2, wrong=1)
    missed = hops(CALLS, [MIXED, TTFT, MIXED, TTFT, TTFT, TTFT, TTFT])
    assert (missed.precision, missed.recall) == (1.0, 0.5)


def test_the_last_hop_is_told_by_a_stream_after_calls_that_were_none() -> None:
    assert last_hops(CALLS) == Figures(found=1, there=1, wrong=0)
    assert not is_read(call(MIXED, 1, FIRST, stream=True).row.features)
    all_stream = Arrival(calls=2, continues=True, hops=2, streamed_hops=2)
    assert not is_read(call(MIXED, 1, all_stream, stream=True).row.features)
    assert is_read(call(MIXED, 1, Arrival(calls=2, continues=True, tools_dropped=True)).row.features)


def test_the_report_names_what_was_taken_for_a_hop() -> None:
    text = "\n".join(report(CALLS, [MIXED] * 7))
    assert "recall 100.0%" in text
    assert "some_ttft 3" in text

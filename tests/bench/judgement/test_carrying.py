"""The replay carries over what the router would."""

from __future__ import annotations

import pytest

from bench.judgement.carrying import carried_over
from bench.judgement.data import Row
from bench.judgement.virtual import Replayed
from classifiers.api import CallClass, Features, Source, Verdict
from classifiers.carry import carried, centred
from classifiers.marks import Marks
from router.arrivals import Arrivals


def call(client: int, *, system: int = 1, stream: bool = False) -> Replayed:
    features = Features(surface="openai_chat", stream=stream, marks=Marks(system=system, head=1, tail=1))
    row = Row(features=features, label=CallClass.MIXED, source="s", group="g", kind="")
    return Replayed(row=row, position=0, client=client, at_s=0.0, in_session=False)


def test_it_is_what_the_router_keeps() -> None:
    calls = [call(1), call(2), call(1), call(1, system=2), call(1, stream=True), call(1), call(1, system=2), call(2)]
    scores = [(2.0, 0.0, -1.0), (0.0, 9.0, 0.0), (-1.0, 1.0, 0.0), (1.0, 1.0, 0.0), (0.0, 0.0, 5.0)] * 2
    temperature, share, arrivals = 0.8, 0.3, Arrivals()
    expected = []
    for number, (each, own) in enumerate(zip(calls, scores, strict=False)):
        presence = arrivals.arrive(str(each.client), each.row.features, float(number))
        alone, lately = centred(own, temperature), presence.arrival.said
        expected.append(alone if lately is None else carried(alone, lately, share))
        verdict = Verdict(call_class=CallClass.MIXED, confidence=1.0, source=Source.MODEL, reasons=(), alone=alone)
        presence.judged(verdict, float(number))
        presence.ended(number + 0.5)

    found = carried_over(calls, scores[: len(calls)], temperature, share)
    assert [pytest.approx(row) for row in expected] == found

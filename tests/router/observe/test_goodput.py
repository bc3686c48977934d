"""Windows of goodput: what is counted, by what, for how long, and that it stays bounded."""

from __future__ import annotations

import random
from typing import Any, cast

import orjson
import pytest

from classifiers.api import CallClass, Features, Source, Verdict
from policies.api import ClassRules, Lane
from router.observe.facts import CallFacts, JudgedCall
from router.observe.goodput import DIMENSIONS, Goodput
from router.observe.steps import Steps, at_once
from tests.router.observe.test_facts import facts


def chat(**promised: Any) -> JudgedCall:
    """A judged call that was promised this; nothing said: a first token in 0.5 s and 0.05 s per token."""
    return JudgedCall(
        features=Features(surface="openai_chat"),
        verdict=Verdict(call_class=CallClass.TTFT, confidence=0.8, source=Source.MODEL, reasons=()),
        rules=ClassRules(
            lanes=(Lane.LATENCY,), max_wait_s=1.0, **(promised or {"slo_ttft_s": 0.5, "slo_tpot_s": 0.05})
        ),
        placement="",
        client="",
    )


def ended(**given: Any) -> CallFacts:
    return facts(**{"lane": "latency", "output_tokens": 100, "prompt_tokens": 30, "cached_tokens": 10, **given})


def test_calls_and_tokens_inside_their_slo_are_told_from_all_of_them() -> None:
    goodput = Goodput(0.0)
    for number in range(10):
        goodput.ended(ended(ttft_s=0.4 if number < 7 else 0.9), chat(), 1.0 + number)
    total = goodput.document(20.0)["windows"]["1m"]["total"]
    assert (total["calls"], total["told"], total["inside"]) == (10, 10, 7)
    assert total["missed"] == {"ttft": 3, "tpot": 0, "complete": 0, "answer": 0}
    assert (total["tokens_in"], total["tokens_cached"], total["tokens_out"]) == (300, 100, 1000)
    assert total["tokens_inside"] == 700
    assert total["compliance_0_1"] == pytest.approx(0.7)
    assert total["colour"] == "red"
    assert total["calls_per_s"] == pytest.approx(0.5)
    assert total["inside_per_s"] == pytest.approx(0.35)
    assert total["tokens_per_s"] == pytest.approx(50.0)
    assert total["tokens_inside_per_s"] == pytest.approx(35.0)


def test_every_dimension_has_the_same_calls() -> None:
    goodput = Goodput(0.0)
    goodput.ended(ended(), chat(), 1.0)
    goodput.ended(ended(call_class="mixed", backend="rack", lane="throughput", model="big", key="ann"), chat(), 1.0)
    window = goodput.document(2.0)["windows"]["5m"]
    found = {dimension: {name: each["calls"] for name, each in window[dimension].items()} for dimension in DIMENSIONS}
    assert found == {
        "class": {"ttft": 1, "mixed": 1},
        "backend": {"desk": 1, "rack": 1},
        "lane": {"latency": 1, "throughput": 1},
        "model": {"m": 1, "big": 1},
        "key": {"none": 1, "ann": 1},
    }


def test_a_window_forgets_what_is_older_than_it() -> None:
    goodput = Goodput(0.0)
    goodput.ended(ended(), chat(), 1.0)

    def calls(now_s: float) -> list[int]:
        windows = goodput.document(now_s)["windows"]
        return [windows[name]["total"]["calls"] for name in ("1m", "5m", "1h")]

    assert calls(2.0) == [1, 1, 1]
    assert calls(59.0) == [1, 1, 1]
    assert calls(70.0) == [0, 1, 1]
    assert calls(290.0) == [0, 1, 1]
    assert calls(330.0) == [0, 0, 1]
    assert calls(3500.0) == [0, 0, 1]
    assert calls(4000.0) == [0, 0, 0]


@pytest.mark.parametrize("asked", [False, True])
def test_steady_calls_are_all_in_the_window_whether_or_not_somebody_looks(asked: bool) -> None:
    goodput = Goodput(0.0)
    for number in range(4000):
        goodput.ended(ended(), chat(), float(number))
        if asked and number % 7 == 0:
            goodput.document(float(number))
    windows = goodput.document(4000.0)["windows"]
    for name, seconds, slice_s in (("1m", 60, 5), ("5m", 300, 15), ("1h", 3600, 180)):
        calls = windows[name]["total"]["calls"]
        assert seconds <= calls <= seconds + slice_s
        assert windows[name]["total"]["calls_per_s"] == pytest.approx(1.0, rel=0.02)


def test_rates_of_a_router_that_has_just_started_are_over_its_life() -> None:
    goodput = Goodput(100.0)
    goodput.ended(ended(), chat(), 101.0)
    assert goodput.document(102.0)["windows"]["1h"]["total"]["calls_per_s"] == pytest.approx(0.5)


def test_percentiles_hold_over_all_slices_of_a_window() -> None:
    goodput = Goodput(0.0)
    draw = random.Random(7)
    values = [draw.lognormvariate(-1.0, 0.8) for _ in range(20_000)]
    for number, value in enumerate(values):
        goodput.ended(ended(ttft_s=value), chat(), number * 0.15)
    seen = goodput.document(3000.0)["windows"]["1h"]["total"]["ttft_s"]
    values.sort()
    assert seen["count"] == len(values)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert seen[name] == pytest.approx(values[int(share * len(values))], rel=0.02)


def test_what_was_not_measured_has_no_percentiles() -> None:
    goodput = Goodput(0.0)
    goodput.ended(ended(stream=False, ttft_s=None, tpot_s=None), chat(slo_complete_s=6.0), 1.0)
    total = goodput.document(2.0)["windows"]["1m"]["total"]
    assert total["ttft_s"] == {"count": 0, "p50": None, "p95": None, "p99": None}
    assert total["complete_s"]["p50"] == pytest.approx(4.0)


def test_calls_that_end_while_a_document_is_made_are_counted_at_most_once() -> None:
    goodput = Goodput(0.0)
    for number in range(500):
        goodput.ended(ended(), chat(), number * 0.9)
    before = goodput.document(451.0)["windows"]
    last = 450.0

    def disturbed() -> Steps[dict[str, Any]]:
        nonlocal last
        steps = goodput.steps(451.0)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return cast(dict[str, Any], end.value)
            last += 3.0
            goodput.ended(ended(), chat(), last)  # slices close and move on to the next window
            yield

    found = at_once(disturbed())["windows"]
    for name in ("1m", "5m", "1h"):
        more = found[name]["total"]["calls"] - before[name]["total"]["calls"]
        assert 0 <= more <= round((last - 450.0) / 3.0)
    after = goodput.document(last)["windows"]["1h"]["total"]["calls"]
    assert after == 500 + round((last - 450.0) / 3.0), "and what was remembered on the way is right"


def test_a_call_that_was_promised_nothing_is_counted_but_not_told() -> None:
    goodput = Goodput(0.0)
    goodput.ended(ended(call_class="throughput"), chat(slo_ttft_s=None), 1.0)
    total = goodput.document(2.0)["windows"]["1m"]["total"]
    assert (total["calls"], total["told"], total["compliance_0_1"], total["colour"]) == (1, 0, None, "none")


def test_names_that_clients_make_up_become_other() -> None:
    goodput = Goodput(0.0)
    for number in range(500):
        goodput.ended(ended(model=f"m{number}", key=f"k{number}"), chat(), 1.0)
    goodput.ended(ended(model="not-there", backend="", outcome="refused"), chat(), 1.0)
    window = goodput.document(2.0)["windows"]["1m"]
    assert len(window["model"]) == len(window["key"]) == 65
    assert window["model"]["other"]["calls"] == 437
    assert sum(each["calls"] for each in window["key"].values()) == 501


def test_a_name_that_nobody_uses_any_more_makes_room() -> None:
    goodput = Goodput(0.0)
    for number in range(64):
        goodput.ended(ended(model=f"old{number}"), chat(), 1.0)
    goodput.ended(ended(model="new"), chat(), 5000.0)
    goodput.ended(ended(model="newer"), chat(), 5010.0)
    assert "newer" in goodput.document(5011.0)["windows"]["1m"]["model"]


def test_the_document_is_json() -> None:
    goodput = Goodput(0.0)
    goodput.ended(ended(lane=Lane.LATENCY, call_class=CallClass.TTFT), chat(), 1.0)
    document = goodput.document(2.0)
    assert orjson.loads(orjson.dumps(document)) == document


def test_an_empty_router_has_all_the_keys() -> None:
    windows = Goodput(0.0).document(1.0)["windows"]
    assert [*windows] == ["1m", "5m", "1h"]
    assert windows["1m"]["total"]["calls"] == 0
    assert windows["1m"]["class"] == {}

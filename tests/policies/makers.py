"""Views and asks for tests: what matters is named, the rest is plain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from classifiers.api import CallClass, Features, Source, Verdict
from policies.api import Ask, ClassRules, Lane, View

TTFT, MIXED, THROUGHPUT = CallClass.TTFT, CallClass.MIXED, CallClass.THROUGHPUT
LATENCY_FIRST = (Lane.LATENCY, Lane.THROUGHPUT)
THROUGHPUT_FIRST = (Lane.THROUGHPUT, Lane.LATENCY)


def view(name: str, lane: Lane = Lane.LATENCY, **facts: Any) -> View:
    return View(**{"name": name, "lane": lane, "engine": "llamacpp", "cap": 2, "own": 0, **facts})


def desk(name: str = "desk", **facts: Any) -> View:
    """A latency backend with two slots."""
    return view(name, Lane.LATENCY, **facts)


def rack(name: str = "rack", **facts: Any) -> View:
    """A throughput backend without a known cap."""
    return view(name, Lane.THROUGHPUT, **{"engine": "vllm", "cap": None, **facts})


def ask(
    call_class: CallClass = TTFT,
    lanes: tuple[Lane, ...] | None = None,
    keep_free: Mapping[Lane, int] | None = None,
    **known: Any,
) -> Ask:
    preferred = THROUGHPUT_FIRST if call_class is THROUGHPUT else LATENCY_FIRST
    return Ask(
        features=Features(surface="openai_chat"),
        verdict=Verdict(call_class=call_class, confidence=1.0, source=Source.HEADER, reasons=()),
        rules=ClassRules(lanes=lanes or preferred, keep_free=keep_free or {}, max_wait_s=30.0),
        arrived_s=0.0,
        **known,
    )


def batch(keep_free: int = 1) -> Ask:
    """A throughput call as the default settings have it: it leaves one slot of the latency lane to others."""
    return ask(THROUGHPUT, keep_free={Lane.LATENCY: keep_free})


@st.composite
def fleets(draw: st.DrawFn) -> list[View]:
    """Any fleet of one to six backends, also overfull ones and ones with fractional figures."""
    count = draw(st.integers(1, 6))
    return [
        View(
            name=f"b{index}",
            lane=draw(st.sampled_from(Lane)),
            engine="llamacpp",
            cap=draw(st.none() | st.integers(1, 6)),
            own=draw(st.integers(0, 7)),
            foreign=draw(st.just(0.0) | st.floats(0, 4)),
            queued=draw(st.just(0.0) | st.floats(0, 4)),
            weight=draw(st.sampled_from([0.5, 1.0, 3.0])),
        )
        for index in range(count)
    ]


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    return ask(
        draw(st.sampled_from(CallClass)),
        draw(st.sampled_from([LATENCY_FIRST, THROUGHPUT_FIRST, (Lane.LATENCY,), (Lane.THROUGHPUT,)])),
        draw(st.dictionaries(st.sampled_from(Lane), st.integers(0, 4))),
        home=draw(st.sampled_from(["", "b0", "b3"])),
    )


chances = st.floats(0, 1, exclude_max=True)

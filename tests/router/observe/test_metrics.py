"""What Prometheus reads: the series that calls move, bounded labels, trace ids for those who can read them."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from policies.api import ClassRules, Lane
from router.observe.gaps import Flow
from router.observe.gauges import BackendGauges, Gauges
from router.observe.metrics import Metrics
from router.observe.trace_context import Trace
from tests.router.observe.test_goodput import chat, ended


def metrics() -> Metrics:
    desk = BackendGauges(
        name="desk",
        lane="latency",
        engine="llamacpp",
        up=True,
        own=1,
        foreign=0.5,
        cap=2,
        engine_running=None,
        engine_waiting=None,
        figures_age_s=1.0,
    )
    rules = ClassRules(lanes=(Lane.LATENCY,), max_wait_s=1.0, slo_ttft_s=0.5)
    return Metrics(
        lambda: Gauges(
            backends=(desk,),
            waiting_by_class={"ttft": 3},
            open_calls=4,
            decisions_dropped=0,
            promises={"ttft": rules},
            version="1.2.3",
        )
    )


def figure(metrics: Metrics, name: str, **labels: str) -> float:
    """The sum of the samples of that name that have these labels."""
    families = read_text(b"".join(metrics.exposed()).decode())
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


def tell(metrics: Metrics, **given: Any) -> None:
    facts = ended(**given)
    metrics.call_ended(facts)
    metrics.judged(facts, chat())


def test_promises_are_counted_by_backend_and_what_was_missed() -> None:
    told = metrics()
    tell(told)
    tell(told, ttft_s=0.9, tpot_s=0.2)
    tell(told, outcome="backend_error", ttft_s=None, tpot_s=None)
    assert figure(told, "twolane_objectives_total", backend="desk", result="kept") == 1
    assert figure(told, "twolane_objectives_total", result="missed") == 2
    parts = {part: figure(told, "twolane_missed_total", part=part) for part in ("ttft", "tpot", "complete", "answer")}
    assert parts == {"ttft": 1, "tpot": 1, "complete": 0, "answer": 1}
    assert figure(told, "twolane_tokens_inside_total") == 100
    assert 1.0 < figure(told, "twolane_smooth_calls_total") < 2.0


def test_the_way_of_an_answer_is_measured_stage_by_stage() -> None:
    told = metrics()
    flow = Flow(mean_s=0.02, p95_s=0.03, longest_s=0.6, stalls=2)
    tell(told, queue_s=0.1, connect_s=0.002, first_byte_s=0.2, flow=flow)
    tell(told, connect_s=0.0)
    assert figure(told, "twolane_queue_seconds_sum") == pytest.approx(0.1)
    assert figure(told, "twolane_connect_seconds_count", backend="desk") == 1, "a kept connection is none that was made"
    assert figure(told, "twolane_first_byte_seconds_sum") == pytest.approx(0.2)
    assert figure(told, "twolane_longest_gap_seconds_sum") == pytest.approx(0.6)
    assert figure(told, "twolane_token_stalls_total") == 2
    assert figure(told, "twolane_tokens_total", direction="cached") == 20


def test_what_is_promised_can_be_drawn_beside_what_was_seen() -> None:
    told = metrics()
    assert figure(told, "twolane_slo_seconds", **{"class": "ttft"}, time="ttft") == 0.5
    assert figure(told, "twolane_info", version="1.2.3") == 1


def test_beyond_64_names_of_backends_and_keys_are_other() -> None:
    told = metrics()
    for number in range(200):
        tell(told, backend=f"b{number}", key=f"k{number}")
    for name, label in (("twolane_calls_total", "backend"), ("twolane_key_calls_total", "key")):
        assert figure(told, name) == 200
        assert figure(told, name, **{label: "other"}) == 136


def test_openmetrics_carries_the_trace_of_a_call_beside_its_bucket() -> None:
    told = metrics()
    tell(told, ttft_s=0.07, trace=Trace("0af7651916cd43dd8448eb211c80319c", "", True))
    tell(told, ttft_s=3.0)
    text = b"".join(told.exposed(openmetrics=True)).decode()
    families = {family.name: family for family in read_openmetrics(text)}  # type: ignore[no-untyped-call]
    buckets = [each for each in families["twolane_ttft_seconds"].samples if each.name.endswith("_bucket")]
    examples = {each.labels["le"]: each.exemplar for each in buckets if each.exemplar is not None}
    assert [*examples] == ["0.08"]
    assert examples["0.08"].labels == {"trace_id": "0af7651916cd43dd8448eb211c80319c"}
    assert examples["0.08"].value == pytest.approx(0.07)
    assert b"0af765" not in b"".join(told.exposed())


def test_a_file_that_is_refused_shows_until_one_is_taken_over_and_the_first_refusal_is_an_increase() -> None:
    told = metrics()
    lines = b"".join(told.exposed()).decode().splitlines()
    assert {'twolane_reloads_total{result="ok"} 0.0', 'twolane_reloads_total{result="refused"} 0.0'} <= {*lines}
    assert figure(told, "twolane_settings_ok") == 1
    told.reloaded(ok=False)
    assert figure(told, "twolane_settings_ok") == 0
    assert figure(told, "twolane_reloads_total", result="refused") == 1
    told.reloaded(ok=True)
    assert figure(told, "twolane_settings_ok") == 1

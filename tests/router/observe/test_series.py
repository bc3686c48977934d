"""Series of our own are exposed as those of `prometheus_client` would be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest

from router.observe.series import Distribution, Tally

BOUNDS = (0.00005, 0.001, 0.5, 1.0, 81.92)
VALUES = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(BOUNDS) | st.floats(0, 100)),
    max_size=30,
)


@given(VALUES)
def test_a_distribution_is_exposed_as_a_histogram(values: list[tuple[str, float]]) -> None:
    disable_created_metrics()  # type: ignore[no-untyped-call]
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    distribution = Distribution("call_seconds", "How long", ("kind",), BOUNDS, ours)
    histogram = Histogram("call_seconds", "How long", ("kind",), buckets=BOUNDS, registry=theirs)
    for kind, value in values:
        distribution.labels(kind).observe(value)
        histogram.labels(kind).observe(value)
    assert generate_latest(ours) == generate_latest(theirs)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 10**6)), max_size=30))
def test_a_tally_is_exposed_as_a_counter(counts: list[tuple[str, int]]) -> None:
    disable_created_metrics()  # type: ignore[no-untyped-call]
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    tally, counter = (
        Tally("tokens", "How many", ("kind",), ours),
        Counter("tokens", "How many", ("kind",), registry=theirs),
    )
    for kind, count in counts:
        tally.labels(kind).total += count
        counter.labels(kind).inc(count)
    assert generate_latest(ours) == generate_latest(theirs)


def test_without_labels_there_is_one_series_once_it_is_asked_for() -> None:
    registry = CollectorRegistry()
    Distribution("call_seconds", "How long", (), BOUNDS, registry).labels()
    assert b"call_seconds_count 0.0" in generate_latest(registry)

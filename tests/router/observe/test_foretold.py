"""How far predictions were off is counted for each backend, of what was both foretold and seen."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from router.observe.foretold import Predicted, PredictionErrors


def counts(registry: CollectorRegistry, what: str) -> tuple[float, float]:
    """How many ratios were told, and their sum."""
    labels = {"what": what, "backend": "desk"}
    found = [registry.get_sample_value(f"twolane_prediction_ratio_{kind}", labels) for kind in ("count", "sum")]
    return found[0] or 0.0, found[1] or 0.0


def test_what_took_twice_as_long_is_two() -> None:
    registry = CollectorRegistry()
    errors = PredictionErrors(registry).of("desk")
    errors.observe(Predicted(0.5, 0.01, 2.0), 1.0, None, 2.0)
    errors.observe(Predicted(0.5, 0.01, 2.0), None, 0.005, 1.0)
    assert counts(registry, "ttft") == (1.0, 2.0)
    assert counts(registry, "tpot") == (1.0, 0.5)
    assert counts(registry, "complete") == (2.0, 1.5)


def test_a_prediction_of_nothing_is_not_compared() -> None:
    registry = CollectorRegistry()
    PredictionErrors(registry).of("desk").observe(Predicted(0.0, 0.0, 0.0), 1.0, 1.0, 1.0)
    assert counts(registry, "ttft") == (0.0, 0.0)

"""What a call was expected to see when it was sent, and how far off that was."""

from __future__ import annotations

from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry

from router.observe.series import Distribution, Spread

_RATIOS: Final = (0.1, 0.25, 0.5, 0.67, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0, 10.0)


class Predicted(NamedTuple):
    """Medians, in seconds from the arrival of the call."""

    ttft_s: float
    tpot_s: float
    complete_s: float
    """With an answer of the length that was expected."""


class PredictionErrors:
    """What was seen over what was predicted, by what it was and by backend: 1 is exact, 2 took twice as long."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ratios = Distribution(
            "twolane_prediction_ratio",
            "Time seen over time predicted when the call was sent, completed calls",
            ("what", "backend"),
            _RATIOS,
            registry,
        )

    def of(self, backend: str) -> BackendErrors:
        return BackendErrors(*(self._ratios.labels(what, backend) for what in ("ttft", "tpot", "complete")))


class BackendErrors(NamedTuple):
    """The series of one backend."""

    ttft: Spread
    tpot: Spread
    complete: Spread

    def observe(
        self, predicted: Predicted, ttft_s: float | None, tpot_s: float | None, complete_s: float | None
    ) -> None:
        """None: that was not seen."""
        for series, foretold_s, seen_s in zip(self, predicted, (ttft_s, tpot_s, complete_s), strict=True):
            if seen_s is not None and foretold_s > 0:
                series.observe(seen_s / foretold_s)

"""Load figures out of a scrape: which samples count, and how several of them make one figure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from router.engines.prometheus_text import Sample, samples


def known(text: bytes, names: Sequence[str], models: tuple[str, ...] | None) -> list[Sample]:
    """Samples that say something, of the first of `names` that has any.

    `names` are the names that one figure had over the versions of a server, so that a server which exports two of them
    is counted once. NaN, infinite and negative values say nothing. Where `models` is known, samples of other models
    are left out.
    """
    for name in names:
        found = [
            sample
            for sample in samples(text, name)
            if math.isfinite(sample.value) and sample.value >= 0 and _concerns(sample, models)
        ]
        if found:
            return found
    return []


def _concerns(sample: Sample, models: tuple[str, ...] | None) -> bool:
    model = sample.labels.get("model_name")
    return models is None or model is None or model in models


def summed(found: Sequence[Sample]) -> float | None:
    """For calls: engines behind one address add up. None: not known."""
    return sum(sample.value for sample in found) if found else None


def mean(found: Sequence[Sample]) -> float | None:
    """For shares of a cache: engines behind one address are taken to be equal in size. None: not known."""
    return sum(sample.value for sample in found) / len(found) if found else None

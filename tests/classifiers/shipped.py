"""The classifier as it serves."""

from __future__ import annotations

from typing import Final

from classifiers.chain import Chain
from classifiers.judged import Judged
from router import models


def _shipped() -> Judged:
    model = models.builtin()
    assert model is not None, "the package has no model"
    return Judged(model, models.vector_of)


JUDGED: Final = _shipped()
CHAIN: Final = Chain(judged=JUDGED)

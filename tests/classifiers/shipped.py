"""The classifier as it serves."""

from __future__ import annotations

from classifiers.chain import Chain
from tests.classifiers.test_judged import judged

JUDGED = judged()
CHAIN = Chain(judged=JUDGED)

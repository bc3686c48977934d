"""Multinomial logistic regression on standardised features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p
from operator import mul
from typing import Self

from classifiers.modelfile import Node

MAX_WEIGHT = 1000.0

Weights = tuple[float, ...]


@dataclass(slots=True)
class Weighed:
    """The standardised values of one call."""

    scores: tuple[float, float, float]
    line: Linear
    values: list[float]

    def effects(self, place: int) -> list[float]:
        return list(map(mul, self.line.weights[place], self.values))


@dataclass(frozen=True, slots=True)
class Linear:
    """Scores are `intercept + weights * (transformed value - mean) / scale`, the last factor bounded by `clip`."""

    inputs: tuple[tuple[int, bool, float, float], ...]
    """Place in the vector, whether the logarithm is taken, mean, one divided by the scale."""
    clip: float
    """Largest standardised value: a call that is unlike any other must not be judged by one feature alone."""
    intercept: tuple[float, float, float]
    weights: tuple[Weights, Weights, Weights]

    @classmethod
    def read(cls, stage: Node, places: Sequence[int]) -> Self:
        """`places` are the places in the vector of the features of this stage. Raises `ModelError`."""
        features = list(stage.get("features").items(len(places)))
        first, second, third = (node.number(MAX_WEIGHT) for node in stage.get("intercept").each_class())
        rows = [[node.number(MAX_WEIGHT) for node in item.get("weights").each_class()] for item in features]
        ttft, mixed, throughput = (tuple(row[place] for row in rows) for place in range(3))
        return cls(
            inputs=tuple(
                (
                    place,
                    item.get("transform").one_of("none", "log1p") == "log1p",
                    item.get("mean").number(),
                    1 / item.get("scale").positive(),
                )
                for place, item in zip(places, features, strict=True)
            ),
            clip=stage.get("clip").positive(),
            intercept=(first, second, third),
            weights=(ttft, mixed, throughput),
        )

    def look(self, vector: Sequence[float]) -> Weighed:
        values = [
            ((log1p(value) if logarithm and value > 0 else value) - mean) * share
            for place, logarithm, mean, share in self.inputs
            for value in (vector[place],)
        ]
        clip = self.clip
        if max(values) > clip or min(values) < -clip:
            values = [max(-clip, min(clip, value)) for value in values]
        (first, second, third), (a, b, c) = self.intercept, self.weights
        scores = (sum(map(mul, a, values), first), sum(map(mul, b, values), second), sum(map(mul, c, values), third))
        return Weighed(scores, self, values)

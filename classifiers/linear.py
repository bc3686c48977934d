"""Multinomial logistic regression on standardised features.

Most entries of a vector are zero: no tools, no seed, no code. What they contribute is the same in every call that lacks
them, so it is added up once, and judging a call costs by what it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from math import log1p
from typing import Self

from classifiers.modelfile import Node

MAX_WEIGHT = 1000.0

Three = tuple[float, float, float]
"""One number for each class."""


Present = tuple[int, float]
"""A feature that is not zero: its number among those of the stage, and its standardised value."""
Moved = tuple[Present, float, float, float]
"""That, and what is added to the score of each class."""


@dataclass(frozen=True, slots=True)
class Input:
    """One feature, as it is weighed."""

    number: int
    """Among the features of the stage."""
    logarithm: bool
    mean: float
    share: float
    """One divided by the scale."""
    clip: float
    weights: Three
    resting: float
    """Its standardised value where it is zero."""

    @classmethod
    def read(cls, node: Node, number: int, clip: float) -> Self:
        """Raises `ModelError`."""
        logarithm = node.get("transform").one_of("none", "log1p") == "log1p"
        mean, share = node.get("mean").number(), 1 / node.get("scale").positive()
        first, second, third = (each.number(MAX_WEIGHT) for each in node.get("weights").each_class())
        resting = max(-clip, min(clip, -mean * share))
        return cls(number, logarithm, mean, share, clip, (first, second, third), resting)

    def standardised(self, value: float) -> float:
        if self.logarithm and value > 0:
            value = log1p(value)
        value = (value - self.mean) * self.share
        # A call that is unlike any other must not be judged by one feature alone.
        return self.clip if value > self.clip else -self.clip if value < -self.clip else value

    def moved(self, value: float) -> Moved:
        """What this value does that zero would not."""
        standardised = self.standardised(value)
        first, second, third = self.weights
        more = standardised - self.resting
        return (self.number, standardised), first * more, second * more, third * more


@dataclass(slots=True)
class Weighed:
    """The features that one call has, and their standardised values."""

    scores: Three
    line: Linear
    present: list[Present]

    def effects(self, place: int) -> list[float]:
        effects = list(self.line.at_rest[place])
        for number, value in self.present:
            effects[number] = self.line.weights[place][number] * value
        return effects

    def loudest(self, place: int, most: int) -> list[tuple[float, int]]:
        weights = self.line.weights[place]
        found = sorted([(weights[number] * value, number) for number, value in self.present], reverse=True)[:most]
        present = dict(self.present)
        for effect, number in self.line.loud_at_rest[place]:
            if len(found) >= most and effect <= found[-1][0]:
                break
            if number not in present:
                found = sorted([*found, (effect, number)], reverse=True)[:most]
        return found


@dataclass(frozen=True, slots=True)
class Linear:
    """Scores are `intercept + weights * (transformed value - mean) / scale`, the last factor bounded by a clip."""

    inputs: tuple[tuple[Input, Moved] | None, ...]
    """By place in the vector, with what the feature does where it is one, as most are that are not zero; None: not a
    feature of this model.
    """
    resting: Three
    """Scores of a call that has nothing."""
    weights: tuple[tuple[float, ...], ...]
    """By class and feature."""
    at_rest: tuple[tuple[float, ...], ...]
    """By class: what each feature adds where it is zero."""
    loud_at_rest: tuple[tuple[tuple[float, int], ...], ...]
    """By class: the features that speak for it where they are zero, loudest first, and how much."""

    @classmethod
    def read(cls, stage: Node, places: Sequence[int]) -> Self:
        """`places` are the places in the vector of the features of this stage. Raises `ModelError`."""
        clip = stage.get("clip").positive()
        features = stage.get("features").items(len(places))
        inputs = [Input.read(item, number, clip) for number, item in enumerate(features)]
        first, second, third = (node.number(MAX_WEIGHT) for node in stage.get("intercept").each_class())
        by_place: list[tuple[Input, Moved] | None] = [None] * (max(places) + 1)
        for place, each in zip(places, inputs, strict=True):
            by_place[place] = (each, each.moved(1.0))
        at_rest = tuple(tuple(each.weights[row] * each.resting for each in inputs) for row in range(3))
        loud = (
            sorted(((effect, each) for each, effect in enumerate(row) if effect > 0), reverse=True) for row in at_rest
        )
        return cls(
            inputs=tuple(by_place),
            resting=(first + sum(at_rest[0]), second + sum(at_rest[1]), third + sum(at_rest[2])),
            weights=tuple(tuple(each.weights[row] for each in inputs) for row in range(3)),
            at_rest=at_rest,
            loud_at_rest=tuple(tuple(row) for row in loud),
        )

    def look(self, vector: Sequence[float]) -> Weighed:
        first, second, third = self.resting
        present: list[Present] = []
        for entry, value in compress(zip(self.inputs, vector), vector):  # noqa: B905 - the vector may be longer
            if entry is not None:
                each, moved = entry
                feature, one, two, three = moved if value == 1 else each.moved(value)
                present.append(feature)
                first += one
                second += two
                third += three
        return Weighed((first, second, third), self, present)

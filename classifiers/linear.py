"""Multinomial logistic regression on standardised features.

Most entries of a vector are zero: no tools, no seed, no code. What they contribute is the same in every call that lacks
them, so it is added up once, and judging a call costs by what it has.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import log1p
from typing import Self

from classifiers.modelfile import Node

MAX_WEIGHT = 1000.0

Three = tuple[float, float, float]
"""One number for each class."""


Present = tuple[int, float, float, float]
"""A feature that is not zero: its number among those of the stage, and what it adds to the score of each class."""
Moved = tuple[Present, float, float, float]
"""That, and what it adds to each score that zero would not."""

_COUNTS = 16
"""Most amounts are counts, and most counts are small: what each of these does is known beforehand."""


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
    counts: int
    """It is looked up what each count up to this does; others are weighed."""

    @classmethod
    def read(cls, node: Node, number: int, clip: float) -> Self:
        """Raises `ModelError`."""
        logarithm = node.get("transform").one_of("none", "log1p") == "log1p"
        mean, share = node.get("mean").number(), 1 / node.get("scale").positive()
        first, second, third = (each.number(MAX_WEIGHT) for each in node.get("weights").each_class())
        resting = max(-clip, min(clip, -mean * share))
        counts = 1 if node.get("kind").value == "flag" else _COUNTS
        return cls(number, logarithm, mean, share, clip, (first, second, third), resting, counts)

    def moved(self, value: float) -> Moved:
        """What this value does, and what of that zero would not do."""
        if self.logarithm and value > 0:
            value = log1p(value)
        value = (value - self.mean) * self.share
        # A call that is unlike any other must not be judged by one feature alone.
        if value > self.clip:
            value = self.clip
        elif value < -self.clip:
            value = -self.clip
        first, second, third = self.weights
        more = value - self.resting
        return (self.number, first * value, second * value, third * value), first * more, second * more, third * more


@dataclass(slots=True)
class Weighed:
    """The features that one call has, and what they do."""

    scores: Three
    line: Linear
    present: list[Present]

    def effects(self, place: int) -> list[float]:
        effects = list(self.line.at_rest[place])
        for each in self.present:
            effects[each[0]] = each[place + 1]
        return effects

    def strongest(self, place: int, most: int) -> list[tuple[float, int]]:
        column = place + 1
        found = [(-abs(each[column]), each[0]) for each in self.present]
        found.sort()
        del found[most:]
        moved = {each[0]: each[column] for each in self.present}
        for pair in self.line.strong_at_rest[place]:
            if len(found) >= most and pair >= found[-1]:
                break
            if pair[1] not in moved:
                insort(found, pair)
                del found[most:]
        at_rest = self.line.at_rest[place]
        return [(moved[number] if number in moved else at_rest[number], number) for _, number in found]

    def loudest(self, place: int, most: int) -> list[tuple[float, int]]:
        column = place + 1
        found = [(effect, each[0]) for each in self.present if (effect := each[column]) > 0]
        found.sort(reverse=True)
        del found[most:]
        present: set[int] | None = None
        for pair in self.line.loud_at_rest[place]:
            if len(found) >= most and pair[0] <= found[-1][0]:
                break
            if present is None:
                present = {each[0] for each in self.present}
            if pair[1] not in present:
                found.append(pair)
                found.sort(reverse=True)
                del found[most:]
        return found


@dataclass(frozen=True, slots=True)
class Linear:
    """Scores are `intercept + weights * (transformed value - mean) / scale`, the last factor bounded by a clip."""

    inputs: tuple[tuple[Input, Mapping[float, Moved]] | None, ...]
    """By place in the vector, with what the feature does where it is one, or a small count, as most are that are not
    zero; None: not a feature of this model.
    """
    resting: Three
    """Scores of a call that has nothing."""
    at_rest: tuple[tuple[float, ...], ...]
    """By class: what each feature adds where it is zero."""
    loud_at_rest: tuple[tuple[tuple[float, int], ...], ...]
    """By class: the features that speak for it where they are zero, loudest first, and how much."""
    strong_at_rest: tuple[tuple[tuple[float, int], ...], ...]
    """By class: the features in the order of what they say where they are zero, the strongest first: how much, for or
    against it, as a negative number, and which."""

    @classmethod
    def read(cls, stage: Node, places: Sequence[int]) -> Self:
        """`places` are the places in the vector of the features of this stage. Raises `ModelError`."""
        clip = stage.get("clip").positive()
        features = stage.get("features").items(len(places))
        inputs = [Input.read(item, number, clip) for number, item in enumerate(features)]
        first, second, third = (node.number(MAX_WEIGHT) for node in stage.get("intercept").each_class())
        by_place: list[tuple[Input, Mapping[float, Moved]] | None] = [None] * (max(places) + 1)
        for place, each in zip(places, inputs, strict=True):
            by_place[place] = (each, {count: each.moved(count) for count in range(1, each.counts + 1)})
        at_rest = tuple(tuple(each.weights[row] * each.resting for each in inputs) for row in range(3))
        loud = (
            sorted(((effect, each) for each, effect in enumerate(row) if effect > 0), reverse=True) for row in at_rest
        )
        strong = (sorted((-abs(effect), each) for each, effect in enumerate(row)) for row in at_rest)
        return cls(
            inputs=tuple(by_place),
            resting=(first + sum(at_rest[0]), second + sum(at_rest[1]), third + sum(at_rest[2])),
            at_rest=at_rest,
            loud_at_rest=tuple(tuple(row) for row in loud),
            strong_at_rest=tuple(tuple(row) for row in strong),
        )

    def look(self, vector: Sequence[float]) -> Weighed:
        first, second, third = self.resting
        present: list[Present] = []
        for entry, value in compress(zip(self.inputs, vector), vector):  # noqa: B905 - the vector may be longer
            if entry is not None:
                each, known = entry
                feature, one, two, three = known.get(value) or each.moved(value)
                present.append(feature)
                first += one
                second += two
                third += three
        return Weighed((first, second, third), self, present)

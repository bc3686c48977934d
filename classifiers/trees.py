"""Boosted trees, evaluated without a loop over their nodes.

Walking a hundred trees node by node costs a hundred microseconds in plain Python. So all trees are evaluated at once,
feature by feature, as QuickScorer does (Lucchese et al., SIGIR 2015): every tree has one byte with a bit for each of
its leaves; every comparison that fails has a mask that clears the leaves that it rules out; the lowest bit that is left
in a byte is the leaf at which the tree arrives. The masks of the failed comparisons of one feature are cumulative, so a
feature costs one bisection and one `&` of long integers however many trees ask about it. Eight leaves to a tree is
what makes a tree a byte.

How a feature moved a score is read from the paths (Saabas): going from a node to its child changes the expected score,
and the change belongs to the feature that was asked about. The changes on the way to a leaf are known in advance;
they are kept as one long integer of fixed-point fields, so that adding the trees up is adding integers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from operator import getitem
from struct import Struct
from typing import Self

from classifiers.modelfile import Node

LEAVES = 8
"""Most leaves of a tree."""
MAX_TREES = 256
"""Of one class."""
MAX_VALUE = 100.0
"""Largest score of a leaf, in log-odds."""

_LOWEST = bytes([0, *((byte & -byte).bit_length() - 1 for byte in range(1, 256))])
"""Of each byte the position of its lowest bit."""
_FIELD_BITS = 32
_UNIT = 4096
"""Fixed point of the fields. 256 trees that each move a score by 200 on every step of a path fit into 31 bits."""
_ZERO = 1 << (_FIELD_BITS - 1)
"""Added to each field before it is read, so that none is negative."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Flat arrays, entry n of each belongs to node n; node 0 is the root, and children come after their parents."""

    feature: tuple[int, ...]
    """Place among the features of the stage; -1: a leaf."""
    threshold: tuple[float, ...]
    """A value of at most this goes left."""
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[float, ...]
    """Score of a leaf, expected score of a node above leaves; log-odds."""

    @classmethod
    def read(cls, node: Node, features: int) -> Self:
        """Raises `ModelError`."""
        asked = tuple(item.integer(-1, features - 1) for item in node.get("feature").items(2 * LEAVES - 1, 1))
        size = len(asked)
        tree = cls(
            feature=asked,
            threshold=node.get("threshold").numbers(size),
            left=node.get("left").integers(size, -1, size - 1),
            right=node.get("right").integers(size, -1, size - 1),
            value=node.get("value").numbers(size, MAX_VALUE),
        )
        tree._check(node)
        return tree

    def _check(self, node: Node) -> None:
        inner = [number for number, asked in enumerate(self.feature) if asked >= 0]
        children = [child for number in inner for child in (self.left[number], self.right[number])]
        if sorted(children) != list(range(1, len(self.feature))):
            raise node.wrong("its nodes are no tree: each but the first must be the child of exactly one other")
        if any(min(self.left[number], self.right[number]) <= number for number in inner):
            raise node.wrong("its nodes are no tree: a child must come after its parent")

    def leaves(self) -> list[int]:
        """The nodes that are leaves, from left to right."""
        found, waiting = [], [0]
        while waiting:
            number = waiting.pop()
            if self.feature[number] < 0:
                found.append(number)
            else:
                waiting += (self.right[number], self.left[number])
        return found


@dataclass(slots=True)
class Walked:
    """Where one call arrived in all trees."""

    scores: tuple[float, float, float]
    forest: Forest
    exits: bytes

    def effects(self, place: int) -> list[float]:
        return self.forest.effects(self.exits, place)

    def strongest(self, place: int, most: int) -> list[tuple[float, int]]:
        effects = self.effects(place)
        least = sorted(map(abs, effects))[-most:][0]  # of those that count, so that only these are put in order
        found = [(effect, number) for number, effect in enumerate(effects) if effect >= least or effect <= -least]
        found.sort(key=lambda pair: (-abs(pair[0]), pair[1]))
        return found[:most]

    def loudest(self, place: int, most: int) -> list[tuple[float, int]]:
        effects = self.effects(place)
        return nlargest(most, zip(effects, range(len(effects)), strict=True))


@dataclass(frozen=True, slots=True)
class Forest:
    """The trees of all classes, compiled."""

    asked: tuple[tuple[int, tuple[float, ...], tuple[int, ...]], ...]
    """For each feature that is asked about: its place in the vector, the thresholds in order, and the leaves of all
    trees that remain possible when that many thresholds lie below the value."""
    everything: int
    """All leaves of all trees."""
    trees: int
    base: tuple[float, float, float]
    spans: tuple[slice, slice, slice]
    """Which trees are those of a class."""
    values: tuple[tuple[tuple[float, ...], ...], ...]
    """By class, tree and leaf."""
    moves: tuple[tuple[tuple[int, ...], ...], ...]
    """By class, tree and leaf: what each feature of the path changed, packed."""
    zero: int
    fields: Struct = field(compare=False)

    @classmethod
    def read(cls, stage: Node, places: Sequence[int]) -> Self:
        """`places` are the places in the vector of the features of this stage. Raises `ModelError`."""
        grown = [
            [Tree.read(item, len(places)) for item in node.items(MAX_TREES)] for node in stage.get("trees").each_class()
        ]
        first, second, third = (node.number(MAX_VALUE) for node in stage.get("base").each_class())
        ends = (len(grown[0]), len(grown[0]) + len(grown[1]), sum(map(len, grown)))
        order = [tree.leaves() for trees in grown for tree in trees]
        everything = sum(((1 << len(leaves)) - 1) << (LEAVES * place) for place, leaves in enumerate(order))
        forest = [tree for trees in grown for tree in trees]
        spans = (slice(0, ends[0]), slice(ends[0], ends[1]), slice(ends[1], ends[2]))
        values = [tuple(tree.value[leaf] for leaf in leaves) for tree, leaves in zip(forest, order, strict=True)]
        moves = [_moves(tree, leaves) for tree, leaves in zip(forest, order, strict=True)]
        return cls(
            asked=_asked(forest, order, everything, places),
            everything=everything,
            trees=len(forest),
            base=(first, second, third),
            spans=spans,
            values=tuple(tuple(values[span]) for span in spans),
            moves=tuple(tuple(moves[span]) for span in spans),
            zero=sum(_ZERO << (_FIELD_BITS * place) for place in range(len(places))),
            fields=Struct(f"<{len(places)}I"),
        )

    def look(self, vector: Sequence[float]) -> Walked:
        left = self.everything
        for place, thresholds, remaining in self.asked:
            left &= remaining[bisect_left(thresholds, vector[place])]
        exits = left.to_bytes(self.trees, "little").translate(_LOWEST)
        (first, second, third), (one, two, three), (a, b, c) = self.base, self.spans, self.values
        scores = (
            sum(map(getitem, a, exits[one]), first),
            sum(map(getitem, b, exits[two]), second),
            sum(map(getitem, c, exits[three]), third),
        )
        return Walked(scores, self, exits)

    def effects(self, exits: bytes, place: int) -> list[float]:
        """What each feature of the stage added to the score of the class at this place, in log-odds."""
        total = sum(map(getitem, self.moves[place], exits[self.spans[place]]), self.zero)
        packed = total.to_bytes(self.fields.size, "little")
        return [(moved - _ZERO) / _UNIT for moved in self.fields.unpack(packed)]


def _moves(tree: Tree, leaves: Sequence[int]) -> tuple[int, ...]:
    packed = [0] * len(tree.feature)
    for number, feature in enumerate(tree.feature):
        if feature >= 0:
            for child in (tree.left[number], tree.right[number]):
                change = round((tree.value[child] - tree.value[number]) * _UNIT)
                packed[child] = packed[number] + (change << (_FIELD_BITS * feature))
    return tuple(packed[leaf] for leaf in leaves)


def _asked(
    forest: Sequence[Tree], order: Sequence[Sequence[int]], everything: int, places: Sequence[int]
) -> tuple[tuple[int, tuple[float, ...], tuple[int, ...]], ...]:
    questions: dict[int, list[tuple[float, int]]] = {}
    for place, (tree, leaves) in enumerate(zip(forest, order, strict=True)):
        below = [0] * len(tree.feature)
        for bit, leaf in enumerate(leaves):
            below[leaf] = 1 << (LEAVES * place + bit)
        for number in reversed(range(len(tree.feature))):
            if tree.feature[number] >= 0:
                ruled_out = below[tree.left[number]]
                below[number] = ruled_out | below[tree.right[number]]
                questions.setdefault(tree.feature[number], []).append((tree.threshold[number], ruled_out))
    asked = []
    for feature, comparisons in sorted(questions.items()):
        comparisons.sort()
        remaining = [everything]
        for _, ruled_out in comparisons:
            remaining.append(remaining[-1] & ~ruled_out)
        asked.append((places[feature], tuple(threshold for threshold, _ in comparisons), tuple(remaining)))
    return tuple(asked)

"""Logged calls as rows to train on: what weighs how much.

- A tag weighs as much as the hint is sure (0.8 to 1), a guess at most 0.5. Over all, classes are made to count alike,
  and within a class a client by the square root of its calls, so that one job of a million rows does not decide what
  everybody's calls are (`classifiers.training.balanced`).
- Guesses together weigh at most as much as tags.
- The calls that the router's own model learned from are not there. Where its weights cannot be moved (`adapt`), because
  a model of another kind is wanted, its opinion of the logged calls takes their place: each call is also a row of each
  class, with the probability that the model gives it as weight, and all these rows together weigh as much as
  `PRIOR_CALLS` tags. With few tags the new model so repeats the old one; with n tags, their share is
  n / (n + PRIOR_CALLS).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from classifiers.learned import Probabilities
from classifiers.modelfile import CLASSES
from classifiers.training import Rows, balanced
from router.learning.examples import Example

PRIOR_CALLS: Final = 200.0
LEAST_TAGS: Final = 200
"""Tagged calls without which nothing is trained."""
LEAST_OF_A_CLASS: Final = 20
_LEAST_PROBABILITY: Final = 0.02
"""Opinions below this are not worth a row."""

Judge = Callable[[Sequence[float], bool], Probabilities]
"""The model whose opinion is the prior: a vector, and whether its client was known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """Rows, and which of them are tags: those are what a model is measured by."""

    rows: Rows
    tags: Sequence[int]
    """Places of the rows that are tagged calls."""
    tag_weight: float
    guess_weight: float
    prior_weight: float


def weighed(examples: Sequence[Example], prior: Judge | None) -> Weighed:
    """Rows of tags, guesses and the opinions of `prior`; the groups are clients."""
    labelled = [(example, example.label) for example in examples if example.label is not None]
    names = [str(label.call_class) for _, label in labelled]
    clients = [example.client for example, _ in labelled]
    even = balanced(names, clients)
    weights = [share * label.weight for share, (_, label) in zip(even, labelled, strict=True)]
    tags = sum(weight for weight, (_, label) in zip(weights, labelled, strict=True) if label.strong)
    guesses = sum(weights) - tags
    if guesses > tags:
        weights = [w if label.strong else w * tags / guesses for w, (_, label) in zip(weights, labelled, strict=True)]
    vectors = [example.vector for example, _ in labelled]
    opinions = [] if prior is None else _opinions(examples, prior)
    for example, name, weight in opinions:
        vectors.append(example.vector)
        names.append(name)
        weights.append(weight)
        clients.append(example.client)
    return Weighed(
        rows=Rows(vectors=vectors, labels=names, weights=weights, groups=clients),
        tags=[place for place, (_, label) in enumerate(labelled) if label.strong],
        tag_weight=tags,
        guess_weight=min(guesses, tags),
        prior_weight=sum(weight for _, _, weight in opinions),
    )


def _opinions(examples: Sequence[Example], prior: Judge) -> list[tuple[Example, str, float]]:
    each = PRIOR_CALLS / max(1, len(examples))
    return [
        (example, str(call_class), each * probability)
        for example in examples
        for call_class, probability in zip(CLASSES, prior(example.vector, example.history), strict=True)
        if probability >= _LEAST_PROBABILITY
    ]

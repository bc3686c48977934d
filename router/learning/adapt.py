"""The router's own linear model, moved by a log: its weights stay where the log says nothing else.

A stage of the model before is taken apart into its scores; what is fitted are corrections to its weights, with a
penalty on their size:

    sum of w * cross entropy(softmax(old scores + corrections * values), label) + penalty / 2 * |corrections|^2

which is the most probable model where weights are normally distributed around the old ones with variance 1 / penalty.
So what the old model knows of calls that the log has none of is kept. Values are standardised as in the old model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.model_selection import GroupKFold

from classifiers.learned import Probabilities
from classifiers.modelfile import CLASSES, softmax
from classifiers.training import Rows, short, temperature_of
from router import models
from router.learning.carrying import carried_over, judged
from router.learning.examples import Example
from router.learning.making import Data, Made, Prior, figures, measured, summary, tagged, version_of
from router.learning.rows import Weighed, weighed

Floats = NDArray[np.float64]
Scores = list[tuple[float, float, float]]

PENALTIES: Final = (1000.0, 100.0, 10.0)
"""What is tried, the most cautious first; a correction's usual size is 1 / sqrt(penalty)."""
_ITERATIONS = 300
_STAGES = ("request", "arrival")
_NAMES = [str(call_class) for call_class in CLASSES]


@dataclass(frozen=True, slots=True)
class Corrections:
    weights: Floats
    """Of shape (features, classes)."""
    intercept: Floats


@dataclass(frozen=True, slots=True)
class Stage:
    """A linear stage of a model's document as arrays; its scores are log-odds, the temperature is in the weights."""

    node: Mapping[str, Any]
    places: NDArray[np.int64]
    logarithm: NDArray[np.bool_]
    mean: Floats
    scale: Floats
    clip: float
    carry: float
    weights: Floats
    intercept: Floats

    @classmethod
    def read(cls, node: Mapping[str, Any]) -> Self:
        """`node` is a stage that was loaded before, so what is in it has been checked."""
        features, temperature = node["features"], node["calibration"]["temperature"]
        return cls(
            node=node,
            places=np.array([models.NAMES.index(each["name"]) for each in features]),
            logarithm=np.array([each["transform"] == "log1p" for each in features]),
            mean=np.array([each["mean"] for each in features], dtype=np.float64),
            scale=np.array([each["scale"] for each in features], dtype=np.float64),
            clip=float(node["clip"]),
            carry=float(node.get("carry", 0.0)),
            weights=np.array([[each["weights"][name] for name in _NAMES] for each in features]) / temperature,
            intercept=np.array([node["intercept"][name] for name in _NAMES]) / temperature,
        )

    def values(self, vectors: Sequence[Sequence[float]]) -> Floats:
        """Standardised, of shape (rows, features)."""
        table = np.asarray(vectors, dtype=np.float64)[:, self.places]
        table = np.where(self.logarithm & (table > 0), np.log1p(np.maximum(table, 0.0)), table)
        return np.asarray(np.clip((table - self.mean) / self.scale, -self.clip, self.clip))

    def scores(self, values: Floats, corrections: Corrections) -> Floats:
        moved = values @ (self.weights + corrections.weights) + self.intercept + corrections.intercept
        return np.asarray(moved)

    def fit(self, values: Floats, labels: Sequence[str], weights: Sequence[float], penalty: float) -> Corrections:
        """Intercepts move under the same penalty: the classes' shares in a log are not those of all calls."""
        rows, features = values.shape
        wanted = np.zeros((rows, len(CLASSES)))
        wanted[np.arange(rows), [_NAMES.index(label) for label in labels]] = 1.0
        before, weight = values @ self.weights + self.intercept, np.asarray(weights, dtype=np.float64)[:, None]
        # Measured from the log's own mean, so that what all of its calls have, or lack, is left alone. Else it would
        # stand in for the intercept, and speak the other way in a call that is different there.
        usual = np.average(values, axis=0, weights=weight[:, 0])
        filled = np.hstack([values - usual, np.ones((rows, 1))])

        def loss(point: Floats) -> tuple[float, Floats]:
            table = point.reshape(features + 1, len(CLASSES))
            scores = before + filled @ table
            scores -= scores.max(axis=1, keepdims=True)
            likelihood = np.exp(scores)
            total = likelihood.sum(axis=1, keepdims=True)
            entropy = float((weight * (np.log(total) - (scores * wanted).sum(axis=1, keepdims=True))).sum())
            slope = filled.T @ (weight * (likelihood / total - wanted)) + penalty * table
            return entropy + 0.5 * penalty * float((table * table).sum()), slope.ravel()

        start = np.zeros((features + 1) * len(CLASSES))
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS, "ftol": 1e-12})
        table = found.x.reshape(features + 1, len(CLASSES))
        return Corrections(table[:-1], table[-1] - usual @ table[:-1])

    def by_strangers(self, rows: Rows, examples: Sequence[Example], penalty: float, folds: int) -> Scores:
        """Scores of all the examples, each by corrections that saw no row of its client. Those of clients without a row
        are 0: nobody asks for them."""
        values, labels = self.values(rows.vectors), np.asarray(rows.labels)
        weights = np.asarray(rows.weights, dtype=np.float64)
        asked, clients = self.values([each.vector for each in examples]), np.asarray([each.client for each in examples])
        groups = np.asarray(rows.groups)
        scores = np.zeros((len(examples), len(CLASSES)))
        for known, unseen in GroupKFold(folds).split(values, labels, rows.groups):
            corrections = self.fit(values[known], labels[known].tolist(), weights[known].tolist(), penalty)
            places = np.isin(clients, np.unique(groups[unseen]))
            scores[places] = self.scores(asked[places], corrections)
        return [(float(one), float(two), float(three)) for one, two, three in scores]

    def document(self, corrections: Corrections, temperature: float) -> dict[str, Any]:
        weights, intercept = self.weights + corrections.weights, self.intercept + corrections.intercept
        return {
            **self.node,
            "features": [
                {**feature, "weights": _by_class(row)}
                for feature, row in zip(self.node["features"], weights, strict=True)
            ],
            "intercept": _by_class(intercept),
            "calibration": {"temperature": temperature},
        }


@dataclass(frozen=True, slots=True)
class Adapted:
    """A stage that was moved, and the tagged rows as it judges them when it has not seen their clients."""

    document: dict[str, Any]
    tags: list[Probabilities]


def can_be(prior: Prior) -> bool:
    return all(prior.document[name] is None or prior.document[name]["kind"] == "linear" for name in _STAGES)


def moved(data: Data, prior: Prior, penalty: float) -> Made:
    """Both stages, as far as the model before has them and the log has calls for them."""
    document = prior.document
    weights = weighed(data.examples, None)
    request = _adapted(document["request"], data.examples, weights, penalty, data.folds)
    arrival = None
    if document["arrival"] is not None and data.known:
        arrival = _adapted(document["arrival"], data.known, weighed(data.known, None), penalty, data.folds)
        known = arrival.tags
    else:
        before = judged(prior.model, data.examples).probabilities
        known = [row for each, row in zip(tagged(data.examples), before, strict=True) if each.history]
    new = {
        **document,
        "version": version_of(weights.rows),
        "request": request.document,
        "arrival": document["arrival"] if arrival is None else arrival.document,
        "trained": {**summary(data, weights, f"adapted, penalty {penalty:g}"), "before": prior.model.version},
    }
    return Made(new, measured(data, request.tags, None if document["arrival"] is None else known))


def _adapted(node: Mapping[str, Any], examples: Sequence[Example], of: Weighed, penalty: float, folds: int) -> Adapted:
    """`of`: the rows of the examples. The temperature is of calls by themselves, as that of the model before."""
    stage, rows = Stage.read(node), of.rows
    scores = stage.by_strangers(rows, examples, penalty, min(folds, len(set(rows.groups))))
    labels, weights = [rows.labels[place] for place in of.tags], [rows.weights[place] for place in of.tags]
    temperature = temperature_of(_of_tags(examples, scores), labels, weights)
    served = carried_over(examples, scores, temperature, stage.carry)
    tags = [softmax(row, 1.0) for row in _of_tags(examples, served)]
    corrections = stage.fit(stage.values(rows.vectors), rows.labels, rows.weights, penalty)
    new = stage.document(corrections, temperature)
    return Adapted({**new, "figures": figures(labels, tags), "recipe": {"kind": "linear", "penalty": penalty}}, tags)


def _of_tags(examples: Sequence[Example], scores: Scores) -> Scores:
    return [row for each, row in zip(examples, scores, strict=True) if each.label is not None and each.label.strong]


def _by_class(values: Floats) -> dict[str, float]:
    return {name: short(float(value)) for name, value in zip(_NAMES, values, strict=True)}

"""Training: labelled vectors to the document that `classifiers.learned` judges by.

The only module of this package that needs scikit-learn (the `train` extra); serving never imports it. The same rows
give the same bytes: one thread, a fixed seed, numbers rounded, keys sorted.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GroupKFold
from threadpoolctl import threadpool_limits

from classifiers.leaning import FREE, fit_leaning
from classifiers.learned import FORMAT
from classifiers.measures import accuracy, confusion, expected_calibration_error, likeliest, macro_accuracy
from classifiers.modelfile import CLASSES, softmax
from classifiers.trees import LEAVES

Floats = NDArray[np.float64]
Document = dict[str, Any]

DIGITS = 9
"""Significant digits of the exported numbers."""
NEVER = -6.0
"""Score of a class of which the training saw nothing, in log-odds."""
TEMPERATURES = (0.2, 10.0)


class TrainingError(ValueError):
    """These rows cannot be learned from; the message says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What is trained, and how."""

    kind: Literal["linear", "trees"] = "trees"
    trees: int = 60
    """Of each class."""
    learning_rate: float = 0.1
    leaves: int = LEAVES
    """Of a tree; at most eight (see `classifiers.trees`)."""
    least_rows: int = 40
    """In a leaf."""
    bins: int = 64
    """Of the values of a feature."""
    l2: float = 1.0
    features_share: float = 1.0
    """Of the features that a split may choose from, drawn anew for each."""
    strength: float = 1.0
    """Of the weights of `linear`: the inverse of the penalty, `C` of scikit-learn."""
    clip: float = 4.0
    """Largest standardised value of `linear`."""
    folds: int = 5
    """Of the cross-validation by group from which the temperature is found."""
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Labelled calls. Rows of one group (a source, a client) are never on both sides of a split."""

    vectors: Sequence[Sequence[float]]
    labels: Sequence[str]
    weights: Sequence[float]
    groups: Sequence[str]

    def checked(self, width: int) -> tuple[Floats, NDArray[np.str_], Floats]:
        """Raises `TrainingError`."""
        count = len(self.vectors)
        if not count or {len(self.labels), len(self.weights), len(self.groups)} != {count}:
            raise TrainingError("expected at least one row, and a label, a weight and a group for each")
        if any(len(vector) != width for vector in self.vectors):
            raise TrainingError(f"expected vectors of {width} numbers, one for each name")
        if unknown := sorted(set(self.labels) - set(CLASSES)):
            raise TrainingError(f"{unknown[0]!r} is no class; expected {', '.join(CLASSES)}")
        if len(set(self.labels)) < 2:
            raise TrainingError(f"all rows are {self.labels[0]}: there is nothing to tell apart")
        vectors, weights = np.asarray(self.vectors, dtype=np.float64), np.asarray(self.weights, dtype=np.float64)
        if not (np.isfinite(vectors).all() and np.isfinite(weights).all()):
            raise TrainingError("a vector or a weight holds a number that is not finite")
        return vectors, np.asarray(self.labels, dtype=np.str_), weights / weights.mean()


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The vector: what its entries are called, and how one speaks of them."""

    names: Sequence[str]
    words: Mapping[str, str]
    logarithms: frozenset[str] = frozenset()
    """Amounts whose logarithm `linear` uses; trees do not care."""
    leans: Mapping[str, str] = field(default_factory=dict)
    """For and against which classes a weight of `linear` may speak (see `classifiers.leaning`); missing: any."""
    trust: Mapping[str, float] = field(default_factory=dict)
    """How much less a weight of `linear` is penalised; missing: 1."""


def balanced(labels: Sequence[str], groups: Sequence[str], power: float = 0.5) -> list[float]:
    """Weights by which each class counts the same, and within it a group by its size to the `power` (1: every row
    alike, 0: every group alike).
    """
    sizes: dict[tuple[str, str], int] = {}
    for pair in zip(labels, groups, strict=True):
        sizes[pair] = sizes.get(pair, 0) + 1
    totals: dict[str, float] = {}
    for (label, _), size in sizes.items():
        totals[label] = totals.get(label, 0.0) + size**power
    share = len(labels) / len(totals)
    return [share * sizes[pair] ** (power - 1) / totals[pair[0]] for pair in zip(labels, groups, strict=True)]


def held_out(
    rows: Rows, recipe: Recipe, vocabulary: Vocabulary, folds: int | None = None
) -> list[tuple[float, float, float]]:
    """Scores of every row by a model that saw no row of its group; divide by a temperature to get probabilities.

    `folds` None: as the recipe says; at most one for each group. Raises `TrainingError` where there is one group only.
    """
    vectors, labels, weights = rows.checked(len(vocabulary.names))
    splits = min(folds or recipe.folds, len(set(rows.groups)))
    if splits < 2:
        raise TrainingError("all rows are of one group: nothing can be held out")
    scores = np.zeros((len(labels), len(CLASSES)))
    for known, unseen in GroupKFold(splits).split(vectors, labels, rows.groups):
        if len(set(labels[known])) < 2:
            raise TrainingError("without one of the groups all rows are of one class; more groups are needed")
        with threadpool_limits(1):
            trained = _trained(vectors[known], labels[known], weights[known], recipe, vocabulary)
            scores[unseen] = trained.scores(vectors[unseen])
    return [(float(one), float(two), float(three)) for one, two, three in scores]


def temperature_of(
    scores: Sequence[tuple[float, float, float]], labels: Sequence[str], weights: Sequence[float]
) -> float:
    """By which the scores must be divided so that the labels become as likely as possible (Guo et al. 2017)."""
    table, weight = np.asarray(scores), np.asarray(weights, dtype=np.float64)
    right = np.array([CLASSES.index(label) for label in labels])

    def loss(temperature: float) -> float:
        scaled = table / temperature
        scaled -= scaled.max(axis=1, keepdims=True)
        likelihood = scaled[np.arange(len(right)), right] - np.log(np.exp(scaled).sum(axis=1))
        return float(-(weight * likelihood).sum() / weight.sum())

    return round(float(minimize_scalar(loss, bounds=TEMPERATURES, method="bounded").x), 3)


def fit_stage(rows: Rows, recipe: Recipe, vocabulary: Vocabulary) -> Document:
    """One stage of the document. Raises `TrainingError`.

    Rows of a single group are no basis for a temperature: it is 1 then, and `figures` are missing.
    """
    vectors, labels, weights = rows.checked(len(vocabulary.names))
    if recipe.leaves > LEAVES:
        raise TrainingError(f"a tree has at most {LEAVES} leaves, not {recipe.leaves}")
    with threadpool_limits(1):
        trained = _trained(vectors, labels, weights, recipe, vocabulary)
    temperature, figures = 1.0, {}
    if len(set(rows.groups)) > 1:
        scores = held_out(rows, recipe, vocabulary)
        temperature = temperature_of(scores, rows.labels, rows.weights)
        figures = _figures([softmax(row, temperature) for row in scores], rows)
    return {
        **trained.document(vectors, weights, vocabulary),
        "calibration": {"temperature": temperature},
        "figures": {**figures, "groups": len(set(rows.groups)), "rows": len(labels)},
        "recipe": asdict(recipe),
    }


def fit(
    request: Rows,
    arrival: Rows | None,
    recipe: Recipe,
    vocabulary: Vocabulary,
    *,
    version: str,
    only_with_arrival: frozenset[str] = frozenset(),
    trained: Mapping[str, object] | None = None,
) -> Document:
    """The whole document. `only_with_arrival` names the entries that the stage for single calls must not look at.

    Raises `TrainingError`.
    """
    request.checked(len(vocabulary.names))
    blind = [name in only_with_arrival for name in vocabulary.names]
    single = [[0.0 if out else value for out, value in zip(blind, vector, strict=True)] for vector in request.vectors]
    return {
        "format": FORMAT,
        "version": version,
        "classes": [str(call_class) for call_class in CLASSES],
        "request": fit_stage(replace(request, vectors=single), recipe, vocabulary),
        "arrival": None if arrival is None else fit_stage(arrival, recipe, vocabulary),
        "trained": dict(trained or {}),
    }


def _figures(probabilities: Sequence[tuple[float, float, float]], rows: Rows) -> Document:
    table = confusion(rows.labels, [likeliest(row) for row in probabilities])
    return {
        "accuracy": round(accuracy(table), 4),
        "macro_accuracy": round(macro_accuracy(table), 4),
        "expected_calibration_error": round(expected_calibration_error(rows.labels, probabilities), 4),
    }


def short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _cuts(column: Floats, bins: int) -> Floats:
    """Between which values a tree may ask: between neighbours, or at quantiles where there are many values."""
    values = np.unique(column)
    if len(values) > bins:
        values = np.unique(np.quantile(column, np.linspace(0, 1, bins), method="nearest"))
    return np.unique([short((low + high) / 2) for low, high in itertools.pairwise(values.tolist())])


def _by_class(values: Sequence[float]) -> dict[str, float]:
    return {str(call_class): short(float(value)) for call_class, value in zip(CLASSES, values, strict=True)}


def _feature(column: Floats, weights: Floats, name: str, vocabulary: Vocabulary) -> Document:
    flag = bool(np.isin(column, (0.0, 1.0)).all())
    usual = float(np.average(column, weights=weights)) if flag else float(np.median(column))
    return {
        "name": name,
        "words": vocabulary.words.get(name, name.replace("_", " ")),
        "kind": "flag" if flag else "amount",
        "usual": short(usual),
    }


def _trained(
    vectors: Floats, labels: NDArray[np.str_], weights: Floats, recipe: Recipe, vocabulary: Vocabulary
) -> _Linear | _Trees:
    if recipe.kind == "linear":
        return _Linear(vectors, labels, weights, recipe, vocabulary)
    return _Trees(vectors, labels, weights, recipe)


class _Linear:
    """Logistic regression on standardised values."""

    def __init__(
        self, vectors: Floats, labels: NDArray[np.str_], weights: Floats, recipe: Recipe, vocabulary: Vocabulary
    ) -> None:
        self._clip = recipe.clip
        self._logarithms = np.array([name in vocabulary.logarithms for name in vocabulary.names])
        transformed = self._transformed(vectors)
        mean = np.average(transformed, axis=0, weights=weights)
        scale = np.sqrt(np.average((transformed - mean) ** 2, axis=0, weights=weights))
        # Rounded before the fit, so that what is exported is what was fitted.
        self._mean = np.array([short(value) for value in mean])
        self._scale = np.array([short(value) for value in scale])
        self._used = np.flatnonzero(self._scale > 1e-9)
        if not len(self._used):
            raise TrainingError("all rows are alike: there is nothing to tell them apart by")
        names = [vocabulary.names[int(place)] for place in self._used]
        known = np.unique(labels)
        places = [[str(call_class) for call_class in CLASSES].index(str(label)) for label in known]
        table, intercept = fit_leaning(
            self._standardised(vectors),
            np.searchsorted(known, labels).tolist(),
            weights,
            leans=["".join(vocabulary.leans.get(name, FREE)[place] for place in places) for name in names],
            trust=[vocabulary.trust.get(name, 1.0) for name in names],
            strength=recipe.strength,
            classes=len(known),
        )
        self._weights = np.zeros((len(CLASSES), len(self._used)))
        self._intercept = np.full(len(CLASSES), NEVER)
        self._weights[places], self._intercept[places] = table, intercept

    def _transformed(self, vectors: Floats) -> Floats:
        return np.where(self._logarithms & (vectors > 0), np.log1p(np.maximum(vectors, 0.0)), vectors)

    def _standardised(self, vectors: Floats) -> Floats:
        values = (self._transformed(vectors)[:, self._used] - self._mean[self._used]) / self._scale[self._used]
        return np.asarray(np.clip(values, -self._clip, self._clip))

    def scores(self, vectors: Floats) -> Floats:
        return np.asarray(self._standardised(vectors) @ self._weights.T + self._intercept)

    def document(self, vectors: Floats, weights: Floats, vocabulary: Vocabulary) -> Document:
        features = [
            {
                **_feature(vectors[:, place], weights, vocabulary.names[int(place)], vocabulary),
                "transform": "log1p" if self._logarithms[place] else "none",
                "mean": float(self._mean[place]),
                "scale": float(self._scale[place]),
                "weights": _by_class(self._weights[:, column].tolist()),
            }
            for column, place in enumerate(self._used)
        ]
        return {
            "kind": "linear",
            "clip": self._clip,
            "features": features,
            "intercept": _by_class(self._intercept.tolist()),
        }


class _Trees:
    """Boosted trees of a few leaves (scikit-learn's histogram gradient boosting)."""

    def __init__(self, vectors: Floats, labels: NDArray[np.str_], weights: Floats, recipe: Recipe) -> None:
        # Binned here: what scikit-learn would do with weighted rows takes longer than growing the trees, and cuts that
        # are rounded before the fit separate the same rows after the export.
        self._cuts = [_cuts(column, recipe.bins) for column in vectors.T]
        self._model = HistGradientBoostingClassifier(
            max_iter=recipe.trees,
            learning_rate=recipe.learning_rate,
            max_leaf_nodes=recipe.leaves,
            min_samples_leaf=recipe.least_rows,
            l2_regularization=recipe.l2,
            max_features=recipe.features_share,
            early_stopping=False,
            random_state=recipe.seed,
        ).fit(self._binned(vectors), labels, sample_weight=weights)
        names = [str(call_class) for call_class in CLASSES]
        self._places = [names.index(str(label)) for label in self._model.classes_]

    def _binned(self, vectors: Floats) -> Floats:
        """Of each value how many cuts lie below it."""
        columns = [np.searchsorted(cuts, column) for cuts, column in zip(self._cuts, vectors.T, strict=True)]
        return np.column_stack(columns).astype(np.float64)

    def scores(self, vectors: Floats) -> Floats:
        decision = self._model.decision_function(self._binned(vectors))
        scores = np.full((len(vectors), len(CLASSES)), NEVER)
        if decision.ndim == 1:  # two classes: the log-odds of the second
            scores[:, self._places] = np.column_stack([np.zeros(len(decision)), decision])
        else:
            scores[:, self._places] = decision
        return scores

    def document(self, vectors: Floats, weights: Floats, vocabulary: Vocabulary) -> Document:
        # Where the trees are kept is no public interface of scikit-learn; a test compares what comes out with it.
        grown, base = self._model._predictors, self._model._baseline_prediction.ravel()
        ours = self._places if len(self._places) > 2 else self._places[1:]
        used = sorted(
            {int(node["feature_idx"]) for row in grown for tree in row for node in tree.nodes if not node["is_leaf"]}
        )
        bases = [NEVER] * len(CLASSES)
        for place in self._places:
            bases[place] = 0.0
        trees: dict[str, list[Document]] = {str(call_class): [] for call_class in CLASSES}
        for column, place in enumerate(ours):
            bases[place] = float(base[column])
            trees[CLASSES[place]] = [_tree(row[column].nodes, used, self._cuts) for row in grown]
        if not used:
            raise TrainingError("no feature tells the classes apart; more rows, or fewer in a leaf, are needed")
        return {
            "kind": "trees",
            "base": _by_class(bases),
            "features": [_feature(vectors[:, place], weights, vocabulary.names[place], vocabulary) for place in used],
            "trees": trees,
        }


def _tree(nodes: Any, used: Sequence[int], cuts: Sequence[Floats]) -> Document:
    """Children come after their parents in scikit-learn's arrays too, but that is not promised: they are renumbered."""
    order, waiting = [], [0]
    while waiting:
        number = waiting.pop()
        order.append(number)
        if not nodes[number]["is_leaf"]:
            waiting += (int(nodes[number]["right"]), int(nodes[number]["left"]))
    new = {number: place for place, number in enumerate(order)}
    value = {number: float(nodes[number]["value"]) for number in order}
    for number in reversed(order):
        if not nodes[number]["is_leaf"]:
            # scikit-learn scales leaves by the learning rate and leaves the nodes above them as they were.
            left, right = int(nodes[number]["left"]), int(nodes[number]["right"])
            few, many = int(nodes[left]["count"]), int(nodes[right]["count"])
            value[number] = (few * value[left] + many * value[right]) / (few + many)
    inner = [not nodes[number]["is_leaf"] for number in order]
    return {
        "feature": [used.index(int(nodes[n]["feature_idx"])) if i else -1 for n, i in zip(order, inner, strict=True)],
        "threshold": [_threshold(nodes[n], cuts) if i else 0.0 for n, i in zip(order, inner, strict=True)],
        "left": [new[int(nodes[n]["left"])] if i else -1 for n, i in zip(order, inner, strict=True)],
        "right": [new[int(nodes[n]["right"])] if i else -1 for n, i in zip(order, inner, strict=True)],
        "value": [short(value[n]) for n in order],
    }


def _threshold(node: Any, cuts: Sequence[Floats]) -> float:
    """A comparison of bins as one of values: `bin <= 2.5`, at most two cuts lie below, is `value <= third cut`."""
    return float(cuts[int(node["feature_idx"])][int(node["num_threshold"])])

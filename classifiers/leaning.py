"""Multinomial logistic regression whose weights keep to what is known beforehand. For training only.

Minimises, by L-BFGS-B, the weighted cross-entropy of softmax(b + Z w) plus a quadratic penalty on the weights, where
the sign of each weight may be bounded: a lean `+-*` lets a feature speak only for the first class and only against the
second. A feature that is trusted more is penalised less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]

FREE = "***"
_BOUNDS = {"+": (0.0, None), "-": (None, 0.0), "*": (None, None)}
_ITERATIONS = 1000


def fit_leaning(
    values: Floats,
    labels: Sequence[int],
    weights: Floats,
    *,
    leans: Sequence[str],
    trust: Sequence[float],
    strength: float,
    classes: int = 3,
) -> tuple[Floats, Floats]:
    """Weights of shape (classes, features) and intercepts of shape (classes,).

    `values` are standardised, of shape (rows, features); `labels` number the classes. `strength` is the inverse of the
    penalty, as `C` of scikit-learn. A class that has no rows gets an intercept of minus infinity in the limit; callers
    leave such classes out.
    """
    rows, features = values.shape
    scaled = values * np.asarray(trust)
    share = weights / weights.sum()
    penalty = 1.0 / (strength * weights.sum())
    wanted = np.zeros((rows, classes))
    wanted[np.arange(rows), labels] = 1.0
    size = features * classes

    def loss(point: Floats) -> tuple[float, Floats]:
        table, intercept = point[:size].reshape(features, classes), point[size:]
        scores = scaled @ table + intercept
        scores -= scores.max(axis=1, keepdims=True)
        likelihood = np.exp(scores)
        total = likelihood.sum(axis=1, keepdims=True)
        error = (likelihood / total - wanted) * share[:, None]
        entropy = -float(share @ ((scores * wanted).sum(axis=1) - np.log(total[:, 0])))
        slope = np.concatenate([(scaled.T @ error + penalty * table).ravel(), error.sum(axis=0)])
        return entropy + 0.5 * penalty * float((table * table).sum()), slope

    bounds: list[Any] = [_BOUNDS[sign] for lean in leans for sign in lean]
    found = minimize(
        loss,
        np.zeros(size + classes),
        jac=True,
        method="L-BFGS-B",
        bounds=[*bounds, *[(None, None)] * classes],
        options={"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS, "ftol": 1e-13, "gtol": 1e-8},
    )
    table = found.x[:size].reshape(features, classes) * np.asarray(trust)[:, None]
    return np.asarray(table.T), np.asarray(found.x[size:])

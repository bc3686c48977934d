"""Which kind of model judges unseen sources best: all of them on the same rows, under the same folds by source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from threadpoolctl import threadpool_limits

from bench.judgement.data import Row
from bench.judgement.train import REQUEST, VOCABULARY
from classifiers.modelfile import CLASSES, softmax
from classifiers.training import Recipe, Rows, held_out, temperature_of

Scores = list[tuple[float, float, float]]

FOLDS: Final = 8
_BORDER_CHARS: Final = 300
_TREES: Final = Recipe(kind="trees", trees=60, folds=FOLDS)
_SURE: Final = 8.0
"""Score of a class that a rule names, in log-odds."""


def by_rule(rows: Iterable[Row]) -> Scores:
    """Tools: mixed; else a stream: ttft; else throughput."""
    found = []
    for row in rows:
        features = row.features
        place = 1 if features.tools else 0 if features.stream else 2
        found.append((_SURE * (place == 0), _SURE * (place == 1), _SURE * (place == 2)))
    return found


def borders(record: Mapping[str, Any]) -> str:
    """Both ends of the system text and of the newest message, as the n-grams see them."""
    body = record["body"]
    messages = body.get("messages") or [{"role": "user", "content": body.get("prompt")}]
    texts = [message.get("content") for message in (messages[0], messages[-1])]
    parts = [text if isinstance(text, str) else "" for text in texts]
    return "\n\n".join(text[:_BORDER_CHARS] + "\n" + text[-_BORDER_CHARS:] for text in parts)


def by_ngrams(rows: Rows, texts: Sequence[str], folds: int = FOLDS) -> Scores:
    """Logistic regression on hashed n-grams of three to five characters."""
    table = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 5), n_features=2**16, norm="l2").transform(texts)
    labels, weights = np.asarray(rows.labels), np.asarray(rows.weights)
    order = [str(call_class) for call_class in CLASSES]
    scores: NDArray[np.float64] = np.zeros((len(labels), len(CLASSES)))
    with threadpool_limits(1):
        for known, unseen in GroupKFold(folds).split(labels, labels, rows.groups):
            model = LogisticRegression(C=1.0, max_iter=60, tol=1e-3)
            model.fit(table[known], labels[known], sample_weight=weights[known])
            columns = [list(model.classes_).index(name) for name in order]
            scores[unseen] = model.decision_function(table[unseen])[:, columns]
    return [(float(one), float(two), float(three)) for one, two, three in scores]


def added(one: Scores, other: Scores) -> Scores:
    """Two models with one voice each."""
    return [((a + d) / 2, (b + e) / 2, (c + f) / 2) for (a, b, c), (d, e, f) in zip(one, other, strict=True)]


def candidates(rows: Rows, texts: Sequence[str]) -> dict[str, Callable[[], Scores]]:
    """What is compared. Each call trains from the beginning."""
    free = replace(VOCABULARY, leans={}, trust={})
    made: dict[str, Scores] = {}

    def once(name: str, make: Callable[[], Scores]) -> Scores:
        if name not in made:
            made[name] = make()
        return made[name]

    def leaning() -> Scores:
        return once("leaning", lambda: held_out(rows, replace(REQUEST, folds=FOLDS), VOCABULARY))

    def trees() -> Scores:
        return once("trees", lambda: held_out(rows, _TREES, VOCABULARY))

    def ngrams() -> Scores:
        return once("ngrams", lambda: by_ngrams(rows, texts))

    return {
        "logistic regression, signs bounded (shipped)": leaning,
        "logistic regression, signs free": lambda: held_out(rows, replace(REQUEST, folds=FOLDS), free),
        "boosted trees, 60 of 8 leaves a class": trees,
        "hashed character n-grams of the borders": ngrams,
        "shipped and trees together": lambda: added(leaning(), trees()),
        "shipped and n-grams together": lambda: added(leaning(), ngrams()),
    }


def calibrated(scores: Scores, rows: Rows) -> list[tuple[float, float, float]]:
    """Probabilities at the temperature that fits them best."""
    temperature = temperature_of(scores, rows.labels, rows.weights)
    return [softmax(row, temperature) for row in scores]

"""A model fitted on the log alone, with the opinions of the model before as rows among the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from classifiers.learned import Probabilities
from classifiers.modelfile import softmax
from classifiers.training import Recipe, Rows, Vocabulary, fit, held_out, temperature_of
from router import models
from router.learning.making import Data, Made, Prior, figures, measured, summary, version_of
from router.learning.rows import Weighed, weighed

Kind = Literal["linear", "trees"]


def ways(kind: Kind) -> Iterator[tuple[str, Vocabulary]]:
    """What a person knows beforehand of a feature (that tools belong to agents) keeps a fit on few clients from
    believing what is so by chance. Where a site does otherwise, it keeps it from seeing that: so both are tried."""
    plain = Vocabulary(names=models.NAMES, words=models.WORDS, logarithms=models.LOGARITHMS)
    if kind == "trees":
        yield "trees of the log", plain
    else:
        yield "by the log and what is known beforehand", replace(plain, leans=models.LEANS, trust=models.TRUST)
        yield "by the log alone", plain


def fitted(data: Data, prior: Prior | None, kind: Kind, way: str, vocabulary: Vocabulary) -> Made:
    """Raises `TrainingError`."""
    judge = None if prior is None else prior.model.judge
    request = weighed(data.examples, judge)
    arrival = weighed(data.known, judge) if data.known else None
    # Logs are smaller than what the router's own model is trained on: smaller leaves.
    recipe = Recipe(kind=kind, strength=0.3, least_rows=max(10, min(40, len(data.examples) // 100)), folds=data.folds)
    document = fit(
        _as_one_group(request.rows),
        None if arrival is None else _as_one_group(arrival.rows),
        recipe,
        vocabulary,
        version=version_of(request.rows),
        only_with_arrival=models.ONLY_WITH_ARRIVAL,
        trained=summary(data, request, way),
    )
    alone = _by_strangers(document["request"], _blind(request), recipe, vocabulary)
    known = None if arrival is None else _by_strangers(document["arrival"], arrival, recipe, vocabulary)
    return Made(document, measured(data, alone, known))


def _by_strangers(stage: dict[str, Any], of: Weighed, recipe: Recipe, vocabulary: Vocabulary) -> list[Probabilities]:
    """Tagged rows by models that saw no row of their group. The temperature of the stage is set by the same, since tags
    are truer than guesses and opinions."""
    rows = of.rows
    scores = held_out(rows, recipe, vocabulary)
    tags = [scores[place] for place in of.tags]
    labels, weights = [rows.labels[place] for place in of.tags], [rows.weights[place] for place in of.tags]
    temperature = stage["calibration"]["temperature"] = temperature_of(tags, labels, weights)
    found = [softmax(row, temperature) for row in tags]
    stage["figures"] |= figures(labels, found)
    return found


def _as_one_group(rows: Rows) -> Rows:
    """So that `fit` holds nothing out: that is done once, in `_by_strangers`, where tags alone are measured."""
    return replace(rows, groups=["all"] * len(rows.labels))


def _blind(of: Weighed) -> Weighed:
    """Without what is known of the client, as the first stage is trained."""
    hidden = [name in models.ONLY_WITH_ARRIVAL for name in models.NAMES]
    vectors = [[0.0 if out else value for out, value in zip(hidden, row, strict=True)] for row in of.rows.vectors]
    return replace(of, rows=replace(of.rows, vectors=vectors))

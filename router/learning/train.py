"""A model from decision logs: read, label, weigh, fit, and measure on clients that the model has not seen.

Needs scikit-learn, through `classifiers.training`; only the command imports this module, and only when it is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final, Literal

from classifiers.api import CallClass
from classifiers.learned import Learned, Probabilities
from classifiers.measures import accuracy, confusion, expected_calibration_error, likeliest, macro_accuracy
from classifiers.modelfile import softmax
from classifiers.training import Recipe, Rows, TrainingError, Vocabulary, fit, held_out, temperature_of
from router import models
from router.learning.examples import Example, Measured, examples_of, judged, tagged_clients
from router.learning.labels import counted
from router.learning.lines import Log
from router.learning.rows import LEAST_OF_A_CLASS, LEAST_TAGS, PRIOR_CALLS, Judge, Weighed, weighed

_BLOCKS: Final = 10
"""Stretches of time into which calls are split that cannot be split by client."""
_MOST_FOLDS: Final = 6
_LEAST_CLIENTS: Final = 3
"""With tagged calls of a class, so that it can be held out by client."""
_LEAST_WITH_HISTORY: Final = 200

Kind = Literal["linear", "trees"]
OnStep = Callable[[str], None]
"""Told what is done next."""


@dataclass(slots=True, kw_only=True)
class Trained:
    """The document, and what there is to say about it."""

    document: dict[str, Any]
    log: Log
    used: int
    clients: int
    signs: Mapping[tuple[str, CallClass], int]
    measured: Measured
    """The new model, on clients that it had not seen."""
    before: Measured | None
    """The model that comes with the router, on the same calls."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    """What is fitted, and what is measured by."""

    examples: Sequence[Example]
    known: Sequence[Example]
    """Those of clients that were known."""
    request: Weighed
    arrival: Weighed | None
    """`known`, where there are enough of them."""
    trained: Mapping[str, object]
    """For the document."""


def train(log: Log, kind: Kind, prior: Learned | None, on_step: OnStep = lambda step: None) -> Trained:
    """Raises `TrainingError` where the log does not suffice; its text says what is missing."""
    examples = examples_of(log)
    _check(examples)
    clients = tagged_clients(examples)
    examples, notes = _grouped(examples)
    if prior is None:
        notes.append("No model comes with this version, so nothing stands in for calls that the log does not have.")
    folds = min(_MOST_FOLDS, len({example.client for example in examples}))
    recipe = recipe_of(kind, len(examples), folds)
    judge: Judge | None = None if prior is None else prior.judge
    known = [example for example in examples if example.history]
    with_history = sum(example.label is not None and example.label.strong for example in known)
    data = _Data(
        examples=examples,
        known=known,
        request=weighed(examples, judge),
        arrival=weighed(known, judge) if with_history >= _LEAST_WITH_HISTORY else None,
        trained={"calls": len(examples), "clients": clients, "vector": models.VECTOR},
    )
    if data.arrival is None:
        notes.append(f"Only {with_history} tagged calls came from a client that was known: one stage for all calls.")
    tried = []
    for vocabulary, way in vocabularies_of(kind):
        on_step(f"fitting and measuring {way}")
        tried.append(_fitted(data, recipe, vocabulary, way))
    document, measured = max(tried, key=lambda made: _macro(made[1]))  # of equals the first
    return Trained(
        document=document,
        log=log,
        used=len(examples),
        clients=clients,
        signs=counted(example.label for example in examples),
        measured=measured,
        before=None if prior is None else judged(prior, examples),
        notes=notes,
    )


def recipe_of(kind: Kind, calls: int, folds: int) -> Recipe:
    """Logs are smaller than what the router's own model is trained on: smaller leaves, stronger penalty."""
    return Recipe(kind=kind, strength=0.3, least_rows=max(10, min(40, calls // 100)), folds=folds)


def vocabularies_of(kind: Kind) -> list[tuple[Vocabulary, str]]:
    """Ways to fit, of which the one that is best on clients it has not seen is taken.

    What a person knows beforehand of a feature (that tools belong to agents) keeps a fit on few clients from believing
    what is so by chance. Where a site does otherwise, it keeps it from seeing that.
    """
    plain = Vocabulary(names=models.NAMES, words=models.WORDS, logarithms=models.LOGARITHMS)
    if kind == "trees":
        return [(plain, "trees")]
    leaning = replace(plain, leans=models.LEANS, trust=models.TRUST)
    return [(leaning, "with what is known beforehand"), (plain, "by the log alone")]


def _fitted(data: _Data, recipe: Recipe, vocabulary: Vocabulary, way: str) -> tuple[dict[str, Any], Measured]:
    request, arrival = data.request, data.arrival
    document = fit(
        _as_one_group(request.rows),
        None if arrival is None else _as_one_group(arrival.rows),
        recipe,
        vocabulary,
        version=_version(request.rows),
        only_with_arrival=models.ONLY_WITH_ARRIVAL,
        trained={**data.trained, **_summary(request), "way": way},
    )
    return document, _measured(document, data, recipe, vocabulary)


def _macro(measured: Measured) -> float:
    return macro_accuracy(confusion(measured.labels, [likeliest(row) for row in measured.probabilities]))


def _check(examples: Sequence[Example]) -> None:
    by_class = dict.fromkeys(CallClass, 0)
    for example in examples:
        if example.label is not None and example.label.strong:
            by_class[example.label.call_class] += 1
    tags = sum(by_class.values())
    enough = [call_class for call_class, count in by_class.items() if count >= LEAST_OF_A_CLASS]
    if tags >= LEAST_TAGS and len(enough) >= 2:
        return
    found = ", ".join(f"{count} {call_class}" for call_class, count in by_class.items())
    raise TrainingError(
        f"the log has {tags} tagged calls ({found}); training needs {LEAST_TAGS}, with {LEAST_OF_A_CLASS} of at "
        "least two classes. Let clients that know what they are send x-twolane-class, or write rules for them, and "
        "log on; until then the model that comes with the router is the better one"
    )


def _grouped(examples: list[Example]) -> tuple[list[Example], list[str]]:
    """Examples whose `client` is what splits go by, and what to say about it.

    A class that hardly any client has could not be held out without its clients: the calls of these are split by time
    as well.
    """
    of_class: dict[CallClass, set[str]] = {}
    for each in examples:
        if each.label is not None and each.label.strong:
            of_class.setdefault(each.label.call_class, set()).add(each.client)
    rare = {call_class: clients for call_class, clients in of_class.items() if len(clients) < _LEAST_CLIENTS}
    if not rare:
        return examples, []
    split = set().union(*rare.values())
    size = -(-len(examples) // _BLOCKS)
    grouped = [
        replace(each, client=f"{each.client} {place // size}") if each.client in split else each
        for place, each in enumerate(examples)
    ]
    found = ", ".join(f"{call_class} by {len(clients)}" for call_class, clients in rare.items())
    return grouped, [
        f"Few clients tag their calls ({found}): these were split by time, which flatters, since other clients call "
        "otherwise."
    ]


def _measured(document: dict[str, Any], data: _Data, recipe: Recipe, vocabulary: Vocabulary) -> Measured:
    """Tagged calls by models that saw no call of their client; the temperature is set by them as well, since tags are
    truer than guesses and opinions."""
    found = _by_strangers(document["request"], _blind(data.request), recipe, vocabulary)
    if data.arrival is not None:
        rest = iter(_by_strangers(document["arrival"], data.arrival, recipe, vocabulary))
        tagged = [each for each in data.examples if each.label is not None and each.label.strong]
        found = [next(rest) if each.history else row for each, row in zip(tagged, found, strict=True)]
    rows = data.request.rows
    return Measured(labels=[rows.labels[place] for place in data.request.tags], probabilities=found)


def _by_strangers(
    stage: dict[str, Any], weighed_rows: Weighed, recipe: Recipe, vocabulary: Vocabulary
) -> list[Probabilities]:
    rows = weighed_rows.rows
    scores = held_out(rows, recipe, vocabulary)
    tagged = [scores[place] for place in weighed_rows.tags]
    temperature = temperature_of(
        tagged,
        [rows.labels[place] for place in weighed_rows.tags],
        [rows.weights[place] for place in weighed_rows.tags],
    )
    stage["calibration"]["temperature"] = temperature
    found = [softmax(row, temperature) for row in tagged]
    stage["figures"] |= figures([rows.labels[place] for place in weighed_rows.tags], found)
    return found


def _as_one_group(rows: Rows) -> Rows:
    """So that `fit` holds nothing out: that is done once, in `_by_strangers`, where tags alone are measured."""
    return replace(rows, groups=["all"] * len(rows.labels))


def figures(labels: Sequence[str], rows: Sequence[Probabilities]) -> dict[str, float]:
    """Of tagged calls."""
    table = confusion(labels, [likeliest(row) for row in rows])
    return {
        "accuracy": round(accuracy(table), 4),
        "macro_accuracy": round(macro_accuracy(table), 4),
        "expected_calibration_error": round(expected_calibration_error(labels, rows), 4),
    }


def _blind(weighed_rows: Weighed) -> Weighed:
    """Without what is known of the client, as the first stage is trained."""
    hidden = [name in models.ONLY_WITH_ARRIVAL for name in models.NAMES]
    rows = weighed_rows.rows
    vectors = [[0.0 if out else value for out, value in zip(hidden, row, strict=True)] for row in rows.vectors]
    return replace(weighed_rows, rows=replace(rows, vectors=vectors))


def _summary(request: Weighed) -> dict[str, object]:
    return {
        "tags": len(request.tags),
        "weights": {
            "guesses": round(request.guess_weight, 1),
            "prior": round(request.prior_weight, 1),
            "prior_calls": PRIOR_CALLS,
            "tags": round(request.tag_weight, 1),
        },
    }


def _version(rows: Rows) -> str:
    """The same for the same rows."""
    digest = sha256()
    for label, weight in zip(rows.labels, rows.weights, strict=True):
        digest.update(f"{label} {weight:.9g}\n".encode())
    return f"own-{digest.hexdigest()[:8]}"


def learned_of(document: Mapping[str, object]) -> Learned:
    """The model of a document that was just made; raises `ModelError` where it could not be loaded again."""
    return Learned.parse(document, models.NAMES)

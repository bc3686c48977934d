"""A model from decision logs: read, label, weigh, fit, and measure on clients that the model has not seen.

Needs scikit-learn, through `classifiers.training`; only the command imports this module, and only when it is run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from classifiers.api import CallClass
from classifiers.learned import Learned
from classifiers.training import TrainingError
from router import models
from router.learning import adapt, fresh
from router.learning.carrying import judged
from router.learning.examples import Example, Measured, examples_of, tagged_clients
from router.learning.fresh import Kind
from router.learning.labels import counted
from router.learning.lines import Log
from router.learning.making import Data, Made, Prior, tagged
from router.learning.rows import LEAST_OF_A_CLASS, LEAST_TAGS

_BLOCKS: Final = 10
"""Stretches of time into which calls are split that cannot be split by client."""
_MOST_FOLDS: Final = 6
_LEAST_CLIENTS: Final = 3
"""With tagged calls of a class, so that it can be held out by client."""
_LEAST_WITH_HISTORY: Final = 200
"""Tagged calls of known clients, for a stage of their own."""
_FEW: Final = 100
"""Tagged calls of a class, with fewer of which what is said of it depends on chance."""

Make = Callable[[Data], Made]
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
    later: Mapping[str, Measured]
    """On the last calls of the log, by name."""
    notes: list[str] = field(default_factory=list)


def train(log: Log, kind: Kind, prior: Prior | None, on_step: OnStep = lambda step: None) -> Trained:
    """Raises `TrainingError` where the log does not suffice; its text says what is missing."""
    examples = examples_of(log)
    _check(examples, log)
    clients = tagged_clients(examples)
    examples, notes = _grouped(examples)
    known = [example for example in examples if example.history]
    if (count := len(tagged(known))) < _LEAST_WITH_HISTORY:
        notes.append(f"Only {count} tagged calls came from known clients, too few to learn from what these did before.")
        known = []
    notes += _rare(examples)
    folds = min(_MOST_FOLDS, len({example.client for example in examples}))
    data = Data(examples=examples, known=known, clients=clients, folds=folds)
    made = []
    for way, make in ways(kind, prior):
        on_step(way)
        made.append((make(data), make))
    best, make = max(made, key=lambda each: each[0].macro_accuracy)  # of equals the first
    on_step("the last calls by a model of those before")
    return Trained(
        document=best.document,
        log=log,
        used=len(examples),
        clients=clients,
        signs=counted(example.label for example in examples),
        measured=best.measured,
        before=None if prior is None else judged(prior.model, examples),
        later=_later(data, make, prior),
        notes=notes,
    )


def _later(data: Data, make: Make, prior: Prior | None) -> dict[str, Measured]:
    """The last fifth of the calls by a model of those before: mostly the same clients, as it will be when it is used.
    Empty where the calls before are too few to make one."""
    early = data.examples[: -_last(data.examples)]
    folds = min(data.folds, len({each.client for each in early}))
    known = [each for each in early if each.history]
    known = known if len(tagged(known)) >= _LEAST_WITH_HISTORY else []
    try:
        model = learned_of(make(replace(data, examples=early, known=known, folds=folds)).document)
    except TrainingError:
        return {}
    found = {} if prior is None else {"builtin, last calls": judged(prior.model, data.examples, len(early))}
    return {**found, "new without them, last calls": judged(model, data.examples, len(early))}


def _last(examples: Sequence[Example]) -> int:
    """How many are the last calls."""
    return -(-len(examples) // 5)


def ways(kind: Kind, prior: Prior | None) -> list[tuple[str, Make]]:
    """Ways to make a model, of which the one that is best on clients it has not seen is taken."""
    if kind == "linear" and prior is not None and adapt.can_be(prior):
        return [
            (f"builtin, adapted (penalty {penalty:g})", partial(adapt.moved, prior=prior, penalty=penalty))
            for penalty in adapt.PENALTIES
        ]
    return [
        (way, partial(fresh.fitted, prior=prior, kind=kind, way=way, vocabulary=vocabulary))
        for way, vocabulary in fresh.ways(kind)
    ]


def _check(examples: Sequence[Example], log: Log) -> None:
    by_class = dict.fromkeys(CallClass, 0)
    for example in tagged(examples):
        if example.label is not None:
            by_class[example.label.call_class] += 1
    tags = sum(by_class.values())
    enough = [call_class for call_class, count in by_class.items() if count >= LEAST_OF_A_CLASS]
    if tags >= LEAST_TAGS and len(enough) >= 2:
        return
    found = ", ".join(f"{count} {call_class}" for call_class, count in by_class.items())
    without = "".join(f", without {count} lines ({reason})" for reason, count in log.passed_over.most_common())
    raise TrainingError(
        f"the log has {tags} tagged calls ({found}){without}; training needs {LEAST_TAGS}, with {LEAST_OF_A_CLASS} of "
        "at least two classes. Let clients that know what they are send x-twolane-class, or write rules for them, and "
        "log on; until then the model that comes with the router is the better one"
    )


def _rare(examples: Sequence[Example]) -> list[str]:
    """What to say about classes of which there are hardly any calls, or none to learn from before the last ones."""
    found = Counter(each.label.call_class for each in tagged(examples) if each.label is not None)
    early = examples[: -_last(examples)]
    known = {each.label.call_class for each in tagged(early) if each.label is not None}
    few = ", ".join(f"{found[each]} {each}" for each in CallClass if 0 < found[each] < _FEW)
    late = ", ".join(each for each in CallClass if found[each] and each not in known)
    notes = []
    if few:
        off = min(found[each] for each in CallClass if found[each]) ** -0.5
        notes.append(
            f"Few calls are tagged of a class ({few}): figures of so few are off by about {off:.1f} by chance, and "
            "flatter, since the way to make a model is chosen by them."
        )
    if late:
        notes.append(f"Only the last calls are tagged {late}: a model of those before them cannot know that class.")
    return notes


def _grouped(examples: list[Example]) -> tuple[list[Example], list[str]]:
    """Examples whose `client` is what splits go by, and what to say about it.

    A class that hardly any client has could not be held out without its clients: the calls of these are split by time
    as well.
    """
    of_class: dict[CallClass, set[str]] = {}
    for each in tagged(examples):
        if each.label is not None:
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


def learned_of(document: Mapping[str, object]) -> Learned:
    """The model of a document that was just made; raises `ModelError` where it could not be loaded again."""
    return Learned.parse(document, models.NAMES)

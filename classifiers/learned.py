"""The learned model: a readable document, judged in plain Python.

    {"format": 1, "version": "...", "classes": ["ttft", "mixed", "throughput"],
     "request": STAGE, "arrival": STAGE, "trained": {...}}

A stage is one model. `request` judges a call by itself; `arrival`, which may be missing, judges calls of clients that
are known already. A stage has `kind`, `features` and `calibration`, and by its kind

    linear: `intercept`, `clip`, and for each feature `transform`, `mean`, `scale` and a weight for each class
    trees:  `base` for each class and `trees` for each class, flat arrays of feature, threshold, left, right and value

Features are named as in the vector that is judged; `words` are for people, `usual` is an ordinary value, and `kind`
tells a yes or no (`flag`) from an `amount`. Scores are log-odds; `calibration.temperature` divides them, then they
become probabilities (softmax). `carry`, which may be missing, is the share of what was said of earlier calls of the
program (see `classifiers.carry`). `trained` is for readers and is not interpreted. What writes this is
`classifiers.training`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from classifiers.carry import LogOdds, carried, centred
from classifiers.linear import Linear
from classifiers.modelfile import CLASSES, MAX_FEATURES, TRAIN_AGAIN, ModelError, Node, softmax
from classifiers.trees import Forest

FORMAT = 1
STRONG = 0.1
"""Log-odds from which on a feature is named as a reason."""
REASONS = 3
MOST_CARRIED = 0.9
AS_BEFORE = "as_before"
"""The reason where a call by itself would have been judged otherwise."""
TOLD = 6
"""Features that `explain` lists."""

Probabilities = tuple[float, float, float]
"""Of `ttft`, `mixed` and `throughput`; together 1."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class _Seen(Protocol):
    """What a model saw in one call."""

    @property
    def scores(self) -> tuple[float, float, float]: ...

    def effects(self, place: int) -> list[float]:
        """What each feature of the stage added to the score of the class at this place, in log-odds."""

    def strongest(self, place: int, most: int) -> list[tuple[float, int]]:
        """The largest of these, for or against it, first the largest, with the numbers of the features; at most `most`,
        and of equals the first."""

    def loudest(self, place: int, most: int) -> list[tuple[float, int]]:
        """The largest of these above 0, first the largest, with the numbers of the features; at most `most`."""


class _Model(Protocol):
    def look(self, vector: Sequence[float]) -> _Seen: ...


@dataclass(frozen=True, slots=True)
class Feature:
    """One entry of the vector, as it is spoken of."""

    place: int
    """In the vector."""
    name: str
    words: str
    flag: bool
    usual: float

    @classmethod
    def read(cls, node: Node, places: Mapping[str, int]) -> Self:
        """Raises `ModelError`."""
        named = node.get("name")
        name = named.text()
        if name not in places or not _NAME.fullmatch(name):
            raise named.wrong(f"{name!r} is no feature of this version; {TRAIN_AGAIN}")
        return cls(
            place=places[name],
            name=name,
            words=node.get("words").text(),
            flag=node.get("kind").one_of("flag", "amount") == "flag",
            usual=node.get("usual").number(),
        )

    def reason(self, value: float) -> str:
        """A snake_case word for this feature having this value: `stream`, `no_tools`, `high_prompt_tokens`.

        Where most calls have none of it, any is worth its name alone.
        """
        if value == 0:
            return f"no_{self.name}"
        if self.flag or self.usual == 0:
            return self.name
        return f"{'high' if value >= self.usual else 'low'}_{self.name}"

    def told(self, value: float) -> str:
        """For a person: `streams`, `streams (no)`, `tokens of the prompt (812)`."""
        if self.flag:
            return self.words if value else f"{self.words} (no)"
        return f"{self.words} ({value:.4g})"


@dataclass(slots=True)
class Judgement:
    """One call, judged."""

    probabilities: Probabilities
    _stage: Stage
    _vector: Sequence[float]
    _seen: _Seen
    alone: LogOdds | None = None
    """What the stage said before earlier calls were taken into account; None: it takes none into account."""
    _lately: LogOdds | None = None
    """What was said of these."""

    @property
    def place(self) -> int:
        """Of the most probable class; the first of equals."""
        return self.probabilities.index(max(self.probabilities))

    def reasons(self, place: int) -> tuple[str, ...]:
        """The features that speak loudest for the class at this place, as snake_case words; strongest first."""
        loudest = [
            self._stage.features[number] for effect, number in self._seen.loudest(place, REASONS) if effect > STRONG
        ]
        reasons = [feature.reason(self._vector[feature.place]) for feature in loudest]
        if self._lately is not None and self.alone is not None and self.alone[place] < max(self.alone):
            reasons.insert(0, AS_BEFORE)
        return tuple(reasons)

    def effects(self, place: int, most: int = TOLD) -> tuple[tuple[str, float], ...]:
        """The features that moved the class at this place most, for a person, with the log-odds that each added."""
        stage, lately = self._stage, self._lately
        temperature = stage.temperature if lately is None else stage.temperature / (1.0 - stage.carry)
        vector, features = self._vector, stage.features
        told = [
            ((feature := features[number]).told(vector[feature.place]), effect / temperature)
            for effect, number in self._seen.strongest(place, most)
            if effect != 0
        ]
        if lately is not None:
            told.append(("what was said of earlier calls", stage.carry * lately[place]))
            told.sort(key=lambda pair: -abs(pair[1]))
        return tuple(told[:most])


@dataclass(frozen=True, slots=True)
class Stage:
    """One model of the document."""

    features: tuple[Feature, ...]
    model: _Model
    temperature: float
    carry: float = 0.0
    """Of a verdict, what is carried over from earlier calls (see `classifiers.carry`); below 1."""

    @classmethod
    def read(cls, node: Node, places: Mapping[str, int]) -> Self:
        """Raises `ModelError`."""
        kind = node.get("kind").one_of("linear", "trees")
        features = tuple(Feature.read(item, places) for item in node.get("features").items(MAX_FEATURES, 1))
        if len({feature.place for feature in features}) < len(features):
            raise node.get("features").wrong(f"a feature is named twice; {TRAIN_AGAIN}")
        taken = [feature.place for feature in features]
        model: _Model = Linear.read(node, taken) if kind == "linear" else Forest.read(node, taken)
        temperature = node.get("calibration").get("temperature")
        if not 0.01 <= temperature.number() <= 100:
            raise temperature.wrong("expected a number between 0.01 and 100")
        carry = node.find("carry")
        if carry is not None and not 0 <= carry.number() <= MOST_CARRIED:
            raise carry.wrong(f"expected a number from 0 to {MOST_CARRIED}")
        return cls(features, model, temperature.number(), 0.0 if carry is None else carry.number())

    def look(self, vector: Sequence[float], lately: LogOdds | None = None) -> Judgement:
        """`lately`: what was said of earlier calls."""
        seen = self.model.look(vector)
        if not self.carry:
            return Judgement(softmax(seen.scores, self.temperature), self, vector, seen)
        alone = centred(seen.scores, self.temperature)
        scores = alone if lately is None else carried(alone, lately, self.carry)
        return Judgement(softmax(scores, 1.0), self, vector, seen, alone, lately)


@dataclass(frozen=True, slots=True)
class Learned:
    """A model that judges vectors whose entries are called `names`."""

    version: str
    request: Stage
    arrival: Stage | None
    trained: Mapping[str, object]
    """What the training wrote about itself; not checked."""

    @classmethod
    def parse(cls, document: Mapping[str, object], names: Sequence[str]) -> Self:
        """`names` are those of the vector that will be judged, in its order.

        Raises `ModelError` for whatever is no model of this version.
        """
        root = Node(document, "")
        number = root.get("format")
        if type(number.value) is not int or number.value != FORMAT:
            raise number.wrong(f"expected {FORMAT}; {TRAIN_AGAIN}")
        classes = root.get("classes")
        if classes.value != list(CLASSES):
            raise classes.wrong(f"expected {', '.join(CLASSES)} in this order")
        places = {name: place for place, name in enumerate(names)}
        arrival = root.find("arrival")
        trained = document.get("trained")
        return cls(
            version=root.get("version").text(),
            request=Stage.read(root.get("request"), places),
            arrival=None if arrival is None else Stage.read(arrival, places),
            trained=trained if isinstance(trained, Mapping) else {},
        )

    def look(self, vector: Sequence[float], history: bool = False, lately: LogOdds | None = None) -> Judgement:
        """`history`: the client is known, so the entries of the vector about what it did before mean something.
        `lately`: what was said of its earlier calls."""
        if history and self.arrival is not None:
            return self.arrival.look(vector, lately)
        return self.request.look(vector)

    def judge(self, vector: Sequence[float], history: bool = False) -> Probabilities:
        return self.look(vector, history).probabilities


__all__ = ["FORMAT", "Feature", "Judgement", "Learned", "ModelError", "Probabilities", "Stage"]

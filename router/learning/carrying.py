"""What a model said of a client's earlier calls, carried over to its next ones as `router.arrivals` does it.

The log tells which program a call is of by the hashes of its texts, if it has them (`text_hashes`); else all calls of a
client are taken for those of one program. A call that was tagged is judged as if it had not been, so it counts as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from classifiers.carry import LogOdds, carried, centred, taken_in
from classifiers.learned import Learned
from router.learning.examples import Example, Measured

Scores = Sequence[LogOdds]


class Carrying:
    """Is shown the calls in the order in which they came."""

    def __init__(self) -> None:
        self._said: dict[tuple[object, ...], LogOdds] = {}

    def lately(self, example: Example) -> LogOdds | None:
        """What was said of earlier calls of its program that stream, or do not, as this one; where it is new, of such
        calls of the client."""
        program, client = _kin(example)
        return self._said.get(program) or self._said.get(client)

    def take(self, example: Example, alone: LogOdds) -> None:
        """What was said of this call by itself."""
        for key in set(_kin(example)):
            self._said[key] = taken_in(self._said.get(key), alone)


def _kin(example: Example) -> tuple[tuple[object, ...], tuple[object, ...]]:
    client = (example.client, example.life, example.stream)
    return (*client, example.program), (*client, None)


def carried_over(examples: Sequence[Example], scores: Scores, temperature: float, share: float) -> list[LogOdds]:
    """Log-odds as they are served. `scores` are what each of the calls got by itself."""
    carrying = Carrying()
    found = []
    for example, own in zip(examples, scores, strict=True):
        alone = centred(own, temperature)
        lately = carrying.lately(example) if share else None
        found.append(alone if lately is None else carried(alone, lately, share))
        carrying.take(example, alone)
    return found


def judged(model: Learned, examples: Sequence[Example], first: int = 0) -> Measured:
    """A model on the tagged calls of a log, of those from the place `first` on: with all that came before them."""
    carrying = Carrying()
    labels, probabilities = [], []
    for place, example in enumerate(examples):
        judgement = model.look(example.vector, example.history, carrying.lately(example))
        if judgement.alone is not None:
            carrying.take(example, judgement.alone)
        if place >= first and example.label is not None and example.label.strong:
            labels.append(str(example.label.call_class))
            probabilities.append(judgement.probabilities)
    return Measured(labels=labels, probabilities=probabilities)

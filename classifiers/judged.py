"""The learned model as a voice of the chain: its verdict where it is sure enough, else the cautious class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from classifiers.api import CallClass, Features, Source, Verdict
from classifiers.builtin import LONG_PROMPT_TOKENS, UNLEARNED, has_history
from classifiers.learned import Judgement, Learned, Probabilities
from classifiers.modelfile import CLASSES

MIN_CONFIDENCE = 0.5

_PLACES = {call_class: place for place, call_class in enumerate(CLASSES)}
_NO_REASON = ("model",)


@dataclass(frozen=True, slots=True)
class Judged:
    """Silent on calls of APIs that no model has seen."""

    model: Learned
    vector: Callable[[Features], Sequence[float]]
    """Gives the numbers that the model judges, in the order of the names that it was parsed with."""
    min_confidence: float = MIN_CONFIDENCE
    """0..1, of the likeliest class."""

    def classify(self, features: Features) -> Verdict | None:
        if features.surface in UNLEARNED:
            return None
        return self._verdict(features, self._look(features))

    def probabilities(self, features: Features) -> Probabilities:
        """Of any call, also of those on which it is silent as a voice."""
        return self._look(features).probabilities

    def why(self, features: Features) -> tuple[tuple[str, float], ...]:
        """What moved the likeliest class most, in words, and by how much, in log-odds; none where it is silent."""
        if features.surface in UNLEARNED:
            return ()
        judgement = self._look(features)
        return judgement.effects(judgement.place)

    def notes(self, features: Features) -> tuple[str, ...]:
        """For a person: how probable each class is, and what speaks for and against the likeliest."""
        if features.surface in UNLEARNED:
            return ("no model has seen calls of this API",)
        judgement = self._look(features)
        likeliest, probability = CLASSES[judgement.place], judgement.probabilities[judgement.place]
        shares = zip(CLASSES, judgement.probabilities, strict=True)
        told = [", ".join(f"{call_class} {share:.2f}" for call_class, share in shares)]
        if probability < self.min_confidence:
            cautious, *words = _cautious(features)
            told.append(
                f"unsure: {probability:.2f} is below min_confidence {self.min_confidence:g}; "
                f"{cautious} is the cautious class for {', '.join(words)}"
            )
        told += [f"{words}: {effect:+.1f} for {likeliest}" for words, effect in judgement.effects(judgement.place)]
        return tuple(told)

    def _look(self, features: Features) -> Judgement:
        arrival = features.arrival
        if arrival is None or not arrival.calls:
            return self.model.look(self.vector(features))
        return self.model.look(self.vector(features), True, arrival.said)

    def _verdict(self, features: Features, judgement: Judgement) -> Verdict:
        probabilities = judgement.probabilities
        confidence = max(probabilities)
        place = probabilities.index(confidence)
        if confidence >= self.min_confidence:
            reasons = judgement.reasons(place) or _NO_REASON
        else:
            cautious, *words = _cautious(features)
            place = _PLACES[cautious]
            confidence = probabilities[place]
            reasons = tuple(dict.fromkeys(("unsure", *words, *judgement.reasons(place))))
        return Verdict(
            call_class=CLASSES[place],
            confidence=confidence,
            source=Source.MODEL,
            reasons=reasons,
            alone=judgement.alone,
        )


def _cautious(features: Features) -> tuple[CallClass, *tuple[str, ...]]:
    """The class that does least harm where it is wrong, and why.

    A call that streams may have a reader. One that does not is no flood by itself, and a person may wait for it behind
    one: only what is plainly work for a machine goes to the back of the line.
    """
    if features.stream:
        return CallClass.TTFT, "stream"
    if features.prompts > 1:
        return CallClass.THROUGHPUT, "many_prompts"
    if features.prompt_tokens > LONG_PROMPT_TOKENS and not features.tools and not has_history(features):
        return CallClass.THROUGHPUT, "no_stream", "long_prompt"
    return CallClass.MIXED, "no_stream"

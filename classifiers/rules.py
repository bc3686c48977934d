"""The operator's own rules: the first that matches decides.

What is told of a rule is its number and what it asks about. Numbers and yes or no are told as they stand in the file,
patterns are not: what a header has to be may be a secret that the calls themselves carry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from classifiers.api import CallClass, Features, Source, Verdict
from classifiers.conditions import (
    CLIENT_FLAGS,
    CLIENT_NUMBERS,
    FLAGS,
    NUMBERS,
    Condition,
    ConditionError,
    compile_condition,
)

_TOLD_WHOLE: Final = frozenset((*FLAGS, *NUMBERS, *CLIENT_NUMBERS, *CLIENT_FLAGS))
"""Conditions whose values are numbers, or true and false."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Pairs of a condition and the verdict that follows from it, in the order of the file."""

    pairs: tuple[tuple[Condition, Verdict], ...] = ()

    @classmethod
    def compiled(cls, rules: Iterable[tuple[Mapping[str, object], CallClass]]) -> Self:
        """Compile what stands under `if:` and `then:` of each rule.

        Raises `ConditionError` with a key relative to the list of rules, such as `2.if.header.x-team`.
        """
        pairs = []
        for index, (conditions, call_class) in enumerate(rules):
            try:
                condition = compile_condition(conditions)
            except ConditionError as error:
                raise ConditionError(f"{index}.if.{error.key}", error.message) from error
            pairs.append((condition, _verdict(index + 1, condition, call_class)))
        return cls(tuple(pairs))

    def classify(self, features: Features) -> Verdict | None:
        for condition, verdict in self.pairs:
            if condition(features):
                return verdict
        return None

    def notes(self, features: Features) -> tuple[str, ...]:
        """For each rule whether it matches, or the first condition that does not hold."""
        return tuple(
            f"rule_{number}: {f'not met: {_told(unmet)}' if (unmet := condition.unmet(features)) else 'matches'}"
            for number, (condition, _) in enumerate(self.pairs, start=1)
        )


def _verdict(number: int, condition: Condition, call_class: CallClass) -> Verdict:
    asked = ", ".join(_told(text) for text, _ in condition.parts) or "always"
    return Verdict(call_class=call_class, confidence=1.0, source=Source.RULE, reasons=(f"rule_{number}", asked))


def _told(text: str) -> str:
    """Of a part of a condition, `KEY: VALUE`, what everybody may see."""
    key = text.partition(": ")[0]
    return text if key in _TOLD_WHOLE else key

"""The operator's own rules: the first that matches decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from classifiers.api import CallClass, Features, Source, Verdict
from classifiers.conditions import Condition, ConditionError, compile_condition


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
            f"rule_{number}: {f'not met: {unmet}' if (unmet := condition.unmet(features)) else 'matches'}"
            for number, (condition, _) in enumerate(self.pairs, start=1)
        )


def _verdict(number: int, condition: Condition, call_class: CallClass) -> Verdict:
    return Verdict(
        call_class=call_class, confidence=1.0, source=Source.RULE, reasons=(f"rule_{number}", str(condition))
    )

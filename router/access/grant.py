"""What the calls of one key may be, and where they may go: settings of a key laid over those of the classes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from classifiers.api import CallClass, Verdict
from policies.api import ClassRules, Lane
from router.settings.security import ClientKey

MOST_URGENT_FIRST = (CallClass.TTFT, CallClass.MIXED, CallClass.THROUGHPUT)


@dataclass(frozen=True, slots=True)
class Grant:
    """Worked out once per key when the settings are taken over."""

    classes: Mapping[CallClass, CallClass]
    """What becomes of a call of each class."""
    rules: Mapping[CallClass, ClassRules]
    lanes: frozenset[Lane]

    @classmethod
    def of(cls, key: ClientKey, rules: Mapping[CallClass, ClassRules]) -> Grant:
        lanes = frozenset(key.lanes)
        return cls(
            classes={call_class: nearest(call_class, key.classes) for call_class in CallClass},
            rules={
                call_class: replace(given, lanes=tuple(lane for lane in given.lanes if lane in lanes))
                for call_class, given in rules.items()
            },
            lanes=lanes,
        )

    def held(self, verdict: Verdict) -> Verdict:
        """The verdict with a class that the key may have."""
        allowed = self.classes[verdict.call_class]
        if allowed is verdict.call_class:
            return verdict
        return replace(verdict, call_class=allowed, reasons=(*verdict.reasons, "held_by_key"))


def nearest(call_class: CallClass, allowed: Sequence[CallClass]) -> CallClass:
    """Itself, or the next less urgent one that is allowed, or else the next more urgent one."""
    at = MOST_URGENT_FIRST.index(call_class)
    return next(each for each in (*MOST_URGENT_FIRST[at:], *reversed(MOST_URGENT_FIRST[:at])) if each in allowed)

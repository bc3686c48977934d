"""Who is asked in which order: the caller's headers, the operator's rules, what is plain from the call, the learned
model, the default. Without a model the built-in table also judges by shape.
"""

from __future__ import annotations

from classifiers.api import CallClass, Classifier, Features, Source, Verdict
from classifiers.builtin import Builtin
from classifiers.hints import Hints, Ignored
from classifiers.judged import Judged
from classifiers.rules import Rules

Said = tuple[Source, Verdict | None, tuple[str, ...]]
"""What one voice said of a call: who, the verdict (None: no opinion), and notes for a person."""


class Chain:
    """The classifier that always has an answer: that of the first voice with an opinion."""

    def __init__(
        self,
        header_names: tuple[str, ...] = (),
        rules: Rules | None = None,
        builtin: bool = True,
        default: CallClass = CallClass.TTFT,
        judged: Judged | None = None,
    ) -> None:
        """`header_names` are more names for `x-twolane-class`; without `builtin` no table is asked, with `judged` only
        its rows about what callers chose on purpose.
        """
        self._hints = Hints(header_names)
        self._rules = rules or Rules()
        self._builtin = Builtin(shapes=judged is None) if builtin else None
        self._judged = judged
        self._voices: tuple[Classifier, ...] = tuple(
            voice for voice in (self._hints, self._rules, self._builtin, judged) if voice is not None
        )
        self._default = Verdict(call_class=default, confidence=0.0, source=Source.DEFAULT, reasons=("default",))

    def classify(self, features: Features, recalled: Verdict | None = None) -> Verdict:
        """`recalled` is what the learned model said of calls like this one, and stands for its voice."""
        for voice in self._voices:
            verdict = recalled if recalled is not None and voice is self._judged else voice.classify(features)
            if verdict is not None:
                return verdict
        return self._default

    def ignored(self, features: Features) -> tuple[Ignored, ...]:
        """Hints in headers that were not understood."""
        return self._hints.ignored(features)

    def explain(self, features: Features) -> tuple[Said, ...]:
        """What every voice says of this call; the first with a verdict decides."""
        said: list[Said] = [
            (Source.HEADER, self._hints.classify(features), self._hints.notes(features)),
            (Source.RULE, self._rules.classify(features), self._rules.notes(features)),
        ]
        if self._builtin is not None:
            said.append((Source.BUILTIN, self._builtin.classify(features), ()))
        if self._judged is not None:
            said.append((Source.MODEL, self._judged.classify(features), self._judged.notes(features)))
        return (*said, (Source.DEFAULT, self._default, ()))

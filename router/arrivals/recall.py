"""What was said of the last calls of a template, so that not each call of a flood need be judged.

Judging looks at the text and at what the client did; in a flood of calls that are alike it finds the same each time. So
where a model gave a few calls in a row the same class, its verdict holds for the next ones that are alike in all that
is known without looking at the text. It is asked again for one call in `ONE_IN`, after a pause, and when it is another.
"""

from __future__ import annotations

from typing import Final

from classifiers.api import Features, Source, Verdict
from classifiers.marks import Marks

AGREED: Final = 4
"""Judgements in a row that say the same, before one is recalled."""
ONE_IN: Final = 16
KEPT_S: Final = 5.0
"""Since the last judgement."""


class Recall:
    """Of one template of one client."""

    __slots__ = ("_agreed", "_judge", "_judged_s", "_left", "_likeness", "_verdict")

    def __init__(self) -> None:
        self._verdict: Verdict | None = None
        self._judge: object = None
        self._likeness = 0
        self._agreed = 0
        self._left = 0
        self._judged_s = 0.0

    def verdict(self, likeness: int, judge: object, now_s: float) -> Verdict | None:
        """What holds for a call that is alike; None: judge it."""
        if not self._left or likeness != self._likeness or judge is not self._judge:
            return None
        if now_s - self._judged_s > KEPT_S:
            return None
        self._left -= 1
        return self._verdict

    def judged(self, verdict: Verdict, likeness: int, judge: object, now_s: float) -> None:
        by_model = verdict.source is Source.MODEL
        before = self._verdict
        same = before is not None and before.call_class is verdict.call_class
        alike = same and likeness == self._likeness and judge is self._judge
        self._agreed = (self._agreed + 1 if alike else 1) if by_model else 0
        self._left = ONE_IN - 1 if self._agreed >= AGREED else 0
        self._verdict, self._judge, self._likeness, self._judged_s = verdict, judge, likeness, now_s


def likeness_of(features: Features, marks: Marks) -> int:
    """A hash of what is known without looking at the text; of the size of the prompt its power of two."""
    return hash(
        (
            marks.system,
            marks.tools,
            features.surface,
            features.model,
            features.stream,
            features.prompt_tokens.bit_length(),
            features.turns,
            features.last_role,
            features.prompts,
            features.max_tokens,
            features.choices,
            features.tools,
            features.tool_results,
            features.media,
            features.response_format,
        )
    )

"""What was said of the last calls of a template, so that not each call of a flood need be judged.

Judging looks at the text and at what the client did; in a flood of calls that are alike it finds the same each time. So
where a model gave a few calls in a row the same class, its verdict holds for the next ones that are alike in all that
is known without looking at the text. It is asked again for one call in `ONE_IN`, after a pause, and when it is another.
"""

from __future__ import annotations

from typing import Final

from classifiers.api import Features, Source, Verdict
from classifiers.clients import client_of, is_traced
from classifiers.lengths import Lengths
from classifiers.marks import Marks

AGREED: Final = 4
"""Judgements in a row that say the same, before one is recalled."""
ONE_IN: Final = 16
KEPT_S: Final = 5.0
"""Since the last judgement."""


class Recall:
    """Of calls of one client that are alike."""

    __slots__ = ("_agreed", "_judge", "_judged_s", "_left", "_verdict", "lengths")

    def __init__(self) -> None:
        self._verdict: Verdict | None = None
        self._judge: object = None
        self._agreed = 0
        self._left = 0
        self._judged_s = 0.0
        self.lengths: Lengths | None = None
        """How long the answer to the call that was judged last was expected to be; None: nobody asked."""

    def verdict(self, judge: object, now_s: float) -> Verdict | None:
        """What holds for one more of them; None: judge it."""
        if not self._left or judge is not self._judge or now_s - self._judged_s > KEPT_S:
            return None
        self._left -= 1
        return self._verdict

    def judged(self, verdict: Verdict, judge: object, now_s: float, lengths: Lengths | None = None) -> None:
        by_model = verdict.source is Source.MODEL
        before = self._verdict
        same = before is not None and before.call_class is verdict.call_class
        again = same and judge is self._judge
        self._agreed = (self._agreed + 1 if again else 1) if by_model else 0
        self._left = ONE_IN - 1 if self._agreed >= AGREED else 0
        self._verdict, self._judge, self._judged_s, self.lengths = verdict, judge, now_s, lengths


def likeness_of(features: Features, marks: Marks, template: int) -> int:
    """A hash of what is known without looking at the text: of the size of the prompt its power of two, of the newest
    message how it begins, or how it ends (`template`)."""
    headers = features.headers
    return hash(
        (
            template,
            marks.system,
            marks.tools,
            marks.fields,
            client_of(headers),
            is_traced(headers),
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

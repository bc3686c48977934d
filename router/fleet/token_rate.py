"""How far the estimate of a prompt is off for each model, learned from the counts that engines report.

A vocabulary cuts text finer or coarser than the common ones, and a chat template may add sentences of its own. So the
true count is taken as a straight line of the estimate, `offset + slope * estimate`, one for each model and kind of
call. It is found by recursive least squares, as a Kalman filter whose line may drift, with a noise that grows with the
prompt and with the error: what is far off counts less (Ljung, System Identification, 1999, ch. 11; Huber 1964). Counts
that cannot be those of the prompt that was read, as of engines that leave out what they had cached, are not looked at.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from classifiers.api import Features

_LINES: Final = 512
_FEWEST: Final = 5
"""Counts of one kind, before they change anything."""
_LONGEST_MODEL_CHARS: Final = 200

_OFFSET_DEVIATION: Final = 60.0
"""Tokens that a template may well add; the first guess is none."""
_SLOPE_DEVIATION: Final = 0.3
"""By how much vocabularies may well differ from the common ones; the first guess is not at all."""
_OFFSET_DRIFT: Final = 0.5
_SLOPE_DRIFT: Final = 0.003
"""Deviation per call: a template or a model behind a name may change."""
_NOISE_SHARE: Final = 0.08
_NOISE_TOKENS: Final = 3.0
"""The estimate is off by about this share of the prompt, and this much, in texts that a vocabulary fits well."""
_ORDINARY: Final = 2.0
"""Deviations up to which an error is taken at its face value."""

_SMALLEST_SHARE: Final = 0.25
_LARGEST_SHARE: Final = 4.0
_LARGEST_OFFSET: Final = 1000
"""Between `_SMALLEST_SHARE` of the estimate and `_LARGEST_SHARE` of it plus this, a count can be that of the prompt."""

_DENSE: Final = 0.5
"""Tokens per character of the newest message, from which on it is of another script than Latin, or numbers, or base64:
what vocabularies differ most in."""


class Line:
    """The straight line of one model and kind of call. Five numbers, whatever was told."""

    __slots__ = ("_offset", "_p_offset", "_p_slope", "_p_together", "_slope", "seen")

    def __init__(self) -> None:
        self.seen = 0
        self._offset, self._slope = 0.0, 1.0
        self._p_offset, self._p_slope, self._p_together = _OFFSET_DEVIATION**2, _SLOPE_DEVIATION**2, 0.0
        """Covariance of offset and slope."""

    def at(self, estimate: int) -> float:
        return self._offset + self._slope * estimate

    def learn(self, estimate: int, tokens: int) -> None:
        self.seen += 1
        error = tokens - self.at(estimate)
        deviation = _NOISE_TOKENS + _NOISE_SHARE * estimate
        far = abs(error) / deviation
        noise = deviation**2 * max(1.0, far / _ORDINARY)
        # It knows less with each call that goes by, but never less than at first. (Adding keeps the matrix positive.)
        p_offset, p_slope = self._p_offset, self._p_slope
        if p_offset < _OFFSET_DEVIATION**2:
            p_offset += _OFFSET_DRIFT**2
        if p_slope < _SLOPE_DEVIATION**2:
            p_slope += _SLOPE_DRIFT**2
        together = self._p_together
        to_offset = p_offset + together * estimate
        to_slope = together + p_slope * estimate
        scale = 1.0 / (noise + to_offset + to_slope * estimate)
        self._offset += to_offset * scale * error
        self._slope += to_slope * scale * error
        self._p_offset = p_offset - to_offset * to_offset * scale
        self._p_slope = p_slope - to_slope * to_slope * scale
        self._p_together = together - to_offset * to_slope * scale


class TokenRates:
    """All lines, the least recently used ones forgotten first. Knows no time."""

    def __init__(self, capacity: int = _LINES) -> None:
        self._capacity = capacity
        self._lines: OrderedDict[tuple[str, str], Line] = OrderedDict()

    def __len__(self) -> int:
        return len(self._lines)

    def correct(self, features: Features) -> None:
        """Put the better figure in place of the estimate, which stays beside it; nothing where too little is known."""
        line = self._lines.get(_key(features))
        estimate = features.estimated_tokens
        if line is None or line.seen < _FEWEST or not estimate:
            return
        tokens = line.at(estimate)
        lowest, highest = _SMALLEST_SHARE * estimate, _LARGEST_SHARE * estimate + _LARGEST_OFFSET
        features.counted_as(max(1, round(min(max(tokens, lowest), highest))))

    def learn(self, features: Features, tokens: int | None) -> None:
        """`tokens` as the engine has reported them for this prompt; None: it did not."""
        estimate = features.estimated_tokens
        if not tokens or not estimate or not _whole_prompt_was_read(features):
            return
        if not _SMALLEST_SHARE * estimate <= tokens <= _LARGEST_SHARE * estimate + _LARGEST_OFFSET:
            return
        key = _key(features)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line()
            if len(self._lines) > self._capacity:
                self._lines.popitem(last=False)
        else:
            self._lines.move_to_end(key)
        line.learn(estimate, tokens)


def _whole_prompt_was_read(features: Features) -> bool:
    """Whether the engine saw what we read: not so with images, a history kept by the server, or many prompts in one."""
    return not features.media and not features.previous_response_id and features.prompts == 1


def _key(features: Features) -> tuple[str, str]:
    form = "tools" if features.tools else "chat" if features.last_role else "bare"
    text = features.shape.text if features.shape is not None else None
    dense = " dense" if text is not None and features.last_tokens > _DENSE * text.chars > 0 else ""
    return (features.model or "")[:_LONGEST_MODEL_CHARS], form + dense

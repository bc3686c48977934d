"""How long will the answer be? Median and 90th percentile of its tokens, from the call and from earlier answers.

The model says what its form makes likely, by two linear quantile regressions on the logarithm of the length. What the
client, and calls of the same template, really got before corrects that, by shrinkage: with `n` lengths seen, of median
`h` and spread `s` (the 90th percentile over the median), all as base-2 logarithms,

    p50 = (n h + k' m) / (n + k')          m, d: what was thought before, its median and spread
    spread = (n s + j d) / (n + j)         p90 = p50 + spread
    k' = k (1 + (s / t)^4)

so the model counts as much as `k` answers, and as `j` for the spread, which few answers tell less of; and as more where
what was seen is so scattered (beyond `t`) that it tells little of one call, as of a client that does many things. This
is applied from the widest kind (all calls of the client) to the narrowest (its template), each being the next one's `m`
and `d`. The limit of the call bounds both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any, Final

from classifiers.api import Features
from classifiers.modelfile import Node
from classifiers.online_quantiles import Seen
from classifiers.shape import Shape
from classifiers.surfaces import EMBEDDINGS, RAW
from classifiers.words import GROUP

_NO_SHAPE: Final = Shape()
WITHOUT_TEXT: Final = EMBEDDINGS | {"rerank", "score", "openai_audio"}
"""APIs whose answers are no text that a model writes token by token, or are not counted in tokens."""
_LABEL_TOKENS: Final = 64
_TALK_TOKENS: Final = 127
"""A longer message is more than talk."""
_UNLIMITED_LOG2: Final = 9.0
"""What a limit is compared with: 512, and 0 stands for none."""
_MOST_LOG2: Final = 17.0
"""No answer is taken to be longer than this, whatever the columns say: 131,072 tokens."""

_WORD_GROUPS: Final = (
    "persona",
    "record",
    "wish",
    "exam",
    "demand",
    "coding",
    "rewrite",
    "label",
    "format",
    "agent",
)

COLUMNS: Final[Mapping[str, str]] = {
    "prompt_tokens": "size of the prompt",
    "last_tokens": "size of the newest message",
    "turns": "messages",
    "stream": "it streams",
    "raw": "a prompt without messages",
    "tools": "tools are offered",
    "tool_results": "results of tools are there",
    "limited": "the length is limited",
    "limit": "the limit",
    "limit_label": "at most 64 tokens are wanted",
    "temperature_zero": "temperature 0",
    "temperature_warm": "temperature above 0.3",
    "stop_line": "it stops at the end of the line or paragraph",
    "stop_label": "it stops where a template goes on",
    "digits": "share of digits",
    "infill": "marks of a cursor",
    "bullets": "lines of a list",
    "lettered": "choices to select from",
    "labelled": "lines that begin with a name",
    "repeated": "times the most frequent name comes",
    "exam_labels": "names that speak of questions and answers",
    "record_labels": "names that speak of records",
    "opens_question": "it opens with a question word",
    "opens_wish": "it opens with a wish",
    "opens_small": "it opens with a small letter",
    "ends_question": "it ends with a question mark",
    "ends_label": "it ends with a name and a colon",
    "ends_line": "it ends with a line end",
    "ends_bracket": "it ends with a closing bracket",
    "closing_question": "the last paragraph is a question",
    "closing_task": "the last paragraph begins with an order",
    "answers_prose": "share of earlier answers that are sentences",
    "answers_call": "earlier answers that call tools",
    "talk": "a short message, no task and no template",
    **{f"words_{group}": f"words of the group `{group}`" for group in _WORD_GROUPS},
}
"""What the model looks at, in this order, and in words. Sizes and counts are logarithms, log2(1 + x)."""

_GROUP_PLACES: Final = tuple(GROUP[group] for group in _WORD_GROUPS)
_DEMANDS: Final = tuple(GROUP[group] for group in ("demand", "label", "format"))


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of one answer; of each, where a call wants several."""

    p50_tokens: int
    p90_tokens: int
    seen: int = 0
    """Earlier answers that were taken into account, of the narrowest kind that had any."""


def columns(features: Features) -> list[float]:
    """One call as the model sees it, in the order of `COLUMNS`."""
    log2 = math.log2
    shape = features.looked_at() or _NO_SHAPE
    envelope, text, turns = shape.envelope, shape.text, shape.turns
    lines = text.lines
    limit = features.max_tokens or 0
    raw = features.surface in RAW
    system_words, text_words = shape.system_words, shape.text_words
    demands = sum([system_words[place] + text_words[place] for place in _DEMANDS])
    plain = not (raw or features.tools or lines.labelled)
    return [
        log2(1 + features.prompt_tokens),
        log2(1 + features.last_tokens),
        min(4.0, log2(1 + features.turns)),
        features.stream,
        raw,
        features.tools > 0,
        features.tool_results > 0,
        limit > 0,
        log2(1 + limit) - _UNLIMITED_LOG2 if limit else 0.0,
        0 < limit <= _LABEL_TOKENS,
        envelope.temperature == 0,
        envelope.temperature > 0.3,
        envelope.stop_line,
        envelope.stop_label,
        text.marks.digits,
        text.infill,
        log2(1 + lines.bullets),
        lines.lettered > 1,
        log2(1 + lines.labelled),
        log2(1 + lines.repeated),
        log2(1 + lines.exam_labels),
        log2(1 + lines.record_labels),
        text.opens_question,
        text.opens_wish,
        text.opens_small,
        text.ends_question,
        text.ends_label,
        text.ends_line,
        text.ends_bracket,
        text.closing_question,
        text.closing_task,
        turns.prose,
        turns.calls > 0,
        plain and features.last_tokens <= _TALK_TOKENS and demands <= 2,
        *[log2(1 + system_words[place] + text_words[place]) for place in _GROUP_PLACES],
    ]


@dataclass(frozen=True, slots=True)
class Line:
    """One linear quantile regression: log2 of the tokens."""

    intercept: float
    weights: tuple[float, ...]

    def at(self, row: Sequence[float]) -> float:
        return self.intercept + float(sum(map(mul, self.weights, row)))


@dataclass(frozen=True, slots=True)
class LengthModel:
    """Two lines, and how many answers they count as beside those that were seen."""

    p50: Line
    p90: Line
    centre_answers: float
    spread_answers: float
    tight_octaves: float
    """Of seen lengths: a spread up to which they are worth what they count."""

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> LengthModel:
        """Raises `ModelError` where it is not a model of these columns."""
        root = Node(document, "")
        root.get("format").integer(1, 1)
        rows = [item for item in root.get("columns").items(len(COLUMNS), len(COLUMNS))]
        for row, name in zip(rows, COLUMNS, strict=True):
            row.get("name").one_of(name)
        intercept, answers = root.get("intercept"), root.get("answers")
        return cls(
            Line(intercept.get("p50").number(), tuple([row.get("p50").number() for row in rows])),
            Line(intercept.get("p90").number(), tuple([row.get("p90").number() for row in rows])),
            answers.get("centre").positive(),
            answers.get("spread").positive(),
            answers.get("tight_octaves").positive(),
        )

    def predict(self, features: Features, history: Sequence[Seen] = ()) -> Lengths:
        """`history`: lengths of earlier answers, the widest kind first."""
        row = columns(features)
        centre = min(_MOST_LOG2, max(0.0, self.p50.at(row)))
        spread = max(0.0, min(_MOST_LOG2, self.p90.at(row)) - centre)
        seen = 0
        for answers, log2_p50, log2_p90 in history:
            if answers:
                seen = answers
                scatter = log2_p90 - log2_p50
                weight = self.centre_answers * (1.0 + (scatter / self.tight_octaves) ** 4)
                centre = (answers * log2_p50 + weight * centre) / (answers + weight)
                spread = (answers * scatter + self.spread_answers * spread) / (answers + self.spread_answers)
        p50, p90 = round(2.0**centre), round(2.0 ** (centre + spread))
        limit = features.max_tokens
        if limit is not None:
            p50, p90 = min(p50, limit), min(p90, limit)
        return Lengths(p50, p90, seen)

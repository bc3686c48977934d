"""How long answers were, by client and by what its calls have in common; from that, how long the next one will be.

Kept are hashes and 32 bytes for each kind, of a bounded number of kinds: about 1 MB when it is full. No text, no name.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import Final

import classifiers
from classifiers.api import Features
from classifiers.lengths import WITHOUT_TEXT, LengthModel, Lengths
from classifiers.marks import Marks
from classifiers.online_quantiles import RecentLengths

FILE: Final = Path(classifiers.__file__ or "").parent / "models" / "lengths.json"

_KINDS: Final = 4096
_NO_MARKS: Final = Marks()


@cache
def shipped() -> LengthModel:
    """The model that comes with the router."""
    return LengthModel.parse(json.loads(FILE.read_bytes()))


class OutputLengths:
    """The least recently used kinds are forgotten first. Knows no time."""

    def __init__(self, model: LengthModel, capacity: int = _KINDS) -> None:
        self._model = model
        self._capacity = capacity
        self._kinds: OrderedDict[int, RecentLengths] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kinds)

    def predict(self, client: str, features: Features) -> Lengths | None:
        """None: the answer is no text."""
        if features.surface in WITHOUT_TEXT:
            return None
        everything, form, head, tail = map(self._kinds.get, _kinds(client, features))
        template = head if head is not None and (tail is None or len(head) >= len(tail)) else tail
        return self._model.predict(features, [kind.seen() for kind in (everything, form, template) if kind is not None])

    def learn(self, client: str, features: Features, output_tokens: int | None) -> None:
        """An answer came to its end. `output_tokens` of the whole call; None: nobody counted them."""
        answers = features.choices * features.prompts
        if not output_tokens or output_tokens < answers or features.surface in WITHOUT_TEXT:
            return
        kinds = self._kinds
        for kind in _kinds(client, features):
            if not kind:
                continue
            lengths = kinds.get(kind)
            if lengths is None:
                lengths = kinds[kind] = RecentLengths()
                if len(kinds) > self._capacity:
                    kinds.popitem(last=False)
            else:
                kinds.move_to_end(kind)
            lengths.take(output_tokens // answers)


def _kinds(client: str, features: Features) -> tuple[int, int, int, int]:
    """From the widest to the narrowest; 0 where there is nothing to have in common.

    All calls of the client; those of one API, system text and tools; of these, those whose newest message begins alike,
    and those whose newest message ends alike.
    """
    marks = features.recognised_by() or _NO_MARKS
    form = hash((client, features.surface, marks.system, marks.tools))
    return (
        hash((client,)),
        form,
        hash((form, 1, marks.head)) if marks.head else 0,
        hash((form, 2, marks.tail)) if marks.tail else 0,
    )

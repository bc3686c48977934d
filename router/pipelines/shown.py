"""What can be shown of tasks: the hops of those under way, so many in all, and the last tasks that are over."""

from __future__ import annotations

from collections import deque
from typing import Final

from router.pipelines.hop import KEPT_SPANS, Pipeline, Span

_MOST: Final = 8_192
"""About 300 bytes each."""
_LEAST: Final = 16
"""Of each task, however many there are."""
KEPT: Final = 200
"""Tasks of several calls that are over."""


class Shown:
    """Told of each hop of a task that has ended, and of the end of the task."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._spans = 0
        self.over: deque[Pipeline] = deque()
        """The newest last."""

    @property
    def spans(self) -> int:
        """Of tasks that are under way."""
        return self._spans

    def add(self, pipeline: Pipeline, span: Span) -> None:
        """Where enough are kept, the task forgets an older one for it."""
        spans = pipeline.spans
        if not pipeline.closed:
            if self._spans >= self._most and len(spans) >= _LEAST:
                spans.popleft()
            elif len(spans) < KEPT_SPANS:
                self._spans += 1
        spans.append(span)

    def close(self, pipeline: Pipeline) -> None:
        """It is over. Hops of a task that is shown no more are let go of: calls that may be gone on from hold it."""
        self._spans -= len(pipeline.spans)
        if pipeline.several:
            self.over.append(pipeline)
            if len(self.over) > KEPT:
                pipeline = self.over.popleft()
                pipeline.spans.clear()

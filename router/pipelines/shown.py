"""The hops of open tasks that can be shown, so many in all."""

from __future__ import annotations

from typing import Final

from router.pipelines.hop import KEPT_SPANS, Pipeline, Span

_MOST: Final = 32_768
"""About 300 bytes each."""
_LEAST: Final = 16
"""Of each task, however many there are."""


class Shown:
    """Told of each hop of a task that has ended, and of the end of the task."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept = 0

    def __len__(self) -> int:
        return self._kept

    def add(self, pipeline: Pipeline, span: Span) -> None:
        """Where enough are kept, the task forgets an older one for it."""
        spans = pipeline.spans
        if not pipeline.closed:
            if self._kept >= self._most and len(spans) >= _LEAST:
                spans.popleft()
            elif len(spans) < KEPT_SPANS:
                self._kept += 1
        spans.append(span)

    def over(self, pipeline: Pipeline) -> None:
        """It is shown among those that are over from now on, or nowhere."""
        self._kept -= len(pipeline.spans)

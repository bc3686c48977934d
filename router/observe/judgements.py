"""What an ended call tells of its judgement: counters, the shadow model's opinion, a line of the decision log.

All of it happens when the client has its answer. Whatever fails in here is counted and told once; calls never notice.
"""

from __future__ import annotations

import asyncio

import structlog

from classifiers.api import Classifier, Verdict
from router.observe.decisions import DecisionLog
from router.observe.facts import CallFacts, JudgedCall
from router.observe.metrics import Metrics

log = structlog.get_logger("twolane.judgements")


class Judgements:
    """`shadow` and the log are replaced when settings are taken over; None: there is none, and it costs nothing."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.shadow: Classifier | None = None
        self._decisions: DecisionLog | None = None
        self._closing: list[DecisionLog] = []
        self._dropped = 0
        self._told: set[str] = set()

    @property
    def dropped(self) -> int:
        """Lines of the decision log that were not written, since the start."""
        logs = [*self._closing, *([self._decisions] if self._decisions is not None else [])]
        return self._dropped + sum(each.dropped for each in logs)

    def write_to(self, decisions: DecisionLog | None) -> None:
        """From now on; `retire` has to follow, for the log that was written to before."""
        if self._decisions is not None:
            self._closing.append(self._decisions)
        self._decisions = decisions

    async def retire(self) -> None:
        """Return when logs that are no longer written to are on the disk and closed."""
        for each in tuple(self._closing):
            await asyncio.to_thread(each.close)
            if each in self._closing:
                self._closing.remove(each)
                self._dropped += each.dropped

    def ended(self, facts: CallFacts, judged: JudgedCall, unix_ns: int) -> None:
        """It ended at that time, in nanoseconds since 1970."""
        self._metrics.judged(facts, judged)
        shadow = self._shadow_says(facts, judged) if self.shadow is not None else None
        if self._decisions is not None:
            try:
                self._decisions.take(facts, judged, shadow, unix_ns)
            except Exception as error:  # noqa: BLE001 - the call is over and was served, whatever is wrong here
                self._dropped += 1
                self._tell_once("decision_not_logged", facts.request_id, error)

    def _shadow_says(self, facts: CallFacts, judged: JudgedCall) -> Verdict | None:
        assert self.shadow is not None
        try:
            verdict = self.shadow.classify(judged.features)
        except Exception as error:  # noqa: BLE001 - likewise
            self._metrics.shadow_failed()
            self._tell_once("shadow_failed", facts.request_id, error)
            return None
        if verdict is not None:
            self._metrics.shadow_judged(facts, verdict)
        return verdict

    def _tell_once(self, event: str, request_id: str, error: Exception) -> None:
        if event not in self._told:
            self._told.add(event)
            log.error(event, request_id=request_id, exc_info=error)

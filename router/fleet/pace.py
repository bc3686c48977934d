"""How fast a backend is: at first what its kind makes likely, then what its answers show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policies.api import UNKNOWN_PACE, Pace
from policies.outlook import Outlook
from router.fleet.evidence import Answered, Seen, seen_of, sightings
from router.fleet.pace_errors import Spread
from router.fleet.pace_filter import PaceFilter
from router.fleet.running import Mark, Running

_SLOTS: Final = Pace(step_s=0.010, sequence_s=0.0012, prefill_token_s=1 / 4_000, step_tokens=512, call_s=0.002)
"""A model of a few billion weights, of four bits, on one consumer GPU."""
_BATCHES: Final = Pace(step_s=0.014, sequence_s=0.000_2, prefill_token_s=1 / 8_000, step_tokens=2_048, call_s=0.005)
"""A model that fills an accelerator of a data centre."""
_LIKELY: Final[Mapping[str, Pace]] = {
    "llamacpp": _SLOTS,
    "ollama": _SLOTS,
    "lmstudio": _SLOTS,
    "vllm": _BATCHES,
    "sglang": _BATCHES,
}

_FEW: Final = 20
"""Answers after which the pace of an engine of an unknown kind is known."""
_WELL_KNOWN: Final = 100
"""Answers after which not every one is looked at,"""
_EVERY_S: Final = 0.02
"""but one in this time: of thousands a second the rest would say the same, and each takes as long as a decision."""


def likely(engine: str) -> Pace:
    """What the kind of engine makes likely, before anything was seen of the server."""
    return _LIKELY.get(engine, UNKNOWN_PACE)


class PaceLearner:
    """Owner of what is known of one backend's pace. `pace` is a new object after each answer that taught something."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.pace = likely(engine)
        self._filter = PaceFilter((self.pace.call_s, self.pace.prefill_token_s, self.pace.step_s, self.pace.sequence_s))
        self._first = Spread(self.pace.first_spread)
        self._tpot = Spread(self.pace.tpot_spread)
        self._whole = Spread(self.pace.spread)
        self._answers = 0
        self._next_s = 0.0
        """When an answer is looked at again."""

    def changed(self) -> None:
        """Another server answers there, or the same with another model: what is known counts less."""
        self._filter.loosen()

    def answered(self, running: Running, end: Mark, first_s: float | None, answered: Answered) -> Seen:
        """A whole answer came. `first_s`: instant of its first token, where it was seen. Returns what was seen.

        Where many answers come at once, not all of them are learned from.
        """
        seen = seen_of(running, end, first_s, answered)
        if self._answers >= _WELL_KNOWN and end.at_s < self._next_s:
            return seen
        self._next_s = end.at_s + _EVERY_S
        if running.predicted is not None and running.had_place:
            self._compare(running.predicted, seen)
        for sighting in sightings(running, end, seen, answered, self.pace.step_tokens):
            self._filter.learn(sighting)
        self._answers += 1
        call_s, prefill_token_s, step_s, sequence_s = self._filter.figures
        self.pace = Pace(
            step_s=step_s,
            sequence_s=sequence_s,
            prefill_token_s=prefill_token_s,
            step_tokens=self.pace.step_tokens,
            call_s=call_s,
            known=self.pace.known or self._answers >= _FEW,
            seen=self._answers,
            first_spread=self._first.value,
            tpot_spread=self._tpot.value,
            spread=self._whole.value,
        )
        return seen

    def _compare(self, predicted: Outlook, seen: Seen) -> None:
        if seen.first_s is not None:
            self._first.take(predicted.first_s, seen.first_s)
        if seen.tpot_s is not None:
            self._tpot.take(predicted.tpot_s, seen.tpot_s)
        if seen.output_tokens is not None:
            decode_s = max(0.0, seen.output_tokens - 1.0) * predicted.tpot_s
            self._whole.take(predicted.first_s + decode_s, seen.whole_s)

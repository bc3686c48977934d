"""One log or trace under several settings, one after the other: what each would have given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from classifiers.api import CallClass
from policies.api import ClassRules, Lane
from router.engines import ENGINES
from router.replay.figures import Column, Judge, as_logged, as_simulated, column
from router.replay.fleets import Modelled, Paces
from router.replay.recorded import NotReplayable, Recorded, Source
from router.replay.sending import BLOCK_TOKENS, Sharing, arriving
from router.settings.model import Settings
from router.simulate.driver import Simulation

FORMAT: Final = 1
"""Of the document. Rises when a field changes its meaning."""
_STEP: Final = 200
"""Calls between two words on how far it is, which would otherwise take longer than they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Settings to try."""

    name: str
    file: Path
    settings: Settings

    def promises(self) -> Mapping[CallClass, ClassRules]:
        return {name: self.settings.classes.of(name).rules() for name in CallClass}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What settings gave."""

    candidate: Candidate
    fleet: Mapping[str, Modelled]
    column: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    sources: Sequence[Source]
    calls: int
    options: Mapping[str, float | int | None]
    judged_by: Candidate
    """Whose promises all columns are held against."""
    logged: Column | None
    """What really happened; None: it was a trace."""
    tried: Sequence[Tried]
    notes: Sequence[str]

    def document(self) -> dict[str, Any]:
        """As `docs/replay.md` describes it."""
        return {
            "format": FORMAT,
            "inputs": [
                {
                    "path": str(source.path),
                    "kind": source.kind,
                    "calls": len(source.calls),
                    "passed_over": dict(source.passed_over),
                    "notes": source.notes,
                }
                for source in self.sources
            ],
            "calls": self.calls,
            "options": dict(self.options),
            "promises": {
                "file": str(self.judged_by.file),
                **{
                    name.value: {
                        "ttft_s": rules.slo_ttft_s,
                        "tpot_s": rules.slo_tpot_s,
                        "complete_s": rules.slo_complete_s,
                    }
                    for name, rules in self.judged_by.promises().items()
                },
            },
            "notes": list(self.notes),
            "logged": self.logged.as_json() if self.logged is not None else None,
            "policies": [_tried(each) for each in self.tried],
        }


def _tried(each: Tried) -> dict[str, Any]:
    return {
        "name": each.candidate.name,
        "file": str(each.candidate.file),
        "policy": each.candidate.settings.policy.use,
        "fleet": {name: _modelled(backend) for name, backend in each.fleet.items()},
        "result": each.column.as_json(),
    }


def _modelled(backend: Modelled) -> dict[str, Any]:
    spec, pace, fit = backend.spec, backend.spec.pace, backend.fit
    return {
        "engine": spec.kind,
        "sequences": spec.sequences,
        "context_tokens": spec.context_tokens,
        "pace": {
            "step_s": pace.step_s,
            "sequence_s": pace.sequence_s,
            "prefill_tokens_per_s": pace.prefill_tokens_per_s,
            "step_tokens": pace.step_tokens,
        },
        "from": backend.how,
        "fit": None
        if fit is None
        else {"calls": fit.calls, "first_error": fit.first_error, "whole_error": fit.whole_error},
    }


class Replay:
    """Holds the calls; each candidate is tried on the same ones."""

    def __init__(self, sources: Sequence[Source], calls: Sequence[Recorded], tried: Callable[[], None]) -> None:
        """`tried` is told of each trial of a fit. Raises `NotReplayable` where there are no calls."""
        if not calls:
            raise NotReplayable("no calls are left to replay; use a larger --limit")
        self._calls = calls
        self._block_tokens = max(source.block_tokens or BLOCK_TOKENS for source in sources)
        self._paces = Paces(calls, self._block_tokens, tried)

    @property
    def logged(self) -> frozenset[str]:
        """Names of the backends that the log knows."""
        return self._paces.logged

    def fleet(self, candidate: Candidate) -> Mapping[str, Modelled]:
        """Raises `NotReplayable`."""
        try:
            return self._paces.fleet(candidate.settings)
        except NotReplayable as error:
            raise NotReplayable(f"{candidate.file}: {error}") from None

    def try_out(
        self,
        candidate: Candidate,
        fleet: Mapping[str, Modelled],
        judge: Judge,
        *,
        seed: int = 0,
        arrived: Callable[[int], None] = lambda count: None,
    ) -> Column:
        """`arrived` is told now and then how many calls have come."""
        engines = {name: backend.spec for name, backend in fleet.items()}
        simulation = Simulation(candidate.settings, engines, seed=seed)
        steps = _Steps(arrived, len(self._calls))
        became = simulation.run(arriving(self._calls, Sharing(self._block_tokens)), arrived=steps)
        return column(as_simulated(self._calls, became, judge, lanes(candidate, fleet)))

    def as_logged(self, judge: Judge, candidate: Candidate, fleet: Mapping[str, Modelled]) -> Column | None:
        """The log itself; lanes are those of the candidate. None: it is a trace."""
        ended = as_logged(self._calls, judge, lanes(candidate, fleet))
        return column(ended) if ended else None


class _Steps:
    """Counts, and tells of every so many."""

    def __init__(self, tell: Callable[[int], None], total: int) -> None:
        self._tell = tell
        self._total = total
        self._count = 0

    def __call__(self) -> None:
        self._count += 1
        if self._count % _STEP == 0 or self._count == self._total:
            self._tell(self._count)


def lanes(candidate: Candidate, fleet: Mapping[str, Modelled]) -> dict[str, Lane]:
    """Of the backends, by name."""
    return {
        backend.name: backend.lane or ENGINES[fleet[backend.name].spec.kind].default_lane
        for backend in candidate.settings.backends
    }

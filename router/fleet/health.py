"""Whether a backend may be given calls. A state machine without clock or I/O.

Evidence comes from probes and from traffic, and traffic counts more: a server that streams is alive however late its
health endpoint answers. What is asked of the evidence:

    unknown   nothing heard yet; no calls
    up        calls
    loading   alive, model not in memory yet: no calls, no penalty, calls may wait for it
    down      several probes in a row failed while nothing flowed, or a connection was refused: no calls until a probe
              succeeds
    broken    probes are fine but calls fail in a row: no calls for a while, then one trial call decides

Beside the evidence an operator may take a backend out: `drained`, it gets no new calls whatever its state is.
"""

from __future__ import annotations

from enum import StrEnum

from router.engines.api import Loading, Ready, Sick
from router.fleet.ledger import Outcome


class State(StrEnum):
    UNKNOWN = "unknown"
    UP = "up"
    LOADING = "loading"
    DOWN = "down"
    BROKEN = "broken"


class Health:
    """Evidence about one backend and the state that follows from it."""

    def __init__(self, *, down_after: int, break_after: int, retry_after_s: float) -> None:
        self.down_after = down_after
        self.break_after = break_after
        self.retry_after_s = retry_after_s
        self.state = State.UNKNOWN
        self.reason = "not asked yet"
        self.drained = False
        """An operator took it out, until an operator puts it back."""
        self.outages = 0
        """Times that it went down or had to load its model: what it had in memory is gone."""
        self.said_loading = b""
        """How it last put that its model is loading; may be empty."""
        self._missed = 0
        self._failed = 0
        self._retry_at_s = 0.0
        self._trial_out = False
        self._refuses = False
        """It is down because it takes no connections; streams from before may still end well."""

    def __repr__(self) -> str:
        return f"<Health {self.state}: {self.reason}>"

    def available(self, now_s: float) -> bool:
        """Whether a call may go there now."""
        if self.drained:
            return False
        if self.state is State.UP:
            return True
        return self.state is State.BROKEN and not self._trial_out and now_s >= self._retry_at_s

    @property
    def hopeful(self) -> bool:
        """Whether it is worth waiting for: all that are not down or taken out may soon take calls."""
        return self.state is not State.DOWN and not self.drained

    @property
    def words(self) -> str:
        """Its state and why, for people."""
        return "drained (taken out by the operator)" if self.drained else f"{self.state} ({self.reason})"

    def dispatched(self) -> bool:
        """A call was sent. True: it is the trial call of a broken backend."""
        if self.state is State.BROKEN:
            self._trial_out = True
            return True
        return False

    def probed(self, answer: Ready | Loading | Sick | None, *, traffic_flows: bool) -> None:
        """A probe ended; None: no answer at all. `traffic_flows`: bytes came from calls since the last probe."""
        match answer:
            case Ready():
                self._missed = 0
                if self.state is not State.BROKEN:
                    self._to(State.UP, "probe ok")
            case Loading() as loading:
                self._missed = 0
                self.loading(loading)
            case Sick() | None:
                if traffic_flows:
                    self._missed = 0
                    return
                self._missed += 1
                if self._missed >= self.down_after or self.state is State.UNKNOWN:
                    detail = "no answer" if answer is None else answer.reason
                    self._to(State.DOWN, f"{detail} ({self._missed} probe{'s' * (self._missed > 1)} in a row)")

    def refused(self, detail: str) -> None:
        """A connection for a call could not be made: nothing listens there."""
        self._to(State.DOWN, detail)
        self._refuses = True

    def loading(self, loading: Loading) -> None:
        """A probe heard, or a call was turned away because, the model is still loading."""
        self.said_loading = loading.said
        self._to(State.LOADING, "model is loading")

    def ended(self, outcome: Outcome, now_s: float, *, trial: bool) -> None:
        """A call ended there."""
        if trial:
            self._trial_out = False
        match outcome:
            case Outcome.COMPLETED:
                if self._refuses:
                    return
                self._failed = self._missed = 0
                if self.state is State.BROKEN or self.state is State.DOWN:
                    self._to(State.UP, "a call succeeded")
            case Outcome.FAILED:
                self._failed += 1
                if self.state is State.BROKEN or (self.state is State.UP and self._failed >= self.break_after):
                    self._retry_at_s = now_s + self.retry_after_s
                    self._to(State.BROKEN, f"{self._failed} calls in a row failed")
            case Outcome.IGNORED:
                pass

    def _to(self, state: State, reason: str) -> None:
        if state is State.UP and self.state is not State.UP:
            self._failed = 0
        if state is not self.state and state in (State.DOWN, State.LOADING):
            self.outages += 1
        self.state = state
        self.reason = reason
        self._refuses = False

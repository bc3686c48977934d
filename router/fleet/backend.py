"""One backend: what the operator wrote, what the server said, and what traffic and probes showed."""

from __future__ import annotations

from math import inf

from policies.api import NO_DEMAND, Ask, Demand, Lane, View
from policies.outlook import outlook
from router.engines import ENGINES
from router.engines.api import Engine, Identity
from router.fleet.evidence import NOTHING_SEEN
from router.fleet.foreign import ForeignLoad
from router.fleet.health import Health
from router.fleet.ledger import Account, Lease, Outcome
from router.fleet.pace import PaceLearner
from router.fleet.work import WorkBook
from router.settings.backend import Backend as BackendSettings
from router.settings.model import Health as HealthSettings

_GOOD_S = 0.1
"""How long a view of a backend with work may be shown: what it says of progress is as old then."""
_FADED = 0.01
"""Share of time with prompts of late that makes no difference any more."""


class Backend:
    """State of one backend. `Fleet` owns it; policies see it as a `View`.

    `engine`, `lane`, `cap`, `context_tokens` and `models` follow from the settings and from what the server said; they
    are worked out when one of these changes, since every call reads them.
    """

    engine: Engine
    lane: Lane
    cap: int | None
    """Most of our calls there at once; None: no limit known."""
    context_tokens: int | None
    models: tuple[str, ...] | None
    """Names it answers to; None: not known, so any may be tried."""

    def __init__(self, settings: BackendSettings, health: HealthSettings, account: Account) -> None:
        self.settings = settings
        self.name = settings.name
        self.account = account
        self.identity: Identity | None = None
        self.health = Health(
            down_after=health.down_after, break_after=health.break_after, retry_after_s=health.retry_after
        )
        self.foreign = ForeignLoad(health.load_half_life)
        self.probed_since_s = inf
        """When the last probe that has ended began."""
        self.work = WorkBook()
        self.pacer = PaceLearner("openai")
        self._view: View | None = None
        self._good_until_s = inf
        self._derive()

    def __repr__(self) -> str:
        return f"<Backend {self.name} ({self.engine.name}, {self.lane}): {self.account.own} own, {self.health!r}>"

    def configure(self, settings: BackendSettings, health: HealthSettings) -> None:
        """New settings for the same server; what was learned about it stays."""
        self.settings = settings
        self.health.down_after = health.down_after
        self.health.break_after = health.break_after
        self.health.retry_after_s = health.retry_after
        self.foreign.half_life_s = health.load_half_life
        self._derive()

    def identified(self, identity: Identity) -> None:
        """What the server said it is."""
        if self.identity is not None and self.identity.engine == identity.engine:
            self.pacer.changed()
        self.identity = identity
        self._derive()

    def _derive(self) -> None:
        settings = self.settings
        said = self.identity or Identity(engine="openai")
        self.engine = ENGINES[said.engine if settings.engine == "auto" else settings.engine]
        self.lane = settings.lane or self.engine.default_lane
        self.cap = settings.max_inflight or said.slots or (self.engine.default_slots if self.known else None)
        self.context_tokens = settings.context_tokens or said.context_tokens
        self.models = settings.models if settings.models is not None else said.models
        if self.pacer.engine != self.engine.name:
            self.pacer = PaceLearner(self.engine.name)
        self.work.pace = self.pacer.pace
        self.changed()

    @property
    def known(self) -> bool:
        """Whether the kind of server is known, by the settings or because it answered."""
        return self.identity is not None or self.settings.engine != "auto"

    def serves(self, model: str) -> bool:
        return self.models is None or any(self.engine.same_model(model, served) for served in self.models)

    # --- calls

    def sent(self, lease: Lease, ask: Ask, now_s: float) -> None:
        """A call of ours that takes a slot was sent there."""
        running = lease.running = self.work.sent(ask, self.name, now_s)
        view = self._view or self._made_view(now_s, NO_DEMAND)  # as the decision has just seen it
        running.predicted = outlook(ask, view, now_s)
        running.others = view.foreign
        running.had_place = not running.predicted.wait_s

    def began(self, lease: Lease, now_s: float) -> None:
        """Its first token came."""
        if lease.running is not None:
            self.work.first_token(lease.running, now_s)
            self.changed()

    def ended(self, lease: Lease, now_s: float) -> None:
        running, answered = lease.running, lease.answered
        if running is None or running not in self.work:  # it went to the server that was here before
            return
        end = self.work.ended(running, now_s)
        if lease.closed is Outcome.COMPLETED and answered is not NOTHING_SEEN:
            self.pacer.answered(running, end, lease.first_s, answered)
            self.work.pace = self.pacer.pace

    # --- views

    def changed(self) -> None:
        """The next view has to be made anew."""
        self._view = None

    def view(self, now_s: float, demand: Demand = NO_DEMAND) -> View:
        """The same one until something happens there, or what it says of others and of the work has faded."""
        view = self._view
        if view is None or now_s >= self._good_until_s or view.demand is not demand:
            view = self._view = self._made_view(now_s, demand)
            still = not (view.foreign or view.queued or len(self.work)) and view.work.prefill_0_1 < _FADED
            self._good_until_s = inf if still else now_s + _GOOD_S
        return view

    def _made_view(self, now_s: float, demand: Demand) -> View:
        account, foreign = self.account, self.foreign
        self.work.beside = foreign.calls(now_s)
        return View(
            name=self.name,
            lane=self.lane,
            engine=self.engine.name,
            cap=self.cap,
            own=account.own,
            foreign=self.work.beside,
            own_by_class=account.by_class.copy(),
            queued=foreign.queued(now_s),
            context_tokens=self.context_tokens,
            weight=self.settings.weight,
            dispatched=account.dispatched,
            pace=self.work.pace,
            work=self.work.work(now_s),
            demand=demand,
        )

"""One backend: what the operator wrote, what the server said, and what traffic and probes showed."""

from __future__ import annotations

from policies.api import Lane, View
from router.engines import ENGINES
from router.engines.api import Engine, Identity
from router.fleet.foreign import ForeignLoad
from router.fleet.health import Health
from router.fleet.ledger import Account
from router.settings.model import Backend as BackendSettings
from router.settings.model import Health as HealthSettings


class Backend:
    """State of one backend. `Fleet` owns it; policies see it as a `View`."""

    def __init__(self, settings: BackendSettings, health: HealthSettings, account: Account) -> None:
        self.settings = settings
        self.account = account
        self.identity: Identity | None = None
        self.health = Health(
            down_after=health.down_after, break_after=health.break_after, retry_after_s=health.retry_after
        )
        self.foreign = ForeignLoad(health.load_half_life)

    def __repr__(self) -> str:
        return f"<Backend {self.name} ({self.engine.name}, {self.lane}): {self.account.own} own, {self.health!r}>"

    def configure(self, settings: BackendSettings, health: HealthSettings) -> None:
        """New settings for the same server; what was learned about it stays."""
        self.settings = settings
        self.health.down_after = health.down_after
        self.health.break_after = health.break_after
        self.health.retry_after_s = health.retry_after
        self.foreign.half_life_s = health.load_half_life

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def engine(self) -> Engine:
        if self.settings.engine != "auto":
            return ENGINES[self.settings.engine]
        return ENGINES[self.identity.engine if self.identity is not None else "openai"]

    @property
    def known(self) -> bool:
        """Whether the kind of server is known, by the settings or because it answered."""
        return self.identity is not None or self.settings.engine != "auto"

    @property
    def lane(self) -> Lane:
        return self.settings.lane or self.engine.default_lane

    @property
    def cap(self) -> int | None:
        if self.settings.max_inflight is not None:
            return self.settings.max_inflight
        return self.identity.slots if self.identity is not None else None

    @property
    def context_tokens(self) -> int | None:
        if self.settings.context_tokens is not None:
            return self.settings.context_tokens
        return self.identity.context_tokens if self.identity is not None else None

    @property
    def models(self) -> tuple[str, ...] | None:
        """Names it answers to; None: not known, so any may be tried."""
        if self.settings.models is not None:
            return self.settings.models
        return self.identity.models if self.identity is not None else None

    def serves(self, model: str) -> bool:
        models = self.models
        return models is None or any(self.engine.same_model(model, served) for served in models)

    def view(self, now_s: float, *, affinity: bool) -> View:
        account = self.account
        return View(
            name=self.settings.name,
            lane=self.lane,
            engine=self.engine.name,
            cap=self.cap,
            own=account.own,
            foreign=self.foreign.calls(now_s),
            own_by_class=account.by_class.copy(),
            queued=self.foreign.queued(now_s),
            context_tokens=self.context_tokens,
            weight=self.settings.weight,
            affinity=affinity,
            dispatched=account.dispatched,
        )

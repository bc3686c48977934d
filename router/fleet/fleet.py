"""All backends: who can serve a call, what policies see of them, and the one place where a lease begins.

Nothing here waits. A caller reads views, decides and opens a lease within one turn of the event loop, so two calls can
never be given the same slot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from classifiers.api import CallClass
from policies.api import Ask, View
from router.engines.api import Identity, Load, Loading, Ready, Sick
from router.engines.ollama import LATEST
from router.fleet.backend import Backend
from router.fleet.demand import DemandMeter
from router.fleet.health import State
from router.fleet.ledger import Lease, Ledger, Outcome
from router.fleet.memory import Memory
from router.fleet.output_lengths import OutputLengths, shipped
from router.fleet.token_rate import TokenRates
from router.settings.model import Settings

_CONVERSATIONS = 16_384
"""More than the caches of any fleet here hold."""
_RESPONSE_IDS = 50_000
_CACHED_LOOKUPS = 1_024
_LONGEST_CACHED = 256
"""Characters of a model's name that is remembered: any client may ask for any."""
_MOST_REQUESTS = 4_096
"""That one call is taken to be inside an engine: a caller may ask for a million answers, and gets an error."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A backend that serves a call in principle, and the name that it knows the model by."""

    backend: Backend
    model: str | None


class Fleet:
    """Owner of all backend state.

    `on_change` is called whenever room may have appeared or vanished: a lease ended, a probe ended, settings changed.
    """

    def __init__(self, settings: Settings) -> None:
        self.on_change: Callable[[float], None] = lambda now_s: None
        self.ledger = Ledger(self._lease_closed, self._first_token)
        self.conversations = Memory(_CONVERSATIONS)
        self.response_ids = Memory(_RESPONSE_IDS)
        self.token_rates = TokenRates()
        self.output_lengths = OutputLengths(shipped())
        self.demand = DemandMeter()
        self._settings = settings
        self._backends: dict[str, Backend] = {}
        self._lookups: dict[tuple[str | None, str], tuple[Candidate, ...]] = {}
        self.apply(settings)

    def __repr__(self) -> str:
        return f"<Fleet {', '.join(repr(backend) for backend in self._backends.values())}>"

    def apply(self, settings: Settings) -> None:
        """Take over new settings.

        A backend that stays keeps what was learned about it. One that goes gets no further calls; its running calls
        end as they would have.
        """
        before, self._backends = self._backends, {}
        for wanted in settings.backends:
            old = before.get(wanted.name)
            if old is not None and _same_server(old, wanted.url, wanted.engine):
                old.configure(wanted, settings.health)
                self._backends[wanted.name] = old
            else:
                moved = old is not None and old.settings.url != wanted.url
                account = self.ledger.begin_anew(wanted.name) if moved else self.ledger.account(wanted.name)
                self._backends[wanted.name] = Backend(wanted, settings.health, account)
        for name in before.keys() - self._backends.keys():
            self.ledger.forget(name)
        self._settings = settings
        self._lookups.clear()
        promised = settings.classes.ttft.slo
        self.demand.promise(promised.ttft, promised.tpot)

    def backends(self) -> tuple[Backend, ...]:
        """In the order of the settings."""
        return tuple(self._backends.values())

    def backend(self, name: str) -> Backend | None:
        return self._backends.get(name)

    # --- who can serve a call

    def candidates(self, model: str | None, surface: str) -> tuple[Candidate, ...]:
        """Backends that serve this model through this surface, up or not."""
        key = (model, surface)
        found = self._lookups.get(key)
        if found is None:
            public = self._public_name(model, surface)
            found = tuple(
                Candidate(backend, served)
                for backend in self._backends.values()
                if surface in backend.engine.surfaces
                for served in self._served_names(backend, public)
            )
            if found and len(self._lookups) < _CACHED_LOOKUPS and len(model or "") <= _LONGEST_CACHED:
                self._lookups[key] = found
        return found

    def _public_name(self, model: str | None, surface: str) -> str | None:
        """The alias that is meant, as the settings write it: to clients of Ollama `fast` and `fast:latest` are one."""
        aliases = self._settings.models
        if model is None or model in aliases or not surface.startswith("ollama_"):
            return model
        other = model.removesuffix(LATEST) if model.endswith(LATEST) else model + LATEST
        return other if other in aliases else model

    def _served_names(self, backend: Backend, model: str | None) -> tuple[str | None, ...]:
        if model is None:
            return (None,)
        alias = self._settings.models.get(model)
        if alias is not None:
            return (alias[backend.name],) if backend.name in alias else ()
        return (model,) if backend.serves(model) else ()

    def model_names(self) -> dict[str, tuple[str, ...]]:
        """Every name that clients may ask for, sorted, with the backends behind it. Aliases come first."""
        names: dict[str, list[str]] = {public: sorted(per) for public, per in sorted(self._settings.models.items())}
        served: dict[str, list[str]] = {}
        for backend in self._backends.values():
            for model in backend.models or ():
                served.setdefault(model, []).append(backend.name)
        for model in sorted(served):
            names.setdefault(model, served[model])
        return {model: tuple(backends) for model, backends in names.items()}

    def serving(self, model: str) -> tuple[str, ...]:
        """The backends behind a name, whatever the API, also where they list it as another (Ollama: with its tag)."""
        return self.model_names().get(model) or tuple(
            backend.name for backend in self._backends.values() if backend.models is not None and backend.serves(model)
        )

    def views(self, candidates: Sequence[Candidate], now_s: float) -> list[View]:
        """What a policy may see of those among `candidates` that can take calls now."""
        demand = self.demand.told(now_s)
        return [
            candidate.backend.view(now_s, demand)
            for candidate in candidates
            if candidate.backend.health.available(now_s)
        ]

    # --- leases

    def lease(
        self, backend: Backend, call_class: CallClass, now_s: float, *, slot: bool, ask: Ask | None = None
    ) -> Lease:
        """`ask`: the call, by which what it needs there is told; None: nothing is known of it."""
        requests = 1 if ask is None else min(_MOST_REQUESTS, ask.features.choices * ask.features.prompts)
        lease = self.ledger.open(backend.name, call_class, now_s, slot=slot, requests=requests)
        if slot:
            lease.trial = backend.health.dispatched()
            if ask is not None:
                backend.sent(lease, ask, now_s)
            backend.changed()
        return lease

    def _first_token(self, lease: Lease, now_s: float) -> None:
        backend = self._backends.get(lease.backend)
        if backend is not None and backend.account is lease.account:
            backend.began(lease, now_s)
            self.on_change(now_s)

    def _lease_closed(self, lease: Lease, now_s: float) -> None:
        backend = self._backends.get(lease.backend)
        if backend is not None and backend.account is lease.account and lease.closed is not None:
            backend.ended(lease, now_s)
            backend.changed()
            # Counting tokens works where the engine behind it is dead, and fails where it just does not offer that.
            outcome = lease.closed if lease.occupies_slot else Outcome.IGNORED
            backend.health.ended(outcome, now_s, trial=lease.trial)
        elif backend is None:
            self.ledger.forget(lease.backend)
        self.on_change(now_s)

    # --- evidence

    def identified(self, backend: Backend, identity: Identity) -> None:
        if identity != backend.identity:
            backend.identified(identity)
            self._lookups.clear()

    def probed(
        self,
        backend: Backend,
        answer: Ready | Loading | Sick | None,
        load: Load | None,
        *,
        since_s: float,
        now_s: float,
    ) -> None:
        """A probe that began at `since_s` has ended."""
        # A slow stream has seconds between its tokens, so all the time since the probe before counts.
        before_s, backend.probed_since_s = backend.probed_since_s, since_s
        flows = backend.account.last_progress_s >= min(since_s - 1.0, before_s)
        backend.health.probed(answer, traffic_flows=flows)
        backend.foreign.scraped(load, backend.account.take_peak(), now_s)
        backend.changed()
        self.on_change(now_s)

    def refused(self, backend: Backend, detail: str) -> None:
        backend.health.refused(detail)

    def drain(self, backend: Backend, drained: bool, now_s: float) -> None:
        """Take it out, or put it back. Calls that run there go on; the next reload leaves it as it is, a restart or
        another URL does not.
        """
        backend.health.drained = drained
        self.on_change(now_s)

    def loading(self, backend: Backend, loading: Loading) -> None:
        backend.health.loading(loading)

    def states(self) -> Mapping[str, State]:
        return {name: backend.health.state for name, backend in self._backends.items()}


def _same_server(old: Backend, url: str, engine: str) -> bool:
    return old.settings.url == url and old.settings.engine == engine

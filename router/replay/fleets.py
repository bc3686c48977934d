"""The engines of a replay: one for each backend of the settings, with the pace that its log shows, or a usual one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from policies.api import Lane
from router.engines import ENGINES
from router.observe.facts import Server
from router.replay.fit import FEWEST, Fitted, fitted
from router.replay.recorded import NotReplayable, Recorded
from router.settings.backend import Backend
from router.settings.model import Settings
from router.simulate.pace import DESK, RACK, EngineSpec, Flavour

_SLOTTED: Final = frozenset({"llamacpp", "ollama", "lmstudio"})
"""Kinds that work on a fixed number of calls, each with its own prompt kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Modelled:
    """One backend of a replay."""

    spec: EngineSpec
    how: str
    """Where its pace comes from, in words for a person."""
    fit: Fitted | None = None
    """None: nothing was fitted."""


class Paces:
    """What the log says of backends, each fitted once however many settings name it."""

    def __init__(self, calls: Sequence[Recorded], block_tokens: int, tried: Callable[[], None] = lambda: None) -> None:
        self._calls = calls
        self._block_tokens = block_tokens
        self._tried = tried
        self._servers = _servers(calls)
        self._longest = max(call.prompt_tokens + call.output_tokens for call in calls)
        self._fits: dict[tuple[str, EngineSpec], Fitted | None] = {}

    @property
    def logged(self) -> frozenset[str]:
        """Names of the backends that the log knows; empty: it is a trace."""
        return frozenset(self._servers)

    def fleet(self, settings: Settings) -> Mapping[str, Modelled]:
        """By name. Raises `NotReplayable` where a log knows none of the backends."""
        names = [backend.name for backend in settings.backends]
        if self._servers and not self._servers.keys() & set(names):
            raise NotReplayable(
                f"the log knows none of the backends {', '.join(names)}; it has {', '.join(sorted(self._servers))}. "
                "Give them the names that they have in the log, so that their pace can be taken from it"
            )
        return {backend.name: self._modelled(backend) for backend in settings.backends}

    def _modelled(self, backend: Backend) -> Modelled:
        guess, how = self._guess(backend)
        if backend.name not in self._servers:
            absent = "not in the log; " if self._servers else ""
            return Modelled(spec=guess, how=f"{absent}usual pace of {how}")
        fit = self._fit(backend.name, guess)
        if fit is None:
            return Modelled(spec=guess, how=f"fewer than {FEWEST} whole answers in the log; usual pace of {how}")
        errors = f"end within {fit.whole_error:.0%}"
        if fit.first_error is not None:
            errors = f"first token within {fit.first_error:.0%}, {errors}"
        return Modelled(spec=fit.spec, how=f"fitted to {fit.calls} logged calls ({errors}, median)", fit=fit)

    def _fit(self, name: str, guess: EngineSpec) -> Fitted | None:
        key = (name, guess)
        if key not in self._fits:
            self._fits[key] = fitted(self._calls, name, guess, self._tried)
        return self._fits[key]

    def _guess(self, backend: Backend) -> tuple[EngineSpec, str]:
        """The engine before anything was fitted, and what it was taken for."""
        server = self._servers.get(backend.name)
        kind = server.engine if server is not None and backend.engine == "auto" else backend.engine
        how = kind
        if kind == "auto":
            slotted = backend.lane is Lane.LATENCY
            kind = "llamacpp" if slotted else "vllm"
            how = f"{kind} (engine: auto cannot ask in a replay; taken from lane: {backend.lane or 'not said'})"
        usual = DESK if kind in _SLOTTED else RACK
        context = backend.context_tokens or (server.context_tokens if server is not None else None)
        spec = replace(
            usual,
            kind=kind,
            sequences=self._at_once(backend, server, kind, usual),
            context_tokens=context or max(usual.context_tokens, self._longest + 1),
            block_tokens=self._block_tokens,
        )
        return replace(spec, cache_tokens=max(spec.cache_tokens, self._longest + 1)), how

    def _at_once(self, backend: Backend, server: Server | None, kind: str, usual: EngineSpec) -> int:
        """Calls that it works on, which is what it said; else what the operator lets in, or what is usual."""
        said = server.slots if server is not None else None
        if usual.flavour is Flavour.BLOCKS:
            return max(usual.sequences, backend.max_inflight or 0)
        return said or backend.max_inflight or ENGINES[kind].default_slots or usual.sequences


def _servers(calls: Sequence[Recorded]) -> dict[str, Server | None]:
    """What the log says of each backend, the newest word of it."""
    found: dict[str, Server | None] = {}
    for call in calls:
        if call.logged is not None and call.logged.backend:
            found[call.logged.backend] = call.logged.server or found.get(call.logged.backend)
    return found

"""The errors for calls that get no place: what is wrong, in words that say what to do."""

from __future__ import annotations

from collections.abc import Sequence

from policies.api import Ask
from router.errors import Malformed, ModelLoading, NoBackend, RouterError, UnknownModel, WaitedTooLong
from router.fleet.fleet import Candidate, Fleet
from router.fleet.health import State
from router.surfaces import error_surface
from router.wire.refusal import Refusal

_LISTED_MODELS = 20


def in_shape(path: str, refusal: Refusal) -> bytes:
    """The body of the answer to what is no request, for clients of the API under that path."""
    return error_surface(path).error_body(Malformed(refusal.message, status=refusal.status))


def nothing_serves(fleet: Fleet, model: str | None, surface: str, tried: set[str]) -> RouterError:
    """Where no backend is a candidate; `tried`: those that failed the call."""
    if tried:
        return NoBackend(
            f"no backend could take the call (tried: {', '.join(sorted(tried))}); try again later", retry_after_s=2.0
        )
    backends = fleet.backends()
    silent = [backend.name for backend in backends if not backend.known]
    if silent:
        return NoBackend(
            f"no backend that answers serves this call; not reached yet: {', '.join(silent)}", retry_after_s=2.0
        )
    if not any(surface in backend.engine.surfaces for backend in backends):
        kinds = ", ".join(sorted({backend.engine.name for backend in backends}))
        return UnknownModel(f"none of the backends ({kinds}) offers this API; call another path")
    known = [name for name in fleet.model_names() if fleet.candidates(name, surface)]
    listed = ", ".join(known[:_LISTED_MODELS]) + (", ..." if len(known) > _LISTED_MODELS else "")
    asked = (model or "")[:200]
    if model is not None and (holders := fleet.serving(model)):
        where = f"the model {asked!r} is there, but its backends ({', '.join(holders)}) do not offer this API"
        return UnknownModel(f"{where}; call another path, or one of: {listed or 'none'}", param="model")
    return UnknownModel(f"no backend serves the model {asked!r} here; known: {listed or 'none'}", param="model")


def nothing_up(candidates: Sequence[Candidate]) -> NoBackend:
    tried = "; ".join(f"{candidate.backend.name} is {candidate.backend.health.words}" for candidate in candidates)
    return NoBackend(f"no backend for this call is up: {tried}; try again later", retry_after_s=2.0)


def waited_too_long(ask: Ask, candidates: Sequence[Candidate], retry_after_s: float) -> RouterError:
    """For a call whose `max_wait` has passed."""
    backends = [candidate.backend for candidate in candidates]
    loading = [backend for backend in backends if backend.health.state is State.LOADING]
    if loading and not any(backend.health.state is State.UP for backend in backends):
        return still_loading(loading[0].health.said_loading, [backend.name for backend in loading])
    call_class = ask.verdict.call_class
    return WaitedTooLong(
        f"no backend had room within {ask.rules.max_wait_s:g} s, the most that {call_class} calls wait "
        f"(classes.{call_class}.max_wait); try again later",
        retry_after_s=retry_after_s,
    )


def still_loading(said: bytes, names: Sequence[str]) -> ModelLoading:
    """The error for a call that no model was ready for; `said`: see there."""
    why = f"Loading model: {', '.join(names)} did not have it in memory within classes.*.max_wait; try again later"
    return ModelLoading(why, said=said, retry_after_s=2.0)

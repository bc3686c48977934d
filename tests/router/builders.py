"""Small builders for tests of the router: settings, a fleet that is up, applicants."""

from __future__ import annotations

from typing import Any

from classifiers.api import CallClass, Features, Source, Verdict
from policies.api import Ask, ClassRules, Lane
from router.applicant import Applicant
from router.engines.api import Identity, Ready
from router.fleet.fleet import Fleet
from router.settings.model import Settings

BOTH_LANES = (Lane.LATENCY, Lane.THROUGHPUT)


def settings(*backends: dict[str, Any], **rest: Any) -> Settings:
    """Settings with these backends; `url` is filled in."""
    filled = [{"url": f"http://127.0.0.1:{9000 + number}", **given} for number, given in enumerate(backends)]
    return Settings.model_validate({"backends": filled, **rest})


def fleet_of(*backends: dict[str, Any], up: bool = True, **rest: Any) -> Fleet:
    """A fleet whose backends have all answered their probes (unless `up` is False)."""
    fleet = Fleet(settings(*backends, **rest))
    if up:
        for backend in fleet.backends():
            fleet.identified(backend, Identity(engine="llamacpp", slots=2, context_tokens=4096, models=("m",)))
            fleet.probed(backend, Ready(), None, since_s=0.0, now_s=0.0)
    return fleet


def applicant(
    call_class: CallClass = CallClass.TTFT,
    *,
    arrived_s: float = 0.0,
    max_wait_s: float = 30.0,
    model: str | None = "m",
    surface: str = "openai_chat",
    prompt_tokens: int = 10,
    lanes: tuple[Lane, ...] = BOTH_LANES,
    keep_free: dict[Lane, int] | None = None,
    client: str = "",
    **rest: Any,
) -> Applicant:
    verdict = Verdict(call_class=call_class, confidence=1.0, source=Source.HEADER, reasons=("test",))
    return Applicant(
        ask=Ask(
            features=Features(surface=surface, model=model, prompt_tokens=prompt_tokens),
            verdict=verdict,
            rules=ClassRules(lanes=lanes, keep_free=keep_free or {}, max_wait_s=max_wait_s),
            arrived_s=arrived_s,
            client=client,
        ),
        model=model,
        surface=surface,
        **rest,
    )

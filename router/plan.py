"""What the settings mean for calls; replaced as a whole on reload, so each call sees one of them from start to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import policies
from classifiers.api import CallClass
from classifiers.chain import Chain
from classifiers.conditions import CLIENT_KEYS
from classifiers.hints import CLASS_HEADER
from classifiers.judged import Judged
from classifiers.rules import Rules
from policies.api import ClassRules, Policy
from router import models
from router.access.cors import Cors
from router.access.forwarding import Forwarding
from router.access.grant import Grant
from router.settings.judging import ModelChoice
from router.settings.model import Settings
from router.wire.api import Patience


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything about a call that the operator decides."""

    settings: Settings
    chain: Chain
    shadow: Judged | None
    """Judges beside the chain and decides nothing."""
    recalled: Judged | None
    """The model of the chain, if what it said of a call may stand for calls like it. None: each call is judged, since a
    rule or the shadow asks for what a judgement finds out."""
    class_headers: tuple[str, ...]
    """Headers in which callers name the class of a call."""
    remembers: bool
    """What clients did before is asked for."""
    looks_back: bool
    """What a call looked like is asked for again when it has ended."""
    last_seen: models.LastSeen
    """What the model of the chain saw, if there is a decision log."""
    policy: Policy
    rules: Mapping[CallClass, ClassRules]
    patience: Patience
    grants: Mapping[str, Grant]
    """By the name of the key."""
    cors: Cors | None
    forwarding: Forwarding

    @classmethod
    def of(cls, settings: Settings) -> Plan:
        classify, timeouts = settings.classify, settings.timeouts
        last_seen = models.LastSeen()
        judged = _voice(classify.model, classify.min_confidence)
        shadow = _voice(classify.shadow, classify.min_confidence)
        looks_back = shadow is not None or settings.decisions.file is not None
        if judged is not None and settings.decisions.file is not None:
            judged = Judged(models.Watched.by(judged.model, last_seen), last_seen.vector_of, judged.min_confidence)
        asks_clients = any(not rule.if_.keys().isdisjoint(CLIENT_KEYS) for rule in classify.rules)
        rules = {each: _aged(settings.classes.of(each).rules(), settings.line.ageing) for each in CallClass}
        return cls(
            settings=settings,
            chain=Chain(
                header_names=settings.headers.class_,
                rules=Rules.compiled((rule.if_, rule.then) for rule in classify.rules),
                builtin=classify.builtin,
                default=classify.default,
                judged=judged,
            ),
            shadow=shadow,
            recalled=None if shadow is not None or asks_clients else judged,
            class_headers=(CLASS_HEADER, *settings.headers.class_),
            remembers=judged is not None or looks_back or asks_clients,
            looks_back=looks_back,
            last_seen=last_seen,
            policy=policies.build(settings.policy.use, settings.policy.options),
            rules=rules,
            grants={key.name: Grant.of(key, rules) for key in settings.keys},
            cors=Cors(settings.cors.origins) if settings.cors.origins else None,
            forwarding=Forwarding(settings.trusted_proxies),
            patience=Patience(connect_s=timeouts.connect, first_byte_s=timeouts.first_byte, idle_s=timeouts.idle),
        )


def _aged(rules: ClassRules, ageing_s: float) -> ClassRules:
    """Who may not wait for long gets what room there is before the wait is over. Who may not wait at all never ages."""
    return replace(rules, ageing_s=min(ageing_s, 0.8 * rules.max_wait_s) if rules.max_wait_s > 0 else ageing_s)


def _voice(choice: ModelChoice | None, min_confidence: float) -> Judged | None:
    """The model that is named, as a voice; None: none is."""
    if choice is None or choice.use == "off":
        return None
    model = models.builtin() if choice.file is None else models.parsed(choice.file.content.get_secret_value())
    return None if model is None else Judged(model, models.vector_of, min_confidence)

"""What the settings mean for calls; replaced as a whole on reload, so each call sees one of them from start to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import policies
from classifiers.api import CallClass
from classifiers.chain import Chain
from classifiers.rules import Rules
from policies.api import ClassRules, Policy
from router.settings.model import Settings
from router.wire.api import Patience


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything about a call that the operator decides."""

    settings: Settings
    chain: Chain
    policy: Policy
    rules: Mapping[CallClass, ClassRules]
    patience: Patience

    @classmethod
    def of(cls, settings: Settings) -> Plan:
        classify, timeouts = settings.classify, settings.timeouts
        return cls(
            settings=settings,
            chain=Chain(
                header_names=settings.headers.class_,
                rules=Rules.compiled((rule.if_, rule.then) for rule in classify.rules),
                builtin=classify.builtin,
                default=classify.default,
            ),
            policy=policies.build(settings.policy.use, settings.policy.options),
            rules={call_class: settings.classes.of(call_class).rules() for call_class in CallClass},
            patience=Patience(connect_s=timeouts.connect, first_byte_s=timeouts.first_byte, idle_s=timeouts.idle),
        )
